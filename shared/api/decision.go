package api

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/littoral-project/littoral/shared/placement"
)

// Entry is one entry of the history. IDs grow with time.
type Entry struct {
	ID            int64           `json:"id"`
	At            time.Time       `json:"at"`
	ApplicationID string          `json:"applicationId,omitempty"`
	Application   string          `json:"applicationName,omitempty"`
	JobID         string          `json:"jobId,omitempty"`
	Component     string          `json:"component,omitempty"`
	Event         string          `json:"event"` // "job.placed", "application.submitted", ...
	FromState     string          `json:"fromState,omitempty"`
	ToState       string          `json:"toState,omitempty"`
	Message       string          `json:"message,omitempty"`
	Cause         string          `json:"cause,omitempty"` // the caller or event that caused it
	TraceID       string          `json:"traceId,omitempty"`
	Data          json.RawMessage `json:"data,omitempty"`
	Controller    string          `json:"controller,omitempty"` // which recorded it, if that is not the server's own
}

// Preview is the effect that submitting a descriptor would have.
type Preview struct {
	Application string   `json:"application,omitempty"` // that would be updated; empty = a new one
	Name        string   `json:"name"`
	Changes     int      `json:"changes"` // steps that are not "none"
	Steps       []Step   `json:"steps"`
	Fields      []Field  `json:"fields,omitempty"`   // that differ from the application's descriptor
	Warnings    []string `json:"warnings,omitempty"` // oddities in the descriptor
	Derived     []string `json:"derived,omitempty"`  // requirements that follow from compose files
}

// Field is one difference between two descriptors. Of what is added or removed as a whole there is neither From nor To.
type Field struct {
	Component string `json:"component,omitempty"` // empty for the application itself
	Object    string `json:"object,omitempty"`    // of its manifests, as Kind/name
	Path      string `json:"path,omitempty"`      // empty for a component or an object as a whole
	Action    string `json:"action"`              // added, removed, changed
	From      any    `json:"from,omitempty"`
	To        any    `json:"to,omitempty"`
	Restarts  bool   `json:"restarts"` // what runs is replaced by new pods or containers
}

// Step is the change of one component, or of the application itself.
type Step struct {
	Component string  `json:"component"` // empty for the application itself
	Replica   int     `json:"replica"`
	Action    string  `json:"action"` // create, replace, change, move, remove, wait, none
	From      *Target `json:"from,omitempty"`
	To        *Target `json:"to,omitempty"`
	Variant   string  `json:"variant,omitempty"` // kubernetes or docker, of a component that has manifests for both
	Why       string  `json:"why,omitempty"`
}

// Name returns the name of the component, with the number of the replica unless it is the first.
func (s *Step) Name() string { return replica(s.Component, s.Replica) }

// Answer is a placement with its explanation.
type Answer struct {
	Plan        placement.Plan        `json:"plan"`
	Explanation placement.Explanation `json:"explanation"`
	Warnings    []string              `json:"warnings,omitempty"` // oddities in the descriptor
	Derived     []string              `json:"derived,omitempty"`  // requirements that follow from compose files
}

func replica(component string, n int) string {
	if n == 0 {
		return component
	}
	return component + "/" + strconv.Itoa(n)
}
