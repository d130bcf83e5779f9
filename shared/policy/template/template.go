// Package template is the catalogue of policy templates: their PromQL with placeholders, and the variables of each.
//
// It contains only data, so that packages that merely check a policy need no PromQL parser; shared/policy/render turns
// a template into an expression. ICOS published the texts of compss-under-allocation, cpu-usage-host,
// app-host-cpu-usage, app-sca-score and device-available. The first two are unchanged here. The others are named by the
// policies page without a text, and their texts are ours. Each is written for the metrics and labels of
// shared/topology/METRICS.md, with a comment on what was changed and why.
//
// Every expression of an application's template yields one series per component and, if it is about a node, per node,
// with the labels of the subject and of the host. So an alert keeps its fingerprint while pods come and go, and names
// the violating node.
package template

import (
	"maps"
	"slices"
)

// Kind is the type of a variable.
type Kind string

// The kinds.
const (
	Number   Kind = "number"
	Duration Kind = "duration" // in Prometheus' format: 30s, 5m, 1h30m
	Text     Kind = "text"     // taken literally
	Pattern  Kind = "pattern"  // a regular expression, anchored, as in =~
)

// Variable is an input of a template.
type Variable struct {
	Name        string   `json:"name"`
	Aliases     []string `json:"aliases,omitempty"` // other accepted names
	Kind        Kind     `json:"kind"`
	Default     any      `json:"default,omitempty"` // nil: it is required
	Min         float64  `json:"min"`               // of numbers, and of durations in seconds; both included
	Max         float64  `json:"max"`
	Description string   `json:"description"`
}

// Template is a named expression. A policy is violated for as long as it yields samples.
type Template struct {
	Name        string             `json:"name"`
	Aliases     []string           `json:"aliases,omitempty"`
	Description string             `json:"description"`
	Expr        string             `json:"expr"`               // for an application; empty: it has none
	HostExpr    string             `json:"hostExpr,omitempty"` // for a host; empty: it has none
	Variables   []Variable         `json:"variables"`
	Thresholds  map[string]float64 `json:"thresholds,omitempty"` // by severity name, see the violation payload
	Published   bool               `json:"published"`            // the text is ICOS's own
}

// The names by which other packages choose templates.
const (
	CompssUnderAllocation = "compss-under-allocation"
	CPUUsageHost          = "cpu-usage-host"
	CPUUsage              = "app-host-cpu-usage-perc"
	CPUUsageExcl          = "app-host-cpu-usage-perc-excl"
	MemoryUsage           = "app-host-memory-usage-perc"
	MemoryUsageExcl       = "app-host-memory-usage-perc-excl"
	MemoryAvailable       = "app-host-memory-avail-bytes"
	MemoryAvailableExcl   = "app-host-memory-avail-bytes-excl"
	SCAScore              = "app-sca-score"
	DeviceAvailable       = "device-available"
	LostTelemetry         = "redeploy-on-lost-telemetry"
	SecurityEvents        = "app-security-events"
)

// The variables that have a computed default.
const (
	Since = "since" // when the application was started
	Gap   = "gap"   // how long all hosts must be silent before all telemetry counts as missing
)

var catalogue = []*Template{
	compssUnderAllocation, cpuUsageHost, cpuUsage, cpuUsageExcl, memoryUsage, memoryUsageExcl, memoryAvailable,
	memoryAvailableExcl, scaScore, deviceAvailable, lostTelemetry, securityEvents,
}

var byName = func() map[string]*Template {
	names := map[string]*Template{}
	for _, t := range catalogue {
		names[t.Name] = t
		for _, alias := range t.Aliases {
			names[alias] = t
		}
	}
	return names
}()

// All returns the templates in the order of the policies page.
func All() []*Template { return slices.Clone(catalogue) }

// Lookup finds a template by its name or an older one.
func Lookup(name string) (*Template, bool) {
	t, ok := byName[name]
	return t, ok
}

// Names returns every name Lookup knows, sorted.
func Names() []string { return slices.Sorted(maps.Keys(byName)) }
