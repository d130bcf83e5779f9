package links_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/netma/links"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestForecastsOfLinks: metrics that metrics export foresees are forecasts of links when they are called like a figure and have both
// ends; what is over is none.
func TestForecastsOfLinks(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	now := time.Now().UTC().Truncate(time.Second)
	for _, f := range []struct {
		metric, labels, steps string
		first                 time.Time
	}{
		{"net_rtt_ms_forecast", `{"source_node": "a", "target_node": "b"}`, `[5, -1]`, now.Add(time.Minute)},
		{"net_rtt_ms_second", `{"source_node": "a", "target_node": "b"}`, `[9]`, now.Add(time.Minute)},
		{"net_rtt_mst", `{"source_node": "a", "target_node": "b"}`, `[9]`, now.Add(time.Minute)},
		{"net_jitter_ms_forecast", `{"source_node": "a", "target_node": "b"}`, `[1]`, now.Add(-time.Minute)},
		{"net_loss_percent_forecast", `{"host": "a"}`, `[1]`, now.Add(time.Minute)},
		{"load_forecast", `{"source_node": "a", "target_node": "b"}`, `[1]`, now.Add(time.Minute)},
	} {
		_, err := db.Exec(t.Context(), `with m as (insert into metrics (name, type, help, labels, states, created_by) values ($1, 'gauge', '', '{}', '{}', 'anna')
returning name), f as (insert into metric_forecasts (metric, query, model, model_type, step_seconds, sequence, ahead, labels)
select name, 'q', 'm:1', '', 60, 12, 2, '{}' from m returning metric)
insert into metric_series (metric, labels, value, steps, first_at) select metric, $2, 1, $3, $4 from f`, f.metric, f.labels, f.steps, f.first)
		require.NoError(t, err)
	}
	all, err := links.Foreseen(t.Context(), db)
	require.NoError(t, err)
	require.Len(t, all, 1)
	f := all[0]
	require.Equal(t, links.Forecast{
		Source: "a", Target: "b", Metric: "net_rtt_ms", FirstAt: f.FirstAt, Step: time.Minute, Values: []float64{5, -1},
	}, f)
	for after, want := range map[time.Duration]float64{0: 5, time.Minute: 5, 61 * time.Second: 0, time.Hour: 0} {
		require.InDelta(t, want, f.At(now.Add(after)), 0, "%s", after)
	}

	measured := []links.Measurement{{Source: "a", Target: "b", Figures: links.Figures{RTT: links.Known(2), Loss: links.Known(1)}}}
	expected := links.Expected(measured, append(all, links.Forecast{Source: "b", Target: "a", Metric: "net_rtt_ms", Values: []float64{1}}), now)
	require.Len(t, expected, 1)
	require.InDelta(t, 5, *expected[0].RTT, 0)
	require.InDelta(t, 1, *expected[0].Loss, 0)
	require.InDelta(t, 2, *measured[0].RTT, 0, "what was measured stays")

	worst := links.Worst([]links.Measurement{{Source: "a", Target: "b", Figures: links.Figures{RTT: links.Known(6)}}}, []links.Forecast{
		{Source: "a", Target: "b", Metric: "net_rtt_ms", FirstAt: now.Add(time.Minute), Step: 20 * time.Minute, Values: []float64{3, 8, 9}},
		{Source: "a", Target: "b", Metric: "net_bandwidth_kbps", FirstAt: now.Add(-time.Minute), Step: 5 * time.Minute, Values: []float64{10, 50, 40, 60}},
	}, now)
	require.InDelta(t, 8, *worst[0].RTT, 0, "the last is too far away")
	require.InDelta(t, 40, *worst[0].Bandwidth, 0, "the first is over")
}
