// Package examples has the rules that a Prometheus beside Littoral evaluates.
package examples

import (
	_ "embed"
	"fmt"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

//go:embed topology-rules.yml
var rules []byte

// Telemetry is the rule file with the group about what telemetry has lost or got late, without the alerts that are for a clock.
func Telemetry() ([]byte, error) {
	groups, faults := rulefmt.Parse(rules, false, model.UTF8Validation, parser.NewParser(parser.Options{}), promslog.NewNopLogger())
	if len(faults) > 0 {
		return nil, faults[0]
	}
	for _, g := range groups.Groups {
		if g.Name == "littoral-telemetry" {
			return yaml.Marshal(map[string]any{"groups": []rulefmt.RuleGroup{g}})
		}
	}
	return nil, fmt.Errorf("the rules have no group about telemetry")
}
