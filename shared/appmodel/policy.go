package appmodel

import (
	"iter"
	"slices"
	"strings"
	"time"
)

// PolicyKind is what a policy is about, in whichever form it was written.
type PolicyKind string

// The kinds. A policy of any other type is kept as KindOther and has no effect.
const (
	KindSecurity      PolicyKind = "security"                // Score
	KindNodeUsage     PolicyKind = "node-resource-usage"     // Usage
	KindLostTelemetry PolicyKind = "redeployOnLostTelemetry" // Timeout
	KindScheduler     PolicyKind = "scheduler"               // Weights
	KindCustom        PolicyKind = "custom"                  // FromTemplate or Spec
	KindOther         PolicyKind = "other"
)

// Policy is one rule in normal form; which of the fields from Score on are set depends on Kind.
type Policy struct {
	Kind        PolicyKind     `json:"kind"`
	Name        string         `json:"name,omitempty"`      // as written; the policy manager numbers the others
	Type        string         `json:"type,omitempty"`      // as written; empty in the short forms
	Component   string         `json:"component,omitempty"` // whose section it stands in; empty: the top level
	ApplyTo     []string       `json:"applyTo,omitempty"`   // of the top level: only these components; empty: all
	Remediation string         `json:"remediation"`         // canonical, see Remediation; the default is filled in
	Variables   map[string]any `json:"variables,omitempty"` // text, int64, float64 or bool
	Properties  map[string]any `json:"properties,omitempty"`
	Pending     time.Duration  `json:"pending,omitempty"`  // properties.pendingInterval
	Forecast    time.Duration  `json:"forecast,omitempty"` // how far ahead a violation counts; 0 = not before it happens

	Confirm bool `json:"confirm,omitempty"` // the remediation waits for a person's word

	Score        int           `json:"score,omitempty"` // least SCA score, 0 to 100
	Level        string        `json:"level,omitempty"` // high, medium or low; empty when a threshold was given
	Usage        *Usage        `json:"usage,omitempty"`
	Timeout      time.Duration `json:"timeout,omitempty"` // longest silence
	Weights      *Weights      `json:"weights,omitempty"`
	FromTemplate string        `json:"fromTemplate,omitempty"`
	Spec         *Spec         `json:"spec,omitempty"`

	// Raw is the policy as written, in the types of encoding/json with int64 for whole numbers.
	Raw map[string]any `json:"raw,omitempty"`
}

// Usage limits the load of the node a component runs on. A zero limits nothing.
type Usage struct {
	CPUMax     float64 `json:"cpuMax,omitempty"`    // share of the cpu in use, above 0 to 1
	MemoryMax  float64 `json:"memoryMax,omitempty"` // share of the memory in use, above 0 to 1
	MemoryFree int64   `json:"memoryFree,omitempty"`
	ExcludeApp bool    `json:"excludeApp"` // leave out what the application itself uses; true unless said otherwise
}

// Weights is how much each score counts. They sum to one.
type Weights struct {
	Performance float64 `json:"performance"`
	Energy      float64 `json:"energy"`
	Security    float64 `json:"security"`
}

// Spec is a custom rule: a PromQL expression, or constraints for another backend.
type Spec struct {
	Expr        string             `json:"expr,omitempty"`
	ViolatedIf  string             `json:"violatedIf,omitempty"` // appended to Expr
	Thresholds  map[string]float64 `json:"thresholds,omitempty"`
	Constraints map[string]any     `json:"constraints,omitempty"`
	Description string             `json:"description,omitempty"`
}

// Remediations, as they are written in normal form.
const (
	RemediationNone       = "none" // record it only
	RemediationReallocate = "reallocate"
)

var remediations = map[string]string{
	"none":     RemediationNone,
	"redeploy": RemediationReallocate, "migrate": RemediationReallocate,
	"reallocation": RemediationReallocate, "reallocate": RemediationReallocate,
	"scale-up": "scale-up", "scale-down": "scale-down", "scale-out": "scale-out", "scale-in": "scale-in",
	"patch": "patch", "replace": "replace", "secure": "secure",
}

// Remediation returns the canonical name of a remediation: reallocate for redeploy, migrate, reallocation and itself;
// none, scale-up, scale-down, scale-out, scale-in, patch, replace and secure for themselves. ok is false for any other.
func Remediation(name string) (canonical string, ok bool) {
	canonical, ok = remediations[strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "_", "-")]
	return canonical, ok
}

// AppliesTo reports whether the policy applies to the component of that name.
func (p *Policy) AppliesTo(component string) bool {
	if p.Component != "" {
		return p.Component == component
	}
	return len(p.ApplyTo) == 0 || slices.Contains(p.ApplyTo, component)
}

// Applying yields the policies of a component: those of the top level first, then its own.
func (a *Application) Applying(component string) iter.Seq[*Policy] {
	return func(yield func(*Policy) bool) {
		for i := range a.Policies {
			if p := &a.Policies[i]; p.AppliesTo(component) && !yield(p) {
				return
			}
		}
		c := a.Component(component)
		for i := 0; c != nil && i < len(c.Policies); i++ {
			if !yield(&c.Policies[i]) {
				return
			}
		}
	}
}
