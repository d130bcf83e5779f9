package link_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions/clusterlink/link"
	"github.com/littoral-project/littoral/functions/clusterlink/sync"
	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/linking"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/kubeapi"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const (
	key   = "event-key"
	hello = `
name: shop
components:
  - name: hello
    type: kubernetes
    communication: [{incoming: world-svc}]
    manifests: [{name: hello, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: hello}}}]
  - name: world
    type: kubernetes
    communication: [{outgoing: world-svc}]
    manifests: [{name: world-svc, manifest: {apiVersion: v1, kind: Service, metadata: {name: world-svc}, spec: {ports: [{port: 80}]}}}]
`
)

func serve[F any](t *testing.T, name string, spec function.Spec, open func(*function.Env) (F, error), db *store.DB, set map[string]string) http.Handler {
	t.Helper()
	h, err := function.NewEntry(name, spec, open).Handler(function.Platform{
		DB: db, EventKey: key, Log: slog.New(slog.DiscardHandler), Settings: settings.Map(set),
	}.Env(name))
	require.NoError(t, err)
	return h
}

func deliver(t *testing.T, h http.Handler, typ string, data any) int {
	t.Helper()
	e, err := events.New(t.Context(), "/test", typ, "shop", data)
	require.NoError(t, err)
	events.Sign(&e, key)
	body, err := e.MarshalJSON()
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/cloudevents+json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func placed(t *testing.T, db *store.DB) uuid.UUID {
	t.Helper()
	id := applicationtest.Submit(t, db, hello).ID
	applicationtest.Place(t, db, id,
		job.Target{Orchestrator: "ocm", Cluster: "a", Node: "a-1"}, job.Target{Orchestrator: "ocm", Cluster: "b", Node: "b-1"})
	return id
}

func TestAPlacementMakesLinksAndTheSynchronisationSeesThem(t *testing.T) {
	db, hub := storetest.New(t), kubeapi.Start(t, nil, nil)
	agents := map[string]*kubeapi.Agent{}
	for _, name := range []string{"a", "b"} {
		cluster := kubeapi.Start(t, nil, []string{name + "-1"})
		cluster.HasLinks()
		agents[name] = kubeapi.Join(t, hub, cluster, name)
	}
	set := func(prefix string) map[string]string {
		return map[string]string{
			prefix + "_OCM_HUB": hub.KubeconfigFile(t, "hub"), prefix + "_LINKS": "clusterlink", prefix + "_DEPLOY_WAIT": "0s",
		}
	}
	links := serve(t, "clusterlink-link", link.Spec, link.New, db, set("CLUSTERLINK_LINK"))
	syncs := serve(t, "clusterlink-sync", sync.Spec, sync.New, db, set("CLUSTERLINK_SYNC"))
	id := placed(t, db)
	about := events.Application{ID: id, Name: "shop"}
	require.Equal(t, http.StatusServiceUnavailable, deliver(t, links, events.ApplicationPlaced, about), "the agents have not taken them")
	require.Len(t, hub.Paths("/manifestworks/"), 2)
	for _, a := range agents {
		a.Work()
	}
	require.Equal(t, http.StatusNoContent, deliver(t, links, events.ApplicationPlaced, about))
	require.Equal(t, map[string]linking.State{"a": linking.Waiting, "b": linking.Waiting}, states(t, db, id))
	for _, a := range agents {
		a.Cluster.Peer()
		a.Report()
	}
	for _, path := range hub.Paths("/manifestworks/") { // the change of a work is told of
		require.Equal(t, http.StatusNoContent, deliver(t, syncs, events.ObjectUpdated, hub.Get(path).Object))
	}
	require.Equal(t, http.StatusNoContent, deliver(t, syncs, events.ObjectUpdated, map[string]any{"metadata": map[string]any{"name": "other"}}))
	require.Equal(t, map[string]linking.State{"a": linking.Ready, "b": linking.Ready}, states(t, db, id))
	require.Equal(t, http.StatusNoContent, deliver(t, syncs, events.Tick, map[string]any{}))
}

func states(t *testing.T, db *store.DB, id uuid.UUID) map[string]linking.State {
	t.Helper()
	sides, err := linking.Of(t.Context(), db, id)
	require.NoError(t, err)
	all := map[string]linking.State{}
	for _, s := range sides {
		all[s.Cluster] = s.State
	}
	return all
}

func TestWithoutTheSettingNothingIsLinked(t *testing.T) {
	db := storetest.New(t)
	id := placed(t, db)
	h := serve(t, "clusterlink-link", link.Spec, link.New, db, nil)
	require.Equal(t, http.StatusNoContent, deliver(t, h, events.ApplicationPlaced, events.Application{ID: id, Name: "shop"}))
	require.Empty(t, states(t, db, id))
}

func TestAnUnknownKindOfLinkIsSaidAtTheStart(t *testing.T) {
	_, err := link.New(function.Platform{Settings: settings.Map(map[string]string{"CLUSTERLINK_LINK_LINKS": "istio"})}.Env("clusterlink-link"))
	require.ErrorContains(t, err, "LINKS")
}
