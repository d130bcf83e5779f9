package objectapply_test

import (
	"context"
	"log/slog"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/stretchr/testify/require"

	objectapply "github.com/littoral-project/littoral/functions/swm/object-apply"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/swm/groups"
	"github.com/littoral-project/littoral/shared/swm/topologies"
	"github.com/littoral-project/littoral/test/kubeapi"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const (
	base = "/apis/qos-scheduler.siemens.com/v1alpha1/namespaces/plant/"
	site = `{"apiVersion": "qos-scheduler.siemens.com/v1alpha1", "kind": "NetworkTopology", "metadata": {"name": "site", "namespace": "plant"},
		"spec": {"networkImplementation": "SITE", "nodes": [{"name": "a"}, {"name": "b"}],
			"links": [{"name": "a-b", "source": "a", "target": "b", "capabilities": {"bandWidthBits": "100M", "latencyNanos": "1e6"}}]}}`
	group = `{"apiVersion": "qos-scheduler.siemens.com/v1alpha1", "kind": "ApplicationGroup", "metadata": {"name": "line", "namespace": "plant"},
		"spec": {"minMember": 2}}`
)

// TestATickTakesWhatNobodyTold: objects that were made before the source watched are taken by the next tick, and what went
// while it did not watch is forgotten. What came over HTTP stays.
func TestATickTakesWhatNobodyTold(t *testing.T) {
	t.Parallel()
	db, api := storetest.New(t), kubeapi.Start(t, []string{"plant"}, nil)
	for kind, plural := range map[string]string{
		"NetworkTopology": "networktopologies", "NetworkLink": "networklinks", "NetworkPath": "networkpaths",
		"Application": "applications", "ApplicationGroup": "applicationgroups",
	} {
		api.Define(groups.Group, groups.Version, kind, plural, true)
	}
	api.Put(t, base+"networktopologies/site", site)
	api.Put(t, base+"applicationgroups/line", group)
	f, err := objectapply.New(function.Platform{DB: db, Log: slog.New(slog.DiscardHandler), Settings: settings.Map(map[string]string{
		"CODECO_OBJECTS": api.KubeconfigFile(t, "objects"),
	})}.Env("swm-object-apply"))
	require.NoError(t, err)
	ctx := store.WithSource(t.Context(), "/test")
	require.NoError(t, db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		document, err := topologies.Parse([]byte(site))
		require.NoError(t, err)
		document.NetworkImplementation = "OTHER"
		return topologies.Save(ctx, tx, "over-http", document)
	}))
	tick := func() {
		t.Helper()
		e := cloudevents.New()
		e.SetType(events.Tick)
		require.NoError(t, f.Work(ctx, e))
	}
	there := func() (names []string) {
		t.Helper()
		documents, err := topologies.List(ctx, db)
		require.NoError(t, err)
		for i := range documents {
			names = append(names, documents[i].Name)
		}
		objects, err := groups.Carried(ctx, db)
		require.NoError(t, err)
		for _, key := range objects {
			names = append(names, key.String())
		}
		return names
	}

	tick()
	require.ElementsMatch(t, []string{groups.Group + "/plant/topology/site", "over-http", "ApplicationGroup plant/line"}, there())
	api.Forget(base + "networktopologies/site")
	api.Forget(base + "applicationgroups/line")
	tick()
	require.Equal(t, []string{"over-http"}, there())
}
