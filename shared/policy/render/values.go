package render

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/policy/template"
)

// values are the values of placeholders: the subject and its fields, then variables.
type values struct {
	matchers  []*labels.Matcher // of the subject, sorted by label
	names     []string          // of the subject's labels, sorted
	fields    map[string]string
	variables map[string]any
}

func newValues(s *registry.Subject, variables map[string]any) (*values, error) {
	v := &values{fields: s.Fields(), variables: variables}
	fields := s.Labels()
	v.names = slices.Sorted(maps.Keys(fields))
	for _, name := range v.names {
		kind, value := labels.MatchEqual, fields[name]
		if pattern, ok := registry.Regexp(value); ok {
			kind, value = labels.MatchRegexp, pattern
		}
		m, err := labels.NewMatcher(kind, name, value)
		if err != nil {
			return nil, fault{"subject", err.Error()}
		}
		v.matchers = append(v.matchers, m)
	}
	return v, nil
}

// fault is a value that does not fit, with its path.
type fault struct{ path, detail string }

func (f fault) Error() string { return f.path + " " + f.detail }

func (v *values) find(name string) (any, string, error) {
	if value, ok := v.fields[name]; ok && value != "" {
		return value, "subject." + name, nil
	}
	if value, ok := v.variables[name]; ok && value != nil {
		return value, "variables." + name, nil
	}
	return nil, "", fault{"variables." + name, "is not given, and the expression has {{" + name + "}}"}
}

// number also accepts a duration: PromQL itself accepts 5m for 300.
func (v *values) number(name string) (float64, error) {
	value, path, err := v.find(name)
	if err != nil {
		return 0, err
	}
	if n, ok := template.ToNumber(value); ok {
		return n, nil
	}
	if d, ok := template.ToDuration(value); ok {
		return d.Seconds(), nil
	}
	return 0, fault{path, "must be a number, since {{" + name + "}} stands where one is wanted"}
}

func (v *values) duration(name string) (time.Duration, error) {
	value, path, err := v.find(name)
	if err != nil {
		return 0, err
	}
	d, ok := template.ToDuration(value)
	if !ok {
		return 0, fault{path, "must be a duration such as 5m, since {{" + name + "}} stands where one is wanted"}
	}
	return d.Truncate(time.Millisecond), nil
}

func (v *values) text(name string) (text, path string, err error) {
	value, path, err := v.find(name)
	if err != nil {
		return "", "", err
	}
	text, ok := template.ToText(value)
	if !ok {
		return "", "", fault{path, "must be a text of at most 1024 bytes in UTF-8"}
	}
	return text, path, nil
}

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// list returns label names: those of the subject, or those in a variable, separated by commas.
func (v *values) list(name string) ([]string, error) {
	if name == registry.ListPlaceholder {
		return v.names, nil
	}
	text, path, err := v.text(name)
	if err != nil {
		return nil, err
	}
	names := strings.Split(text, ",")
	for i, n := range names {
		if names[i] = strings.TrimSpace(n); !labelName.MatchString(names[i]) {
			return nil, fault{path, "must be label names separated by commas, since {{" + name + "}} stands among them"}
		}
	}
	return names, nil
}

// matcher inserts values into a label value. A variable is taken literally in a comparison, and as a regular expression
// in a match; ICOS's own templates need that. A field of the subject has its usual meaning: with a wildcard it turns a
// comparison into a match.
func (v *values) matcher(m *labels.Matcher, in []hole, nonce string) (*labels.Matcher, error) {
	kind := m.Type
	matches := kind == labels.MatchRegexp || kind == labels.MatchNotRegexp
	whole := len(in) == 1 && m.Value == in[0].word(nonce)
	pairs := make([]string, 0, 2*len(in))
	paths := make([]string, 0, len(in))
	for _, h := range in {
		text, path, err := v.text(h.name)
		if err != nil {
			return nil, err
		}
		_, ofSubject := v.fields[h.name]
		pattern, wild := "", false
		if ofSubject {
			pattern, wild = registry.Regexp(text)
		}
		switch {
		case wild && whole:
			text = pattern
			switch kind {
			case labels.MatchEqual:
				kind = labels.MatchRegexp
			case labels.MatchNotEqual:
				kind = labels.MatchNotRegexp
			case labels.MatchRegexp, labels.MatchNotRegexp:
			}
		case wild && matches:
			text = "(?:" + pattern + ")"
		case wild:
			return nil, fault{path, "is a wildcard, and the expression has {{" + h.name + "}} in the middle of a text"}
		case ofSubject && matches:
			text = regexp.QuoteMeta(text)
		case matches:
			// Each value is compiled alone first: two values must not form a pattern together if neither is one.
			if _, err := regexp.Compile(text); err != nil {
				return nil, fault{path, "is not a regular expression: " + err.Error()}
			}
			if !whole {
				text = "(?:" + text + ")"
			}
		}
		pairs, paths = append(pairs, h.word(nonce), text), append(paths, path)
	}
	value := strings.NewReplacer(pairs...).Replace(m.Value)
	filled, err := labels.NewMatcher(kind, m.Name, value)
	if err != nil {
		return nil, fault{strings.Join(paths, ", "), fmt.Sprintf("makes no regular expression: %v", err)}
	}
	return filled, nil
}
