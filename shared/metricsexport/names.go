// Package metricsexport keeps metrics that others ask for: those whose values they send, and those that a model foresees
// from telemetry. It trains the models (shared/forecast), keeps them in the object store, and says of each value how it
// came to be. The wire is that of ICOS' metrics export and intelligence API (shared/docs/contracts.md).
package metricsexport

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/littoral-project/littoral/shared/problem"
)

// Type of a metric.
type Type string

// The types, which ICOS numbers from 1.
const (
	Counter Type = "counter"
	Gauge   Type = "gauge"
	Info    Type = "info"
	Enum    Type = "enum"
)

var types = []Type{Counter, Gauge, Info, Enum}

// UnmarshalJSON accepts the number or the name.
func (t *Type) UnmarshalJSON(b []byte) error {
	var n int
	if json.Unmarshal(b, &n) == nil && n >= 1 && n <= len(types) {
		*t = types[n-1]
		return nil
	}
	var name string
	if json.Unmarshal(b, &name) == nil {
		if i := slices.Index(types, Type(strings.ToLower(name))); i >= 0 {
			*t = types[i]
			return nil
		}
	}
	return problem.New(problem.Invalid, "a type is 1 (counter), 2 (gauge), 3 (info) or 4 (enum), not %s", problem.Brief(b, 50))
}

// Limits.
const (
	MaxMetrics = 1000
	MaxSeries  = 2000 // of one metric
	maxLabels  = 30
	maxStates  = 100
	maxText    = 1000 // bytes of a help, a label's value or a state
	maxQuery   = 5000
	maxAtOnce  = 500 // names in one call
)

var (
	metricName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]{0,199}$`)
	labelName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,199}$`)
	modelName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)
)

// suffixes are those that a type has in Prometheus' text, so that names here go without.
var suffixes = map[Type]string{Counter: "_total", Info: "_info"}

// checkName adds a fault unless the name is one of Prometheus.
func checkName(path, name string, faults *problem.Faults) {
	switch {
	case name == "":
		faults.Add(path, 0, "is missing")
	case !metricName.MatchString(name):
		faults.Add(path, 0, "%q is no name of a metric: letters, digits, _ and :, at most 200, and no digit first", problem.Brief(name, 60))
	}
}

// checkLabels adds a fault for each label that Prometheus would not take.
func checkLabels(path string, labels map[string]string, faults *problem.Faults) {
	if len(labels) > maxLabels {
		faults.Add(path, 0, "has more than %d labels", maxLabels)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		switch {
		case !labelName.MatchString(name) || strings.HasPrefix(name, "__"):
			faults.Add(path+"."+problem.Brief(name, 60), 0, "is no name of a label: letters, digits and _, at most 200, no digit and no __ first")
		case len(labels[name]) > maxText:
			faults.Add(path+"."+name, 0, "has more than %d bytes", maxText)
		}
	}
}
