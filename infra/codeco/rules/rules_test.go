// Package rules_test holds CODECO's recording rules to their contract.
package rules_test

import (
	"os"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// TestTheRulesOfTheContractAreThere: each name that CODECO's tools ask for, in a file that Prometheus reads, and the same as an object.
func TestTheRulesOfTheContractAreThere(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("rules.yml")
	require.NoError(t, err)
	groups, faults := rulefmt.Parse(text, false, model.UTF8Validation, parser.NewParser(parser.Options{}), promslog.NewNopLogger())
	require.Empty(t, faults)
	var names []string
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			names = append(names, r.Record)
		}
	}
	require.ElementsMatch(t, []string{
		"pod:container_cpu:rate1m", "pod:container_memory:avg1m", "app:container_cpu:rate1m", "app:container_memory:avg1m",
		"instance:node_cpu:rate1m", "instance:node_memory:avg1m", "instance:node_energy:irate1m", "instance:node_status:avg1m",
	}, names)

	var file map[string]any
	require.NoError(t, yaml.Unmarshal(text, &file))
	text, err = os.ReadFile("prometheusrule.yaml")
	require.NoError(t, err)
	var object struct {
		Kind string
		Spec map[string]any
	}
	require.NoError(t, yaml.Unmarshal(text, &object))
	require.Equal(t, "PrometheusRule", object.Kind)
	require.Equal(t, file, object.Spec)
}
