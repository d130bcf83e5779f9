// Package registry is the model of a policy: its wire format (shared/docs/contracts.md §3.3), the policies that a descriptor
// asks for, its phases as alerts come and go, the message about a violation, and its alert rule.
//
// Everything here is pure: no I/O, no clock, no randomness; instants and ids come from the caller. PromQL is only text
// here: shared/policy/render makes it and needs Prometheus' parser, which functions that merely read policies should
// not have to carry.
package registry

import (
	"time"

	"github.com/littoral-project/littoral/shared/policy/template"
	"github.com/littoral-project/littoral/shared/problem"
)

// Policy is a rule about a subject, and what to do when it is violated.
type Policy struct {
	ID         string     `json:"id,omitempty"`
	Name       string     `json:"name"`
	Subject    Subject    `json:"subject"`
	Spec       Spec       `json:"spec"`
	Action     Action     `json:"action"`
	Variables  Variables  `json:"variables"`
	Properties Properties `json:"properties"`
	Status     Status     `json:"status"`

	// Path is its place in the descriptor, such as components[0].policies[1], so that a later fault can name it.
	Path string `json:"-"`
	// Numbered says that its name is a running number, which another policy may get when policies before it are added
	// or removed.
	Numbered bool `json:"-"`
	// Started is when its application was last started, as far as is known: the expression about lost telemetry ignores
	// earlier samples.
	Started time.Time `json:"-"`
}

// Properties tune how a policy is watched. Durations are as Prometheus writes them.
type Properties struct {
	Oneoff          bool   `json:"oneoff,omitempty"`          // acted upon only once
	Interval        string `json:"interval,omitempty"`        // between evaluations; empty: the backend's own
	PendingInterval string `json:"pendingInterval,omitempty"` // how long it must be violated before that counts
	Forecast        string `json:"forecast,omitempty"`        // how far ahead a violation that is foreseen counts; empty: not at all
	Confirm         bool   `json:"confirm,omitempty"`         // its remediation is only suggested, until a person confirms it
}

// ActionWebhook is the only type of action; a callback by service name becomes one too.
const ActionWebhook = "webhook"

// Action is the call that a violation makes. An empty URL means the job manager.
type Action struct {
	Type               string            `json:"type"`
	URL                string            `json:"url"`
	HTTPMethod         string            `json:"httpMethod"`
	ExtraParams        map[string]string `json:"extraParams"` // merged into the payload at top level
	IncludeAccessToken bool              `json:"includeAccessToken"`
}

// RemediationParam is the extra parameter with the name of the remediation.
const RemediationParam = "remediation"

// Remediation is the remediation of the action; empty if there is none.
func (a *Action) Remediation() string { return a.ExtraParams[RemediationParam] }

// Silence is the timeout of a policy about lost telemetry; ok is false for any other.
func (p *Policy) Silence() (timeout time.Duration, ok bool) {
	t, known := template.Lookup(p.Spec.TemplateName)
	if p.Spec.Type != TemplateSpec || !known || t.Name != template.LostTelemetry {
		return 0, false
	}
	timeout, ok = t.Complete(p.Variables, "variables", &problem.Faults{})["timeout"].(time.Duration)
	return timeout, ok
}

// Phase is the state of a policy.
type Phase string

// The phases.
const (
	Enforced Phase = "enforced"
	Violated Phase = "violated"
	Inactive Phase = "inactive"
	Unknown  Phase = "unknown"
)

// Status is what the policy manager knows about a policy.
type Status struct {
	RenderedSpec        *Spec              `json:"renderedSpec"`
	MeasurementBackends map[string]Backend `json:"measurementBackends"`
	Events              []Event            `json:"events"`
	Phase               Phase              `json:"phase"`
}

// Backend is the place of a policy's rule.
type Backend struct {
	Service  string `json:"service"`
	URL      string `json:"url"`
	RuleFile string `json:"rule_file"`
}

// DefaultBackend is the name of our Prometheus among the measurement backends.
const DefaultBackend = "prom-1"

// EventType is what happened to a policy.
type EventType string

// The event types. RenderingError is spelled as in the published API; "renderingError" is accepted as well.
const (
	EventCreated        EventType = "created"
	EventActivated      EventType = "activated"
	EventDeactivated    EventType = "deactivated"
	EventViolated       EventType = "violated"
	EventResolved       EventType = "resolved"
	EventDeleted        EventType = "deleted"
	EventRendered       EventType = "rendered"
	EventRenderingError EventType = "renderedError"
	EventVariableSet    EventType = "variableSet"
)

// UnmarshalText accepts an event type in any of its spellings.
func (t *EventType) UnmarshalText(text []byte) error {
	if *t = EventType(text); *t == "renderingError" {
		*t = EventRenderingError
	}
	return nil
}

// Event is one entry in the log of a policy.
type Event struct {
	Type      EventType      `json:"type"`
	Timestamp time.Time      `json:"timestamp"`
	Details   map[string]any `json:"details"`
}

// The limits of a policy, far above what anyone writes by hand.
const (
	maxName       = 512
	maxVariables  = 64
	maxThresholds = 32
	maxParams     = 64
	maxText       = 1024
	maxExpr       = 16 << 10
)

// Check finds all faults of the policy as it was given.
func (p *Policy) Check() error {
	var faults problem.Faults
	switch {
	case p.Name == "":
		faults.Add("name", 0, "is required")
	case !plain(p.Name, maxName):
		faults.Add("name", 0, "must be a text of at most %d bytes without control characters", maxName)
	}
	p.Subject.check(&faults)
	p.Spec.check(&faults)
	p.Action.check(&faults)
	p.Properties.check(&faults)
	if p.Properties.Confirm && p.Action.URL != "" {
		faults.Add("properties.confirm", 0, "a policy that calls a URL has no remediation that could be confirmed")
	}
	p.Variables.check(&faults)
	return faults.Err("the policy is not valid")
}
