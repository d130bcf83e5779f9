package stats_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/test/bench/stats"
)

func TestSample(t *testing.T) {
	t.Parallel()
	s := stats.Sample{4, 1, 3, 2}
	require.InDelta(t, 1, s.Quantile(0), 0)
	require.InDelta(t, 2, s.P50(), 0)
	require.InDelta(t, 4, s.P95(), 0)
	require.InDelta(t, 2.5, s.Median(), 0)
	require.InDelta(t, 3, s[:3].Median(), 0)
	require.Equal(t, stats.Sample{4, 1, 3, 2}, s, "in the order of the runs")
}

func TestOfNothingThereIsNoNumber(t *testing.T) {
	t.Parallel()
	var none stats.Sample
	require.True(t, math.IsNaN(none.P50()))
	require.True(t, math.IsNaN(none.Median()))
	text, err := json.Marshal([]stats.Number{stats.Number(none.P95()), 1.5})
	require.NoError(t, err)
	require.JSONEq(t, `[null, 1.5]`, string(text))
}
