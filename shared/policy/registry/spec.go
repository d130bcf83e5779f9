package registry

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/littoral-project/littoral/shared/policy/template"
	"github.com/littoral-project/littoral/shared/problem"
)

// SpecType is how a policy says what must hold.
type SpecType string

// The types of specs.
const (
	TemplateSpec    SpecType = "template"
	TelemetrySpec   SpecType = "telemetryQuery"
	ConstraintsSpec SpecType = "constraints" // for another backend, without telemetry
)

// Spec says what must hold.
type Spec struct {
	Type        SpecType
	Description string

	TemplateName string // of a template

	Expr       string             // a query; the policy is violated while it yields samples
	ViolatedIf string             // a comparison to append to Expr, such as "> 0.5"
	Thresholds map[string]float64 // named values of the query

	Constraints map[string]string
}

type specWire struct {
	Description  string              `json:"description"`
	Type         SpecType            `json:"type"`
	TemplateName string              `json:"templateName,omitempty"`
	Expr         *string             `json:"expr,omitempty"`
	ViolatedIf   *string             `json:"violatedIf"`
	Thresholds   *map[string]float64 `json:"thresholds"`
	Constraints  map[string]string   `json:"constraints,omitempty"`
}

// MarshalJSON writes the fields of the spec's type; a query without comparison or thresholds has null there.
func (s Spec) MarshalJSON() ([]byte, error) {
	out := map[string]any{"description": s.Description, "type": s.Type}
	switch s.Type {
	case TemplateSpec:
		out["templateName"] = s.TemplateName
	case ConstraintsSpec:
		out["constraints"] = s.Constraints
	case TelemetrySpec:
		out["expr"], out["violatedIf"], out["thresholds"] = s.Expr, nil, nil
		if s.ViolatedIf != "" {
			out["violatedIf"] = s.ViolatedIf
		}
		if len(s.Thresholds) > 0 {
			out["thresholds"] = s.Thresholds
		}
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads a spec. If its type is missing, the fields determine it.
func (s *Spec) UnmarshalJSON(raw []byte) error {
	var w specWire
	if err := json.Unmarshal(raw, &w); err != nil {
		return problem.Wrap(problem.Invalid, err, "spec has a field of the wrong type")
	}
	*s = Spec{
		Type: w.Type, Description: w.Description, TemplateName: w.TemplateName, Constraints: w.Constraints,
	}
	if w.Expr != nil {
		s.Expr = *w.Expr
	}
	if w.ViolatedIf != nil {
		s.ViolatedIf = strings.TrimSpace(*w.ViolatedIf)
	}
	if w.Thresholds != nil {
		s.Thresholds = *w.Thresholds
	}
	switch {
	case s.Type != "":
	case s.TemplateName != "":
		s.Type = TemplateSpec
	case w.Expr != nil:
		s.Type = TelemetrySpec
	case w.Constraints != nil:
		s.Type = ConstraintsSpec
	}
	return nil
}

func (s *Spec) check(faults *problem.Faults) {
	switch s.Type {
	case TemplateSpec:
		if _, known := template.Lookup(s.TemplateName); !known {
			faults.Add("spec.templateName", 0, "%q is not a template: %s", short(s.TemplateName),
				strings.Join(template.Names(), ", "))
		}
	case TelemetrySpec:
		switch {
		case strings.TrimSpace(s.Expr) == "":
			faults.Add("spec.expr", 0, "is required")
		case len(s.Expr) > maxExpr:
			faults.Add("spec.expr", 0, "is longer than %d bytes", maxExpr)
		}
		s.checkThresholds(faults)
	case ConstraintsSpec:
		if len(s.Constraints) == 0 || len(s.Constraints) > maxVariables {
			faults.Add("spec.constraints", 0, "must have at least one entry and at most %d", maxVariables)
		}
	default:
		faults.Add("spec.type", 0, "must be template, telemetryQuery or constraints")
	}
}

func (s *Spec) checkThresholds(faults *problem.Faults) {
	if len(s.Thresholds) > maxThresholds {
		faults.Add("spec.thresholds", 0, "has %d entries; %d are allowed", len(s.Thresholds), maxThresholds)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.Thresholds)) {
		value := s.Thresholds[name]
		if name == "" || !plain(name, maxName) || math.IsNaN(value) || math.IsInf(value, 0) {
			faults.Add("spec.thresholds", 0, "must give names to finite numbers")
		}
	}
}

// short makes a text short enough for an answer.
func short(text string) string { return problem.Brief(text, 64) }
