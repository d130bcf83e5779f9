package appapply_test

import (
	"log/slog"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	appapply "github.com/littoral-project/littoral/functions/acm/app-apply"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/kubeapi"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const (
	objects = "/apis/codeco.he-codeco.eu/v1alpha1/namespaces/plant/codecoapps/"
	camera  = `{"apiVersion": "codeco.he-codeco.eu/v1alpha1", "kind": "CodecoApp", "metadata": {"name": "camera", "namespace": "plant"},
		"spec": {"appName": "camera", "qosClass": "Gold", "codecoapp-msspec": [{"serviceName": "eye",
			"podspec": {"containers": [{"name": "c", "image": "registry.k8s.io/pause:3.10"}]}}]}}`
)

// TestATickCarriesOverWhatNobodyTold: an object that was made before the source watched is taken in by the next tick, and one
// that went while it did not watch is removed.
func TestATickCarriesOverWhatNobodyTold(t *testing.T) {
	t.Parallel()
	db, api := storetest.New(t), kubeapi.Start(t, []string{"plant"}, nil)
	api.Define("codeco.he-codeco.eu", "v1alpha1", "CodecoApp", "codecoapps", true)
	api.Put(t, objects+"camera", camera)
	f, err := appapply.New(function.Platform{DB: db, Log: slog.New(slog.DiscardHandler), Settings: settings.Map(map[string]string{
		"CODECO_OBJECTS": api.KubeconfigFile(t, "objects"),
	})}.Env("acm-app-apply"))
	require.NoError(t, err)
	tick := func() {
		t.Helper()
		e := cloudevents.New()
		e.SetType(events.Tick)
		require.NoError(t, f.Work(store.WithSource(t.Context(), "/test"), e))
	}
	wanted := func() []string {
		t.Helper()
		names, err := store.Collect(t.Context(), db, "list", pgx.RowTo[string], `select name || ' ' || desired from applications where deleted_at is null`)
		require.NoError(t, err)
		return names
	}

	tick()
	require.Equal(t, []string{"camera running"}, wanted())
	tick()
	require.Equal(t, []string{"camera running"}, wanted(), "done again, it finds nothing to do")
	require.NotEmpty(t, api.Get(objects+"camera").GetFinalizers(), "it is held until all of it is gone")

	api.Forget(objects + "camera")
	tick()
	require.NotEqual(t, []string{"camera running"}, wanted())
}
