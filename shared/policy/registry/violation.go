package registry

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/littoral-project/littoral/shared/problem"
)

// The annotations with which an alert names its policy.
const (
	AnnotationID      = "plm_id"
	AnnotationValue   = "plm_expr_value"
	AnnotationBackend = "plm_measurement_backend"
)

// LabelID is the label that tells apart the alerts of two policies with the same name. It says nothing about their
// subjects.
const LabelID = "plm_id"

// OutOfRange is the threshold of a violating value that is beyond none of the named thresholds.
const OutOfRange = "__out_of_range__"

// Violation is what an action sends (shared/docs/contracts.md §3.9).
type Violation struct {
	ID                 string            `json:"id"`
	CurrentValue       string            `json:"currentValue"`
	Threshold          *string           `json:"threshold"` // a named threshold, OutOfRange, or null without any
	PolicyName         string            `json:"policyName"`
	PolicyID           string            `json:"policyId"`
	MeasurementBackend string            `json:"measurementBackend"`
	ExtraLabels        map[string]string `json:"extraLabels"`
	Subject            Subject           `json:"subject"`
}

// Violation makes the message about an alert with these labels and annotations. The subject is the policy's, with
// wildcards replaced by the real names from the alert.
//
// An alert names its subject only as far as the expression keeps the labels. A plain name in the policy needs no label;
// for a wildcard a missing label is an error. A label outside the policy's subject is an error too: an expression can
// set any label, and must not turn another's application into its subject.
func (p *Policy) Violation(id string, labels, annotations map[string]string) (Violation, error) {
	v := Violation{
		ID: id, CurrentValue: annotations[AnnotationValue], PolicyName: p.Name, PolicyID: p.ID,
		MeasurementBackend: annotations[AnnotationBackend], ExtraLabels: maps.Clone(labels), Subject: p.Subject,
	}
	if v.MeasurementBackend == "" {
		v.MeasurementBackend = DefaultBackend
	}
	if v.ExtraLabels == nil {
		v.ExtraLabels = map[string]string{}
	}
	delete(v.ExtraLabels, LabelID)
	v.Subject.Custom = maps.Clone(p.Subject.Custom)
	fields := p.Subject.Fields()
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		label := field
		if known, ok := labelNames[field]; ok && p.Subject.Type != CustomSubject {
			label = known
		}
		value, meant := labels[label], fields[field]
		delete(v.ExtraLabels, label)
		_, wild := Regexp(meant)
		switch {
		case value == "" && !wild:
			value = meant
		case value == "":
			return Violation{}, problem.New(problem.Invalid, "the alert has no label %s, and the policy is about %s", label,
				short(meant))
		case !Matches(meant, value):
			return Violation{}, problem.New(problem.Invalid, "the alert's label %s is %s, and the policy is about %s", label,
				short(value), short(meant))
		}
		if p.Subject.Type == CustomSubject {
			v.Subject.Custom[field] = value
		} else {
			v.Subject.set(field, value)
		}
	}
	v.Threshold = p.threshold(v.CurrentValue)
	return v, nil
}

// threshold names the worst threshold that the value is beyond, in the direction of the comparison.
func (p *Policy) threshold(current string) *string {
	spec := p.Status.RenderedSpec
	if spec == nil || len(spec.Thresholds) == 0 {
		return nil
	}
	worst := OutOfRange
	value, err := strconv.ParseFloat(current, 64)
	operator, _ := Comparison(spec.ViolatedIf)
	if err != nil || math.IsNaN(value) {
		return &worst
	}
	best := math.Inf(-1)
	for _, name := range slices.Sorted(maps.Keys(spec.Thresholds)) {
		limit := spec.Thresholds[name]
		var beyond bool
		var severity float64
		switch operator {
		case ">":
			beyond, severity = value > limit, limit
		case ">=":
			beyond, severity = value >= limit, limit
		case "<":
			beyond, severity = value < limit, -limit
		case "<=":
			beyond, severity = value <= limit, -limit
		case "==":
			beyond = value == limit
		case "!=":
			beyond, severity = value != limit, math.Abs(value-limit)
		}
		if beyond && severity > best {
			worst, best = name, severity
		}
	}
	return &worst
}

// Comparison splits off the operator that a condition such as ">= 0.5" begins with; empty when it has none.
func Comparison(condition string) (operator, rest string) {
	condition = strings.TrimSpace(condition)
	for _, operator := range []string{">=", "<=", "==", "!=", ">", "<"} {
		if rest, ok := strings.CutPrefix(condition, operator); ok {
			return operator, strings.TrimSpace(rest)
		}
	}
	return "", condition
}

// Body is the payload together with the extra parameters, which do not override its own fields.
func (v Violation) Body(extra map[string]string) (map[string]any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("violation: %w", err)
	}
	body := make(map[string]any, len(extra)+8)
	for name, value := range extra {
		body[name] = value
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil, fmt.Errorf("violation: %w", err)
	}
	return body, nil
}

// Flatten is the payload in the form for a GET: nested names joined with dots, null as an empty text.
func Flatten(body map[string]any) map[string]string {
	flat := map[string]string{}
	flatten(flat, "", body)
	return flat
}

func flatten(flat map[string]string, prefix string, value any) {
	switch value := value.(type) {
	case nil:
	case string:
		flat[prefix] = value
	case map[string]any:
		for name, inner := range value {
			if prefix != "" {
				name = prefix + "." + name
			}
			flatten(flat, name, inner)
		}
	default:
		flat[prefix] = fmt.Sprint(value)
	}
}
