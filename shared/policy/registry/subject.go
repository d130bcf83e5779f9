package registry

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/problem"
)

// SubjectType is what a policy can be about.
type SubjectType string

// The types of subjects.
const (
	AppSubject    SubjectType = "app"
	HostSubject   SubjectType = "host"
	CustomSubject SubjectType = "custom"
)

// Subject is what a policy is about. A field of an application or host may be a name, "*" for any, or "/a|b/" for a
// regular expression.
type Subject struct {
	Type SubjectType

	AppName      string // of an application
	AppInstance  string
	AppComponent string

	HostID  string // of a host
	AgentID string

	Custom map[string]string // of a custom subject, by label
}

// Wildcard is the field value that means any.
const Wildcard = "*"

// labelNames gives the metric label of each field.
var labelNames = map[string]string{
	"appName": label.AppName, "appInstance": label.AppInstance, "appComponent": label.AppComponent,
	"hostId": label.Host, "agentId": label.Agent,
}

// InstanceLabel is the label with the application of a series: an instance belongs to one tenant.
const InstanceLabel = label.AppInstance

// Fields returns the fields by their names in JSON.
func (s *Subject) Fields() map[string]string {
	switch s.Type {
	case AppSubject:
		return map[string]string{"appName": s.AppName, "appInstance": s.AppInstance, "appComponent": s.AppComponent}
	case HostSubject:
		return map[string]string{"hostId": s.HostID, "agentId": s.AgentID}
	case CustomSubject:
	}
	return maps.Clone(s.Custom)
}

func (s *Subject) set(field, value string) {
	switch field {
	case "appName":
		s.AppName = value
	case "appInstance":
		s.AppInstance = value
	case "appComponent":
		s.AppComponent = value
	case "hostId":
		s.HostID = value
	case "agentId":
		s.AgentID = value
	}
}

// Labels returns the fields by their labels in metrics.
func (s *Subject) Labels() map[string]string {
	out := map[string]string{}
	for field, value := range s.Fields() {
		if label, known := labelNames[field]; known && s.Type != CustomSubject {
			field = label
		}
		out[field] = value
	}
	return out
}

// Regexp returns the regular expression that a field value stands for: any non-empty text for "*", re for "/re/". The bool is
// false for any other value, which is meant literally.
func Regexp(value string) (string, bool) {
	switch {
	case value == Wildcard:
		return ".+", true
	case len(value) > 2 && value[0] == '/' && value[len(value)-1] == '/':
		return value[1 : len(value)-1], true
	}
	return "", false
}

// Matches reports whether a field value covers the label value.
func Matches(field, value string) bool {
	pattern, ok := Regexp(field)
	if !ok {
		return field == value
	}
	re, err := regexp.Compile("^(?s:" + pattern + ")$")
	return err == nil && re.MatchString(value)
}

// MarshalJSON writes the type and the fields that belong to it.
func (s Subject) MarshalJSON() ([]byte, error) {
	out := s.Fields()
	if out == nil {
		out = map[string]string{}
	}
	out["type"] = string(s.Type)
	return json.Marshal(out)
}

// UnmarshalJSON reads a subject. Without a type it is an application when it names one, else a host, else custom.
func (s *Subject) UnmarshalJSON(raw []byte) error {
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return problem.New(problem.Malformed, "subject must be an object")
	}
	var faults problem.Faults
	text := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value, ok := fields[name].(string)
		if !ok {
			faults.Add("subject."+name, 0, "must be a text")
		}
		text[name] = value
	}
	*s = Subject{Type: SubjectType(text["type"])}
	if s.Type == "" {
		s.Type = guess(text)
	}
	delete(text, "type")
	if s.Type == CustomSubject {
		s.Custom = text
	}
	for name, value := range text {
		s.set(name, value)
	}
	return faults.Err("the subject is not valid")
}

func guess(fields map[string]string) SubjectType {
	for _, t := range []SubjectType{AppSubject, HostSubject} {
		for name := range (&Subject{Type: t}).Fields() {
			if _, has := fields[name]; has {
				return t
			}
		}
	}
	return CustomSubject
}

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

func (s *Subject) check(faults *problem.Faults) {
	switch s.Type {
	case AppSubject, HostSubject:
	case CustomSubject:
		if len(s.Custom) == 0 || len(s.Custom) > maxVariables {
			faults.Add("subject", 0, "must have at least one label and at most %d", maxVariables)
			return
		}
	default:
		faults.Add("subject.type", 0, "must be app, host or custom")
		return
	}
	fields := s.Fields()
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value, path := fields[name], "subject."+name
		pattern, isPattern := Regexp(value)
		switch {
		case s.Type == CustomSubject && (!labelName.MatchString(name) || strings.HasPrefix(name, "__")):
			faults.Add(path, 0, "is not the name of a metric label")
		case value == "":
			faults.Add(path, 0, "is required")
		case !plain(value, maxText):
			faults.Add(path, 0, "must be a text of at most %d bytes without control characters", maxText)
		case isPattern:
			if _, err := regexp.Compile(pattern); err != nil {
				faults.Add(path, 0, "is not a regular expression: %v", err)
			}
		}
	}
}

// plain reports whether a text can be shown: valid UTF-8, not too long, without control characters.
func plain(text string, longest int) bool {
	return len(text) <= longest && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}
