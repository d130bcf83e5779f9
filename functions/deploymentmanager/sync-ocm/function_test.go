package syncocm_test

import (
	"encoding/json"
	"log/slog"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	syncocm "github.com/littoral-project/littoral/functions/deploymentmanager/sync-ocm"
	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator/deploy"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/kubeapi"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const descriptor = `
name: shop
components:
  - name: web
    type: kubernetes
    manifests: [{name: web, manifest: {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: w, image: i}]}}}]
`

// newFunction returns the function with a hub, its one agent, and an application whose job it took at a first tick.
func newFunction(t *testing.T) (*deploy.Syncer, *kubeapi.Server, *kubeapi.Agent, func() *job.Job) {
	t.Helper()
	db, hub := storetest.New(t), kubeapi.Start(t, nil, nil)
	agent := kubeapi.Join(t, hub, kubeapi.Start(t, nil, []string{"edge-a"}), "edge")
	f, err := syncocm.New(function.Platform{
		DB: db, Log: slog.New(slog.DiscardHandler),
		Settings: settings.Map(map[string]string{"DEPLOYMENTMANAGER_SYNC_OCM_OCM_HUB": hub.KubeconfigFile(t, "hub")}),
	}.Env("deploymentmanager-sync-ocm"))
	require.NoError(t, err)
	id := applicationtest.Submit(t, db, descriptor).ID
	applicationtest.Place(t, db, id, job.Target{Orchestrator: "ocm", Cluster: "edge", Node: "edge-a"})
	return f, hub, agent, func() *job.Job { return applicationtest.Job(t, db, id) }
}

func newEvent(t *testing.T, typ string, data any) cloudevents.Event {
	t.Helper()
	e := cloudevents.New()
	e.SetID(uuid.NewString())
	e.SetSource("/test")
	e.SetType(typ)
	require.NoError(t, e.SetData(cloudevents.ApplicationJSON, data))
	return e
}

func TestATickComparesAllJobs(t *testing.T) {
	f, _, agent, j := newFunction(t)
	tick := newEvent(t, events.Tick, map[string]any{})
	require.NoError(t, f.Work(t.Context(), tick), "it takes what nobody was told of")
	require.Equal(t, job.Progressing, j().State)
	agent.Work()
	require.NoError(t, f.Work(t.Context(), tick))
	require.True(t, j().Available())
}

func TestAChangedWorkIsCompared(t *testing.T) {
	f, hub, agent, j := newFunction(t)
	require.NoError(t, f.Work(t.Context(), newEvent(t, events.Tick, map[string]any{})))
	path := hub.Paths("/manifestworks/")[0]
	before := hub.Get(path)
	agent.Work()
	for name, data := range map[string]any{
		"an object that is not ours": map[string]any{"metadata": map[string]any{"name": "other"}},
		"a job that is not there":    map[string]any{"metadata": map[string]any{"labels": map[string]any{"littoral.dev/job": uuid.NewString()}}},
	} {
		require.NoError(t, f.Work(t.Context(), newEvent(t, events.ObjectUpdated, data)), name)
		require.Equal(t, job.Progressing, j().State)
	}
	// The object in the event is not used: it is older than the one on the hub.
	text, err := json.Marshal(before.Object)
	require.NoError(t, err)
	require.NoError(t, f.Work(t.Context(), newEvent(t, events.ObjectUpdated, json.RawMessage(text))))
	require.True(t, j().Available())
}
