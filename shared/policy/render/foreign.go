package render

import (
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/littoral-project/littoral/shared/metricsexport/foretold"
	"github.com/littoral-project/littoral/shared/policy/registry"
)

// Selector is a selector that may match more than the subject.
type Selector struct {
	Text   string `json:"text"`
	Reason string `json:"reason"`
}

// Foreign returns the selectors of a rendered expression that may match series of tenants other than the subject's. A
// series belongs to a tenant by its icos_app_instance, so a selector is safe if one of its matchers admits only the
// subject's instance. Series about nodes (infrastructure) belong to nobody, since every tenant's policies need them. A
// subject that is not exactly one instance owns nothing; then all other selectors are foreign.
//
// The caller refuses foreign selectors unless a role allows them. It asks only about expressions that users wrote: some
// of our templates read all containers of a host in order to sum those of the subject, but do not show the others to
// anyone.
func Foreign(expr string, subject registry.Subject) ([]Selector, error) {
	tree, err := parse(expr)
	if err != nil {
		return nil, invalidAt("spec.expr", err)
	}
	instance := ""
	if _, wild := registry.Regexp(subject.AppInstance); subject.Type == registry.AppSubject && !wild {
		instance = subject.AppInstance
	}
	var foreign []Selector
	for _, n := range selectors(tree) {
		if reason := stray(n, instance); reason != "" {
			foreign = append(foreign, Selector{Text: n.String(), Reason: reason})
		}
	}
	return foreign, nil
}

// parse parses an expression without placeholders, within the limits.
func parse(expr string) (parser.Expr, error) {
	if len(expr) > maxRendered {
		return nil, fmt.Errorf("is longer than %d bytes", maxRendered)
	}
	// The scan rejects nesting that is too deep before the parser recurses into it.
	if err := nesting(expr); err != nil {
		return nil, err
	}
	tree, err := promql.ParseExpr(expr)
	if err != nil {
		return nil, errors.New(readable(err, "", nil))
	}
	return tree, measure(tree)
}

// stray returns why a selector may match other instances; empty if it cannot.
func stray(n *parser.VectorSelector, instance string) string {
	if ofNodes(n) || foretoldOfNodes(n) {
		return ""
	}
	reason := "has no matcher for " + registry.InstanceLabel
	for _, m := range n.LabelMatchers {
		if m.Name != registry.InstanceLabel {
			continue
		}
		if instance != "" && only(m, instance) {
			return ""
		}
		reason = "lets series of other application instances through"
	}
	return reason
}

// only reports whether the matcher admits exactly the one value.
func only(m *labels.Matcher, value string) bool {
	switch m.Type {
	case labels.MatchEqual:
		return m.Value == value
	case labels.MatchRegexp:
		set := m.SetMatches()
		for _, v := range set {
			if v != value {
				return false
			}
		}
		return len(set) > 0
	case labels.MatchNotEqual, labels.MatchNotRegexp:
	}
	return false
}

// metricName is the label that holds the name of a metric.
const metricName = "__name__"

// ofNodes reports whether a selector names exactly one metric, which is about nodes.
func ofNodes(n *parser.VectorSelector) bool {
	for _, m := range n.LabelMatchers {
		if m.Name == metricName && m.Type == labels.MatchEqual && infrastructure[m.Value] {
			return true
		}
	}
	return false
}

// foretoldOfNodes reports whether a selector names exactly the forecasts of one query, which is about nodes.
func foretoldOfNodes(n *parser.VectorSelector) bool {
	if n.Name != foretold.Metric && n.Name != foretold.Seconds {
		return false
	}
	for _, m := range n.LabelMatchers {
		if m.Name != foretold.Query || m.Type != labels.MatchEqual {
			continue
		}
		tree, err := parse(m.Value)
		return err == nil && !slices.ContainsFunc(selectors(tree), func(n *parser.VectorSelector) bool { return !ofNodes(n) })
	}
	return false
}

// infrastructure are the metrics of shared/topology/METRICS.md about agents, clusters and hosts. Metrics about pods and
// containers are not among them, since their series reveal what other tenants run.
var infrastructure = map[string]bool{
	"tlum_orch_info": true, "tlum_ocm_agent_info": true, "tlum_runtime_info": true, "tlum_host_info": true,
	"tlum_host_labels": true, "tlum_vnet_info": true, "tlum_info": true, "node_uname_info": true, "up": true,
	"SCA_score": true, "vulnerabilities": true, "node_mounted": true,
	"kube_node_status_capacity": true, "kube_node_spec_unschedulable": true,
	"tlum_cpu_max_freq": true, "tlum_cpu_freq": true, "node_cpu_seconds_total": true,
	"node_memory_MemTotal_bytes": true, "node_memory_MemAvailable_bytes": true, "node_memory_MemFree_bytes": true,
	"node_thermal_zone_temp": true, "scaph_host_energy_microjoules_total": true,
	"intelligence_node_cpu_utilization_prediction": true, "intelligence_node_memory_utilization_prediction": true,
	"node_network_info": true, "node_network_up": true, "node_network_address_info": true,
	"node_network_speed_bytes": true,
}
