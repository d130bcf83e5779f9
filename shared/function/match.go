package function

import (
	"net/http"
	"strings"

	"github.com/littoral-project/littoral/shared/etag"
	"github.com/littoral-project/littoral/shared/problem"
)

// IfMatch reads the header If-Match. The error is Malformed.
func IfMatch(r *http.Request) (etag.Match, error) {
	given := r.Header.Values("If-Match")
	text := strings.Trim(strings.Join(given, ","), " \t,")
	if len(given) == 0 || text == "*" {
		return etag.Match{}, nil
	}
	var tags []string
	for rest := text; rest != "" || len(tags) == 0; {
		tag, after, ok := cutTag(rest)
		if !ok {
			return etag.Any(nil), problem.New(problem.Malformed, `If-Match %q is neither * nor a list of entity tags such as "3"`, problem.Brief(text, 100))
		}
		tags, rest = append(tags, tag), after
	}
	return etag.Any(tags), nil
}

// IfNone reports whether If-None-Match demands that the record does not exist yet. The error is Malformed.
func IfNone(r *http.Request) (bool, error) {
	given := r.Header.Values("If-None-Match")
	text := strings.Join(given, ",")
	if len(given) > 0 && text != "*" {
		return false, problem.New(problem.Malformed, "If-None-Match %q is not *", problem.Brief(text, 100))
	}
	return len(given) > 0, nil
}

// NoneMatch reports whether If-None-Match names the entity tag, so that the caller has the present representation
// already. Tags are compared weakly (RFC 9110 §13.1.2); what is no list of tags names none.
func NoneMatch(r *http.Request, tag string) bool {
	rest := strings.Trim(strings.Join(r.Header.Values("If-None-Match"), ","), " \t,")
	if rest == "*" {
		return true
	}
	for rest != "" {
		given, after, ok := cutTag(rest)
		if !ok {
			return false
		}
		if strings.TrimPrefix(given, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
		rest = after
	}
	return false
}

// cutTag cuts the first entity tag off a list. A weak one keeps its prefix, so that it matches no version.
func cutTag(list string) (tag, rest string, ok bool) {
	quoted, opens := strings.CutPrefix(strings.TrimPrefix(list, "W/"), `"`)
	_, rest, closes := strings.Cut(quoted, `"`)
	tag, rest = strings.TrimSuffix(list, rest), strings.TrimLeft(rest, " \t")
	return tag, strings.TrimLeft(rest, " \t,"), opens && closes && (rest == "" || rest[0] == ',')
}
