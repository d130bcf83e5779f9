package deployocm_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	deployocm "github.com/littoral-project/littoral/functions/deploymentmanager/deploy-ocm"
	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/kubeapi"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const key = "event-key"

// serve returns the function as a process would serve it, with the hub.
func serve(t *testing.T, db *store.DB, hub *kubeapi.Server) http.Handler {
	t.Helper()
	h, err := function.NewEntry("deploymentmanager-deploy-ocm", deployocm.Spec, deployocm.New).Handler(function.Platform{
		DB: db, EventKey: key, Log: slog.New(slog.DiscardHandler),
		Settings: settings.Map(map[string]string{
			"DEPLOYMENTMANAGER_DEPLOY_OCM_OCM_HUB":     hub.KubeconfigFile(t, "hub"),
			"DEPLOYMENTMANAGER_DEPLOY_OCM_DEPLOY_WAIT": "100ms",
		}),
	}.Env("deploymentmanager-deploy-ocm"))
	require.NoError(t, err)
	return h
}

func deliver(t *testing.T, h http.Handler, e cloudevents.Event) int {
	t.Helper()
	events.Sign(&e, key)
	body, err := e.MarshalJSON()
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/cloudevents+json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

const descriptor = `
name: shop
components:
  - name: web
    type: kubernetes
    manifests: [{name: web, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}}}]
`

// ready stores an application with its component placed at edge/edge-a, and returns the job.ready event.
func ready(t *testing.T, db *store.DB) (id uuid.UUID, e cloudevents.Event) {
	t.Helper()
	id = applicationtest.Submit(t, db, descriptor).ID
	applicationtest.Place(t, db, id, job.Target{Orchestrator: "ocm", Cluster: "edge", Node: "edge-a"})
	published := storetest.Published(db)
	e = published[len(published)-1]
	require.Equal(t, events.JobReady, e.Type())
	require.Equal(t, "ocm", e.Extensions()["orchestrator"], "what the Trigger filters on")
	return id, e
}

func TestAJobBecomesAManifestWork(t *testing.T) {
	db, hub := storetest.New(t), kubeapi.Start(t, nil, nil)
	agent := kubeapi.Join(t, hub, kubeapi.Start(t, nil, []string{"edge-a"}), "edge")
	h := serve(t, db, hub)
	id, e := ready(t, db)
	require.Equal(t, http.StatusNoContent, deliver(t, h, e))
	agent.Work()
	require.Equal(t, http.StatusNoContent, deliver(t, h, e), "a duplicate finds what the first made")
	works := hub.Paths("/namespaces/edge/manifestworks/")
	require.Len(t, works, 1)
	j := applicationtest.Job(t, db, id)
	require.Equal(t, job.Finished, j.State)
	require.True(t, j.Available())
}

func TestAHubThatIsAwayIsTriedAgain(t *testing.T) {
	db, hub := storetest.New(t), kubeapi.Start(t, nil, nil)
	kubeapi.Join(t, hub, kubeapi.Start(t, nil, nil), "edge")
	h := serve(t, db, hub)
	_, e := ready(t, db)
	hub.Cut(true)
	require.Equal(t, http.StatusServiceUnavailable, deliver(t, h, e))
	hub.Cut(false)
	require.Equal(t, http.StatusNoContent, deliver(t, h, e))
	require.Len(t, hub.Paths("/manifestworks/"), 1)
}

func TestAStoreThatIsAwayIsTriedAgain(t *testing.T) {
	hub := kubeapi.Start(t, nil, nil)
	away, err := store.Open(t.Context(), store.Config{DatabaseURL: "postgres://nobody@127.0.0.1:1/none"}, nil, nil)
	require.NoError(t, err)
	t.Cleanup(away.Close)
	h := serve(t, away, hub)
	_, e := ready(t, storetest.New(t))
	require.Equal(t, http.StatusServiceUnavailable, deliver(t, h, e))
	require.Empty(t, hub.Paths("/manifestworks/"))
}

func TestAForgedEventIsRefused(t *testing.T) {
	db, hub := storetest.New(t), kubeapi.Start(t, nil, nil)
	kubeapi.Join(t, hub, kubeapi.Start(t, nil, nil), "edge")
	h := serve(t, db, hub)
	_, e := ready(t, db)
	body, err := e.MarshalJSON()
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/cloudevents+json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Empty(t, hub.Paths("/manifestworks/"))
}

func TestASettingThatNamesNoHubIsSaidAtTheStart(t *testing.T) {
	_, err := deployocm.New(function.Platform{
		Settings: settings.Map(map[string]string{"DEPLOYMENTMANAGER_DEPLOY_OCM_OCM_HUB": "/nowhere"}),
	}.Env("deploymentmanager-deploy-ocm"))
	require.ErrorContains(t, err, "OCM_HUB")
}
