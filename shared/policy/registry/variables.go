package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/littoral-project/littoral/shared/policy/template"
	"github.com/littoral-project/littoral/shared/problem"
)

// Variables fill the placeholders of a spec: int64, float64 or text.
type Variables map[string]any

// UnmarshalJSON reads whole numbers as int64.
func (v *Variables) UnmarshalJSON(raw []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var given map[string]any
	if err := decoder.Decode(&given); err != nil {
		return problem.New(problem.Malformed, "variables must be an object")
	}
	var faults problem.Faults
	*v = Variables{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		switch value := given[name].(type) {
		case string:
			(*v)[name] = value
		case json.Number:
			if (*v)[name] = number(value.String()); (*v)[name] == nil {
				faults.Add("variables."+name, 0, "is not a number that can be kept")
			}
		default:
			faults.Add("variables."+name, 0, "must be a number or a text")
		}
	}
	return faults.Err("the variables are not valid")
}

// Set sets a variable from text in a URL: a whole number, else a number, else the text itself.
func (v Variables) Set(name, text string) error {
	if v[name] = number(text); v[name] == nil {
		v[name] = text
	}
	var faults problem.Faults
	v.check(&faults)
	return faults.Err("the variable is not valid")
}

func number(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if n, ok := template.ToNumber(text); ok {
		return n
	}
	return nil
}

var variableName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,127}$`)

func (v Variables) check(faults *problem.Faults) {
	if len(v) > maxVariables {
		faults.Add("variables", 0, "has %d entries; %d are allowed", len(v), maxVariables)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		path := "variables." + short(name)
		switch text, ok := template.ToText(v[name]); {
		case !variableName.MatchString(name):
			faults.Add(path, 0, "must be named by letters, digits, - and _")
		case predefined(name):
			faults.Add(path, 0, "is the name of a predefined placeholder")
		case !ok:
			faults.Add(path, 0, "must be a number or a text of at most %d bytes, not %s", maxText, fmt.Sprintf("%T", v[name]))
		case len(text) > maxText:
			faults.Add(path, 0, "is longer than %d bytes", maxText)
		}
	}
}

// Placeholders for the subject as a whole.
const (
	SelectorPlaceholder = "subject_label_selector" // its matchers
	ListPlaceholder     = "subject_label_list"     // the names of its labels
)

// predefined reports whether a placeholder stands for the subject or one of its fields, and so cannot be a variable.
func predefined(name string) bool {
	_, field := labelNames[name]
	return field || name == SelectorPlaceholder || name == ListPlaceholder
}
