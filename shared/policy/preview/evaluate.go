// Package preview asks the telemetry store for the present and past values of a policy's expression.
package preview

import (
	"context"
	"math"
	"time"

	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/policy/render"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/telemetry"
)

// Shown is what a policy would watch.
type Shown struct {
	Expr       string         `json:"expr"`
	ViolatedIf string         `json:"violatedIf,omitempty"`
	Spec       *registry.Spec `json:"renderedSpec"`
	// Series is the number of series that the expression looks at, Violating the number of those that violate the
	// policy now, and Value the worst of their values. They are null if telemetry cannot be queried; Unavailable then
	// has the reason.
	Series      *int     `json:"series"`
	Violating   *int     `json:"violating"`
	Value       *float64 `json:"value"`
	Samples     []Sample `json:"samples"`
	Unavailable string   `json:"unavailable,omitempty"`
}

// Sample is a value with its labels.
type Sample struct {
	Labels map[string]string `json:"labels"`
	Value  float64           `json:"value"`
}

const (
	patience   = 8 * time.Second
	maxSamples = 20 // listed in an answer
)

// Evaluate shows the values of a rendered spec at an instant.
func Evaluate(ctx context.Context, c *telemetry.Client, spec registry.Spec, at time.Time) (*Shown, error) {
	if spec.Type != registry.TelemetrySpec {
		return nil, problem.New(problem.Conflict, "the policy has no expression to watch")
	}
	watched, err := render.Watched(spec.Expr)
	if err != nil {
		return nil, err
	}
	shown := &Shown{Expr: spec.Expr, ViolatedIf: spec.ViolatedIf, Spec: &spec, Samples: []Sample{}}
	answers := c.Ask(ctx, map[string]string{"watched": watched, "violating": spec.Expr}, at, patience)
	for _, a := range answers {
		if a.Err != nil {
			shown.Unavailable = a.Err.Error()
			return shown, nil
		}
	}
	shown.count(answers["watched"].Samples, answers["violating"].Samples)
	return shown, nil
}

func (s *Shown) count(watched, violating []telemetry.Sample) {
	series, bad := len(watched), len(violating)
	s.Series, s.Violating = &series, &bad
	operator, _ := registry.Comparison(s.ViolatedIf)
	for _, sample := range watched {
		if math.IsNaN(sample.Value) || math.IsInf(sample.Value, 0) {
			continue // JSON cannot represent NaN and Inf
		}
		if len(s.Samples) < maxSamples {
			s.Samples = append(s.Samples, Sample{sample.Labels, sample.Value})
		}
		if s.Value == nil || worse(operator, sample.Value, *s.Value) {
			s.Value = &sample.Value
		}
	}
}

// worse compares values in the direction of the violation.
func worse(operator string, a, b float64) bool {
	if operator == "<" || operator == "<=" {
		return a < b
	}
	return a > b
}
