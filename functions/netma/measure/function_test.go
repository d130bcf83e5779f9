package measure_test

import (
	"context"
	"io"
	"log/slog"
	"math"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions/netma/measure"
	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/infra/runner/prometheus/prometheustest"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/netma/links"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/swm/reservations"
	"github.com/littoral-project/littoral/shared/swm/topologies"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestWhatWasMeasuredIsTakenOverAndFaultsAreTold: from the engine of Prometheus into the table; a link that no longer keeps what
// was reserved on it is told of once, and once when it does again.
func TestWhatWasMeasuredIsTakenOverAndFaultsAreTold(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	p := prometheustest.New(t)
	server := httptest.NewServer(p.Handler())
	t.Cleanup(server.Close)
	f, err := measure.New(function.Platform{
		DB: db, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Settings: settings.Map(map[string]string{"PROMETHEUS_ADDRESS": server.URL}),
	}.Env("netma-measure"))
	require.NoError(t, err)
	ctx := store.WithSource(t.Context(), "/functions/netma-measure")
	require.NoError(t, f.Run(ctx), "nothing was measured yet")

	document, err := topologies.Parse([]byte("networkImplementation: lan\nnodes: [{name: a}, {name: b}]\n" +
		"links: [{source: a, target: b, capabilities: {bandWidthBits: 1G, latencyNanos: \"1e6\"}}]\n"))
	require.NoError(t, err)
	require.NoError(t, db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		return topologies.Save(ctx, tx, "lan", document)
	}))
	require.NoError(t, db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := reservations.Confirm(ctx, tx, "camera", reservations.Request{Source: "a", Target: "b", Class: "BESTEFFORT", Bandwidth: 50_000_000})
		return err
	}))
	at := time.Now().Add(-time.Minute)
	measured := func(kbps float64) {
		at = at.Add(5 * time.Second)
		labels := map[string]string{"source_node": "a", "target_node": "b"}
		require.NoError(t, p.Append(t.Context(), []prometheus.Sample{
			{Name: "net_rtt_ms", Labels: labels, Value: 3, At: at},
			{Name: "net_bandwidth_kbps", Labels: labels, Value: kbps, At: at},
			{Name: "net_loss_percent", Labels: labels, Value: math.NaN(), At: at},
			{Name: "net_jitter_b:a", Labels: map[string]string{"job": "lpm"}, Value: 0.5, At: at},
		}))
		require.NoError(t, f.Run(ctx))
	}
	told := func() (degraded, restored int) {
		for _, e := range storetest.Published(db) {
			switch e.Type() {
			case events.NetworkDegraded:
				degraded++
			case events.NetworkRestored:
				restored++
			}
		}
		return degraded, restored
	}
	measured(90_000)
	all, err := links.All(t.Context(), db)
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.InDelta(t, 3, *all[0].RTT, 0)
	require.Nil(t, all[0].Loss, "NaN is no measurement")
	require.InDelta(t, 0.5, *all[1].Jitter, 0)
	require.Equal(t, "b", all[1].Source)

	measured(40_000)
	measured(39_000)
	degraded, restored := told()
	require.Equal(t, []int{1, 0}, []int{degraded, restored}, "it is told once")
	all, err = links.All(t.Context(), db)
	require.NoError(t, err)
	require.Equal(t, "carries 40000 kbit/s, of which its channels need 50000", all[0].Degraded)
	measured(95_000)
	degraded, restored = told()
	require.Equal(t, []int{1, 1}, []int{degraded, restored})
}
