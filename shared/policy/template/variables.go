package template

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/littoral-project/littoral/shared/problem"
)

// maxText is the maximum length of a text variable. Prometheus compiles patterns, so this limits them too.
const maxText = 1024

// Complete returns the variables of the template under their main names, with defaults for those that are missing.
// Unknown ones are dropped, as the policies page says. Each fault is added under path.<name>. Numbers are returned as
// float64, durations as time.Duration, others as text.
func (t *Template) Complete(given map[string]any, path string, faults *problem.Faults) map[string]any {
	complete := make(map[string]any, len(t.Variables))
	for _, v := range t.Variables {
		name, value := v.find(given)
		if value == nil {
			faults.Add(path+"."+v.Name, 0, "is required by template %s: %s", t.Name, v.Description)
			continue
		}
		if read, fault := v.read(value); fault != "" {
			faults.Add(path+"."+name, 0, "%s", fault)
		} else {
			complete[v.Name] = read
		}
	}
	return complete
}

func (v *Variable) find(given map[string]any) (name string, value any) {
	for _, name := range append([]string{v.Name}, v.Aliases...) {
		if value, ok := given[name]; ok && value != nil {
			return name, value
		}
	}
	return v.Name, v.Default
}

// read converts the value to its kind, or says what is wrong with it.
func (v *Variable) read(value any) (any, string) {
	switch v.Kind {
	case Number:
		n, ok := ToNumber(value)
		if !ok {
			return nil, "must be a number: " + v.Description
		}
		return n, v.bounds(n)
	case Duration:
		d, ok := ToDuration(value)
		if !ok {
			return nil, "must be a duration such as 30s, 5m or 1h30m: " + v.Description
		}
		return d, v.bounds(d.Seconds())
	case Text, Pattern:
	}
	text, ok := ToText(value)
	if !ok || text == "" {
		return nil, "must be a text of at most 1024 bytes: " + v.Description
	}
	if v.Kind == Pattern {
		if _, err := regexp.Compile(text); err != nil {
			return nil, "is not a regular expression: " + err.Error()
		}
	}
	return text, ""
}

func (v *Variable) bounds(n float64) string {
	if n >= v.Min && n <= v.Max {
		return ""
	}
	unit := ""
	if v.Kind == Duration {
		unit = " seconds"
	}
	return "must be within " + format(v.Min) + " and " + format(v.Max) + unit + ": " + v.Description
}

func format(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) }

var decimal = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$`)

// ToNumber accepts a finite number, also as decimal text. Inf and NaN are not accepted: comparisons with them rarely
// mean what the author intended.
func ToNumber(value any) (float64, bool) {
	var n float64
	switch value := value.(type) {
	case int:
		n = float64(value)
	case int64:
		n = float64(value)
	case float64:
		n = value
	case string:
		text := strings.TrimSpace(value)
		if len(text) > 64 || !decimal.MatchString(text) {
			return 0, false
		}
		var err error
		if n, err = strconv.ParseFloat(text, 64); err != nil {
			return 0, false
		}
	default:
		return 0, false
	}
	return n, !math.IsInf(n, 0) && !math.IsNaN(n)
}

// ToText accepts a text, and formats a number as one.
func ToText(value any) (string, bool) {
	switch value := value.(type) {
	case string:
		return value, len(value) <= maxText && utf8.ValidString(value)
	case int:
		return strconv.Itoa(value), true
	case int64:
		return strconv.FormatInt(value, 10), true
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64), !math.IsInf(value, 0) && !math.IsNaN(value)
	case bool:
		return strconv.FormatBool(value), true
	case time.Duration:
		return FormatDuration(value), true
	}
	return "", false
}
