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

// The annotations by which an alert finds back to its policy.
const (
	AnnotationID      = "plm_id"
	AnnotationValue   = "plm_expr_value"
	AnnotationBackend = "plm_measurement_backend"
)

// LabelID is the label that tells the alerts of two policies of one name apart. It says nothing about their subjects.
const LabelID = "plm_id"

// OutOfRange is the threshold of a value that is violated but beyond none of the named ones.
const OutOfRange = "__out_of_range__"

// Violation is what an action sends (contracts/icos.md §3.9).
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

// Violation tells what an alert with these labels and annotations means for the policy. The subject is the policy's,
// with the real names of the alert in place of wildcards.
//
// An alert names its subject only as far as the expression keeps the labels: where the policy has a plain name, that
// name stands; where it has a wildcard, a missing label is an error. So is a label that the policy does not mean: an
// expression can set any label, and must not turn another's application into its subject.
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

// threshold names the worst of the thresholds that the value is beyond, in the direction of the comparison.
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

// Comparison splits the comparison that a condition such as ">= 0.5" begins with from the rest; empty when it has none.
func Comparison(condition string) (operator, rest string) {
	condition = strings.TrimSpace(condition)
	for _, operator := range []string{">=", "<=", "==", "!=", ">", "<"} {
		if rest, ok := strings.CutPrefix(condition, operator); ok {
			return operator, strings.TrimSpace(rest)
		}
	}
	return "", condition
}

// Body is the payload with the extra parameters beside its own fields; those keep their values.
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

// Flatten is the payload as a GET carries it: nested names joined with dots, null as nothing.
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
