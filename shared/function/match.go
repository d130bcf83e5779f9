package function

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/littoral-project/littoral/shared/problem"
)

// Tagged is a record with an entity tag for its version (RFC 9110).
type Tagged interface{ ETag() string }

// VersionTag is the entity tag of a numbered version.
func VersionTag(version int64) string { return strconv.Quote(strconv.FormatInt(version, 10)) }

// Match holds the versions named in If-Match; the zero Match fits every version.
type Match struct {
	tags []string // nil = any
}

// IfMatch reads the header If-Match. The error is Malformed.
func IfMatch(r *http.Request) (Match, error) {
	given := r.Header.Values("If-Match")
	text := strings.Trim(strings.Join(given, ","), " \t,")
	if len(given) == 0 || text == "*" {
		return Match{}, nil
	}
	m := Match{tags: []string{}}
	for rest := text; rest != "" || len(m.tags) == 0; {
		tag, after, ok := cutTag(rest)
		if !ok {
			return m, problem.New(problem.Malformed, `If-Match %q is neither * nor a list of entity tags such as "3"`, problem.Brief(text, 100))
		}
		m.tags, rest = append(m.tags, tag), after
	}
	return m, nil
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

// Given reports whether the caller named versions, one of which must be the present one.
func (m Match) Given() bool { return m.tags != nil }

// Check refuses a caller who has not seen the present version. The error is PreconditionFailed.
func (m Match) Check(now Tagged) error {
	if !m.Given() || slices.Contains(m.tags, now.ETag()) {
		return nil
	}
	return problem.New(problem.PreconditionFailed,
		"If-Match does not name %s, which the version is now: somebody has changed it since; read it again", now.ETag())
}
