package rules_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/stretchr/testify/require"
)

// TestTheRulesSayWhatIsMeasured: the engine of Prometheus evaluates them on an hour's worth of what cAdvisor, the node exporter and
// Kepler write, in which one container reads nothing and one node cannot be scraped half of the time.
func TestTheRulesSayWhatIsMeasured(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("rules.yml")
	require.NoError(t, err)
	queries := parser.NewParser(parser.Options{})
	groups, faults := rulefmt.Parse(text, false, model.UTF8Validation, queries, promslog.NewNopLogger())
	require.Empty(t, faults)
	storage := teststorage.New(t)
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})
	t.Cleanup(func() { _ = engine.Close() })
	zero := time.Unix(1_700_000_000, 0)
	const step, steps = 15, 9 // seconds
	now := zero.Add((steps - 1) * step * time.Second)
	store := func(at time.Time, v float64, l labels.Labels) {
		a := storage.Appender(t.Context())
		_, err := a.Append(0, l, at.UnixMilli(), v)
		require.NoError(t, err)
		require.NoError(t, a.Commit())
	}
	series := func(of func(second float64) float64, name string, pairs ...string) {
		for i := range steps {
			store(zero.Add(time.Duration(i)*step*time.Second), of(float64(i*step)),
				labels.FromStrings(append([]string{model.MetricNameLabel, name}, pairs...)...))
		}
	}
	grows := func(by float64) func(float64) float64 { return func(s float64) float64 { return by * s } }
	is := func(v float64) func(float64) float64 { return func(float64) float64 { return v } }

	const cpu, memory = "container_cpu_usage_seconds_total", "container_memory_working_set_bytes"
	at := func(pod, container string) []string {
		return []string{"namespace", "camera-1234", "pod", pod, "node", "e1", "container", container}
	}
	series(grows(0.25), cpu, at("front", "c")...)
	series(grows(0.5), cpu, at("front", "side")...)
	series(grows(9), cpu, at("front", "")...)    // the pod as a whole, which would count twice
	series(grows(9), cpu, at("front", "POD")...) // the container that holds its network
	series(grows(1), cpu, at("back", "c")...)
	series(is(1e6), memory, at("front", "c")...)
	series(is(2e6), memory, at("front", "side")...)
	series(is(5e6), memory, at("back", "c")...)
	for _, core := range []string{"0", "1"} {
		series(grows(0.75), "node_cpu_seconds_total", "instance", "e1", "cpu", core, "mode", "idle")
		series(grows(0.25), "node_cpu_seconds_total", "instance", "e1", "cpu", core, "mode", "user")
	}
	series(is(3e9), "node_memory_MemAvailable_bytes", "instance", "e1")
	series(is(4e9), "node_memory_MemTotal_bytes", "instance", "e1")
	series(is(4e9), "node_memory_MemTotal_bytes", "instance", "e2") // and nothing of what is available
	series(grows(10), "kepler_node_platform_joules_total", "instance", "e1", "package", "0")
	series(grows(2), "kepler_node_platform_joules_total", "instance", "e1", "package", "1")
	series(is(1), "up", "job", "node-exporter", "instance", "e1")
	series(func(s float64) float64 { return float64(int(s/step) % 2) }, "up", "job", "node-exporter", "instance", "e2")
	series(is(1), "up", "job", "prometheus", "instance", "p")

	got := map[string]float64{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			expr, err := queries.ParseExpr(r.Expr)
			require.NoError(t, err)
			rule := rules.NewRecordingRule(r.Record, expr, labels.FromMap(r.Labels))
			vector, err := rule.Eval(t.Context(), 0, now, rules.EngineQueryFunc(engine, storage), nil, 0)
			require.NoError(t, err, r.Expr)
			for _, s := range vector {
				store(now, s.F, s.Metric)
				var about []string
				s.Metric.Range(func(l labels.Label) {
					if l.Name != model.MetricNameLabel && l.Name != "job" {
						about = append(about, l.Value)
					}
				})
				got[r.Record+" "+strings.Join(about, " ")] = s.F
			}
		}
	}
	want := map[string]float64{
		"pod:container_cpu:rate1m camera-1234 e1 front": 0.75, "pod:container_cpu:rate1m camera-1234 e1 back": 1,
		"pod:container_memory:avg1m camera-1234 e1 front": 3e6, "pod:container_memory:avg1m camera-1234 e1 back": 5e6,
		"app:container_cpu:rate1m camera-1234": 1.75, "app:container_memory:avg1m camera-1234": 8e6,
		"instance:node_cpu:rate1m e1": 25, "instance:node_memory:avg1m e1": 25, "instance:node_energy:irate1m e1": 12,
		"instance:node_status:avg1m e1": 1, "instance:node_status:avg1m e2": 0.5,
	}
	require.Len(t, got, len(want), "%v", got)
	for name, v := range want {
		require.InDelta(t, v, got[name], 1e-6*max(1, v), name)
	}
}
