package overlayapply_test

import (
	"log/slog"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/stretchr/testify/require"

	overlayapply "github.com/littoral-project/littoral/functions/netma/overlay-apply"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/netma/l2sm"
	"github.com/littoral-project/littoral/shared/netma/links"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/kubeapi"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const path = "/apis/l2sm.l2sm.k8s.local/v1/namespaces/net/overlays/site"

// overlay is one as its operator leaves it, with a metric of its own, one that is no number, and the link to itself.
func overlay(ab string) string {
	return `{"apiVersion": "l2sm.l2sm.k8s.local/v1", "kind": "Overlay", "metadata": {"name": "site", "namespace": "net"},
		"spec": {"topology": {"nodes": ["a", "b"], "links": [{"endpointA": "a", "endpointB": "b"}]}},
		"status": {"linkMetrics": [` + ab + `,
			{"sourceNode": "b", "targetNode": "a", "status": "Up", "metrics": [{"name": "rtt", "value": "n/a"}, {"name": "taste", "value": "3"}]},
			{"sourceNode": "a", "targetNode": "a", "status": "Up"}]}}`
}

// TestOverlaysAreMeasurements: at an event, and at a tick for what nobody told; a link that was down carries again when it is up.
func TestOverlaysAreMeasurements(t *testing.T) {
	t.Parallel()
	db, api := storetest.New(t), kubeapi.Start(t, []string{"net"}, nil)
	api.Define(l2sm.Group, l2sm.Version, l2sm.Overlay, l2sm.Plural, true)
	open := func(l2sm string) *overlayapply.Function {
		f, err := overlayapply.New(function.Platform{DB: db, Log: slog.New(slog.DiscardHandler), Settings: settings.Map(map[string]string{
			"CODECO_OBJECTS": api.KubeconfigFile(t, "objects"), "L2SM": l2sm,
		})}.Env("netma-overlay-apply"))
		require.NoError(t, err)
		return f
	}
	f := open("true")
	ctx := store.WithSource(t.Context(), "/test")
	work := func(f *overlayapply.Function, typ string) {
		t.Helper()
		e := cloudevents.New()
		e.SetType(typ)
		require.NoError(t, e.SetData(cloudevents.ApplicationJSON, map[string]any{
			"kind": "Overlay", "metadata": map[string]any{"namespace": "net", "name": "site"},
		}))
		require.NoError(t, f.Work(ctx, e))
	}
	there := func() (ab, ba *links.Measurement) {
		t.Helper()
		all, err := links.All(ctx, db)
		require.NoError(t, err)
		for i := range all {
			switch all[i].Source + all[i].Target {
			case "ab":
				ab = &all[i]
			case "ba":
				ba = &all[i]
			default:
				require.Fail(t, "who has measured this?", "%+v", all[i])
			}
		}
		return ab, ba
	}

	work(f, events.ObjectAdded) // of what is gone already
	api.Put(t, path, overlay(`{"sourceNode": "a", "targetNode": "b", "status": "Up", "metrics": [{"name": "rtt", "value": "12.5"}, {"name": "throughput", "value": "900000"}]}`))
	work(open("false"), events.Tick)
	ab, _ := there()
	require.Nil(t, ab, "the cluster has no L2S-M")
	work(f, events.ObjectUpdated)
	ab, ba := there()
	require.InDelta(t, 12.5, *ab.RTT, 0)
	require.InDelta(t, 900_000, *ab.Throughput, 0)
	require.Nil(t, ba.RTT, "it is no number")

	api.Put(t, path, overlay(`{"sourceNode": "a", "targetNode": "b", "status": "Down"}`))
	work(f, events.Tick)
	ab, _ = there()
	require.Zero(t, *ab.Bandwidth)
	require.InDelta(t, 100, *ab.Loss, 0)

	api.Put(t, path, overlay(`{"sourceNode": "a", "targetNode": "b", "status": "Up", "metrics": [{"name": "rtt", "value": "13"}]}`))
	work(f, events.Tick)
	ab, _ = there()
	require.Nil(t, ab.Bandwidth)
	require.Nil(t, ab.Loss)
	require.InDelta(t, 13, *ab.RTT, 0)
}
