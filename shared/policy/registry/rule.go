package registry

import "github.com/littoral-project/littoral/shared/problem"

// RulesRequest is the body that ICOS's rules API takes (shared/docs/contracts.md §3.8).
type RulesRequest struct {
	Data RuleFile `json:"data"`
}

// RuleFile is a rule file of Prometheus, as JSON or YAML.
type RuleFile struct {
	Groups []RuleGroup `json:"groups" yaml:"groups"`
}

// RuleGroup is the group that holds the rule of one policy.
type RuleGroup struct {
	Name     string `json:"name"               yaml:"name"`
	Interval string `json:"interval,omitempty" yaml:"interval,omitempty"`
	Rules    []Rule `json:"rules"              yaml:"rules"`
}

// Rule is an alerting rule.
type Rule struct {
	Alert       string            `json:"alert"       yaml:"alert"`
	Expr        string            `json:"expr"        yaml:"expr"`
	For         string            `json:"for"         yaml:"for"`
	Labels      map[string]string `json:"labels"      yaml:"labels"`
	Annotations map[string]string `json:"annotations" yaml:"annotations"`
}

// RuleGroup is the alert rule of the policy, which must have been rendered. The error is Conflict for a policy of
// constraints, which has none.
//
// Prometheus expands templates in annotations. Only the value is meant as one; the id is ours and contains none.
func (p *Policy) RuleGroup() (RuleGroup, error) {
	spec := p.Status.RenderedSpec
	if spec == nil || spec.Type != TelemetrySpec || spec.Expr == "" {
		return RuleGroup{}, problem.New(problem.Conflict, "the policy has no expression to watch")
	}
	pending := p.Properties.PendingInterval
	if pending == "" {
		pending = "0"
	}
	return RuleGroup{Name: p.Name, Interval: p.Properties.Interval, Rules: []Rule{{
		Alert:  p.Name + ":rule-0",
		Expr:   spec.Expr,
		For:    pending,
		Labels: map[string]string{},
		Annotations: map[string]string{
			AnnotationID: p.ID, AnnotationValue: "{{ $value }}", AnnotationBackend: DefaultBackend,
		},
	}}}, nil
}
