package fleet

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/shared/logs"
)

// TestPodsWriteLogs: that they begin, what they serve, how they fail and that they end; who is not heard writes nothing.
func TestPodsWriteLogs(t *testing.T) {
	t.Parallel()
	m, c := newManager(), &clock{start}
	var lines []logs.Entry
	f := newFleet(t, m, func(o *Options) {
		o.Now = c.Now
		o.Append = func(context.Context, []prometheus.Sample) error { return nil }
		o.Logs = func(_ context.Context, more []logs.Entry) error {
			lines = append(lines, more...)
			return nil
		}
	})
	round := func() string {
		lines = nil
		emit(t, f, c, 2*time.Second)
		var text strings.Builder
		for _, e := range lines {
			require.Equal(t, c.now, e.At)
			require.Equal(t, "edge", e.Cluster)
			require.NotEmpty(t, e.Application)
			require.NotEmpty(t, e.Pod)
			text.WriteString(e.Component + " " + e.Node + " " + e.Stream + " " + e.Line + "\n")
		}
		return text.String()
	}
	require.Empty(t, round())
	m.put(typeCreate, "edge", "edge-1", 1)
	poll(t, f, "edge")
	first := round()
	require.Equal(t, 2, strings.Count(first, "started on edge-1"), first)
	again := round()
	require.NotContains(t, again, "started")
	require.Equal(t, 2, strings.Count(again, "web edge-1 stdout level="), again)

	require.NoError(t, f.Set("edge-1", map[string]string{"telemetry": "none"}))
	require.Empty(t, round())
	require.NoError(t, f.Set("edge-1", map[string]string{"telemetry": ""}))
	require.NotContains(t, round(), "started")
	require.NoError(t, f.Cut("edge"))
	require.Empty(t, round())
	require.NoError(t, f.Heal("edge"))
	require.NotContains(t, round(), "started")

	require.NoError(t, f.SetComponents(map[string]string{"app:web": "crash"}))
	failing := round()
	require.Contains(t, failing, "told to end")
	require.Contains(t, failing, "stderr level=fatal")
	require.NoError(t, f.SetComponents(map[string]string{"app:web": "ok"}))
	require.Contains(t, round(), "started on edge-1")
}
