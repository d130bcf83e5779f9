package status_test

import (
	"log/slog"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/stretchr/testify/require"

	appapply "github.com/littoral-project/littoral/functions/acm/app-apply"
	status "github.com/littoral-project/littoral/functions/acm/status"
	report "github.com/littoral-project/littoral/functions/swm/report"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/swm/groups"
	"github.com/littoral-project/littoral/test/kubeapi"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const (
	camera = "/apis/codeco.he-codeco.eu/v1alpha1/namespaces/plant/codecoapps/camera"
	text   = `{"apiVersion": "codeco.he-codeco.eu/v1alpha1", "kind": "CodecoApp", "metadata": {"name": "camera", "namespace": "plant"},
		"spec": {"appName": "camera", "qosClass": "Gold", "codecoapp-msspec": [{"serviceName": "eye",
			"podspec": {"containers": [{"name": "c", "image": "registry.k8s.io/pause:3.10"}]}}]}}`
)

// TestATickWritesWhatBecomesOfAnObject: its status, and its plan.
func TestATickWritesWhatBecomesOfAnObject(t *testing.T) {
	t.Parallel()
	db, api := storetest.New(t), kubeapi.Start(t, []string{"plant"}, nil)
	api.Define("codeco.he-codeco.eu", "v1alpha1", "CodecoApp", "codecoapps", true)
	for kind, plural := range map[string]string{"AssignmentPlan": "assignmentplans", "Channel": "channels"} {
		api.Define(groups.Group, groups.Version, kind, plural, true)
	}
	api.Put(t, camera, text)
	env := function.Platform{DB: db, Log: slog.New(slog.DiscardHandler), Settings: settings.Map(map[string]string{
		"CODECO_OBJECTS": api.KubeconfigFile(t, "objects"),
	})}
	take, err := appapply.New(env.Env("acm-app-apply"))
	require.NoError(t, err)
	tell, err := status.New(env.Env("acm-status"))
	require.NoError(t, err)
	plan, err := report.New(env.Env("swm-report"))
	require.NoError(t, err)
	e := cloudevents.New()
	e.SetType(events.Tick)
	ctx := store.WithSource(t.Context(), "/test")
	require.NoError(t, take.Work(ctx, e))
	require.Empty(t, api.Get(camera).Object["status"])
	require.NoError(t, tell.Work(ctx, e))
	require.NotEmpty(t, api.Get(camera).Object["status"])
	require.NoError(t, plan.Work(ctx, e))
}
