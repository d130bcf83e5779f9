package monitoring_test

import (
	"fmt"
	"os"
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

// pushed is one push of a host: its number, when it was sent by the host's clock, and when it arrived. The leaf began at the time start.
type pushed struct {
	host          string
	number, start float64
	sent, arrived time.Duration
}

// heardAfter evaluates the rules about telemetry every half minute while pushes arrive, and returns what they say in the end, by rule
// and host.
func heardAfter(t *testing.T, end time.Duration, pushes []pushed) map[string]map[string]float64 {
	t.Helper()
	text, err := os.ReadFile("../examples/topology-rules.yml")
	require.NoError(t, err)
	queries := parser.NewParser(parser.Options{})
	groups, faults := rulefmt.Parse(text, false, model.UTF8Validation, queries, promslog.NewNopLogger())
	require.Empty(t, faults)
	storage := teststorage.New(t)
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})
	t.Cleanup(func() { _ = engine.Close() })
	zero := time.Unix(1_700_000_000, 0)
	store := func(name, host string, at time.Time, v float64) {
		a := storage.Appender(t.Context())
		_, err := a.Append(0, labels.FromStrings(model.MetricNameLabel, name, "icos_agent_id", "a", "icos_host_id", host), at.UnixMilli(), v)
		require.NoError(t, err)
		require.NoError(t, a.Commit())
	}
	found := map[string]map[string]float64{}
	for now := time.Duration(0); now <= end; now += 30 * time.Second {
		for _, p := range pushes {
			if p.arrived > now-30*time.Second && p.arrived <= now {
				store("tlum_host_info", p.host, zero.Add(p.sent), 1)
				store("tlum_leaf_pushes_total", p.host, zero.Add(p.sent), p.number)
				store("tlum_leaf_start_time_seconds", p.host, zero.Add(p.sent), p.start)
			}
		}
		for _, group := range groups.Groups {
			if group.Name != "littoral-telemetry" {
				continue
			}
			for _, r := range group.Rules {
				expr, err := queries.ParseExpr(r.Expr)
				require.NoError(t, err)
				rule := rules.NewRecordingRule(r.Record, expr, labels.EmptyLabels())
				vector, err := rule.Eval(t.Context(), 0, zero.Add(now), rules.EngineQueryFunc(engine, storage), nil, 0)
				require.NoError(t, err, r.Expr)
				found[r.Record] = map[string]float64{}
				for _, s := range vector {
					host := s.Metric.Get("icos_host_id")
					found[r.Record][host] = s.F
					store(r.Record, host, zero.Add(now), s.F)
				}
			}
		}
	}
	return found
}

// TestWhatIsLostOrLateIsTold: by the rules of the example, on pushes that come, do not come, and come late.
func TestWhatIsLostOrLateIsTold(t *testing.T) {
	t.Parallel()
	var all []pushed
	host := func(name string, change func(*pushed) bool) {
		for i := range 80 {
			sent := time.Duration(i) * 15 * time.Second
			p := pushed{name, float64(i + 1), 7, sent, sent}
			if change(&p) {
				all = append(all, p)
			}
		}
	}
	away := func(p *pushed) bool { return p.sent >= 14*time.Minute && p.sent < 17*time.Minute }
	host("well", func(*pushed) bool { return true })
	host("lost", func(p *pushed) bool { return !away(p) })
	host("late", func(p *pushed) bool {
		if away(p) {
			p.arrived = 17 * time.Minute
		}
		return true
	})
	host("anew", func(p *pushed) bool { // the leaf was started again
		if p.sent >= 15*time.Minute {
			p.number, p.start = p.number-60, 8
		}
		return true
	})
	host("back", func(p *pushed) bool { // numbers go back, though the leaf is the same
		if p.number == 70 {
			p.number = 40
		}
		return true
	})
	// What is late has to be stored in order of the time: it arrives before what is sent afterwards.
	found := heardAfter(t, 19*time.Minute+30*time.Second, all)
	lost := found["littoral_telemetry_lost_samples"]
	require.InDelta(t, 0, lost["well"], 0)
	require.InDelta(t, 12, lost["lost"], 0)
	require.InDelta(t, 0, lost["late"], 0)
	require.NotContains(t, lost, "anew", fmt.Sprint(lost))
	late := found["littoral_telemetry_late_seconds"]
	require.Len(t, late, 1, "%v", late)
	require.InDelta(t, 180, late["late"], 45)
	disordered := found["littoral_telemetry_disordered_samples"]
	require.InDelta(t, 1, disordered["back"], 0)
	require.InDelta(t, 0, disordered["well"], 0)
	require.NotContains(t, disordered, "anew")
	require.InDelta(t, 0, found["littoral_telemetry_age_seconds"]["well"], 30)
}
