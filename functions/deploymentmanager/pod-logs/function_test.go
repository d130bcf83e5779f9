package podlogs_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	podlogs "github.com/littoral-project/littoral/functions/deploymentmanager/pod-logs"
	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/logs/moves"
	"github.com/littoral-project/littoral/shared/problem"
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

// world is an application with pods in the cluster edge, whose kubeconfig the function has.
type world struct {
	*testing.T
	applicationtest.World
	cluster       *kubeapi.Server
	dir           string
	id, namespace string
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, World: applicationtest.New(t), cluster: kubeapi.Start(t, nil, []string{"edge-a"})}
	w.dir = filepath.Dir(w.cluster.KubeconfigFile(t, "edge"))
	a := applicationtest.Submit(t, w.DB, descriptor)
	w.id, w.namespace = a.ID.String(), a.Namespace
	applicationtest.Place(t, w.DB, a.ID, job.Target{Orchestrator: "kubernetes", Cluster: "edge", Node: "edge-a"})
	return w
}

// pod puts a pod of the component into the cluster, and returns its path.
func (w *world) pod(name, component, application, phase string) string {
	path := "/api/v1/namespaces/" + w.namespace + "/pods/" + name
	w.cluster.Put(w.T, path, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q, "namespace": %q, "labels":
{"app.icos.eu/instance": %q, "app.icos.eu/component": %q}}, "spec": {"nodeName": "edge-a", "containers": [{"name": "w"}, {"name": "side"}]},
"status": {"phase": %q}}`, name, w.namespace, application, component, phase))
	return path
}

func (w *world) ask(query string, given map[string]string) (moves.Answer, error) {
	w.T.Helper()
	f, err := podlogs.New(function.Platform{DB: w.DB, Settings: settings.Map(given)}.Env("deploymentmanager-pod-logs"))
	require.NoError(w.T, err)
	r := httptest.NewRequestWithContext(
		auth.With(w.T.Context(), auth.Principal{Subject: "admin", Roles: []auth.Role{auth.Admin}}),
		http.MethodGet, "/deploymentmanager/logs?app="+w.id+query, nil,
	)
	answer := httptest.NewRecorder()
	if err := f.Handle(answer, r); err != nil {
		return moves.Answer{}, err
	}
	var out moves.Answer
	require.NoError(w.T, json.Unmarshal(answer.Body.Bytes(), &out))
	return out, nil
}

func lines(a moves.Answer) (list []string) {
	for _, e := range a.Lines {
		list = append(list, e.Cluster+" "+e.Node+" "+e.Pod+" "+e.Container+" "+e.Component+": "+e.Line)
	}
	return list
}

func TestPodsOfTheApplicationAreRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.pod("web-1", "web", w.id, "Running"), w.pod("db-1", "db", w.id, "Running")
	other := w.pod("strange", "web", "11111111-2222-4333-8444-555555555555", "Running")
	w.pod("web-2", "web", w.id, "Pending")
	now := time.Now()
	w.cluster.Write(one, "w", "started", now.Add(-3*time.Minute))
	w.cluster.Write(two, "w", "ready", now.Add(-2*time.Minute))
	w.cluster.Write(one, "side", "GET / 200", now.Add(-time.Minute))
	w.cluster.Write(one, "w", "long ago", now.Add(-3*time.Hour))
	w.cluster.Write(other, "w", "of somebody else", now)
	given := map[string]string{"KUBECONFIG_DIR": w.dir}

	a, err := w.ask("", given)
	require.NoError(t, err)
	require.Equal(t, []string{
		"edge edge-a web-1 w web: started", "edge edge-a db-1 w db: ready", "edge edge-a web-1 side web: GET / 200",
	}, lines(a))
	require.Empty(t, a.Missing)
	require.Len(t, a.Moves, 1, "where it was placed")
	for query, want := range map[string]int{
		"&component=web": 2, "&text=GET": 1, "&tail=1": 1, "&since=4h": 4, "&since=90s": 1, "&component=none": 0,
		"&until=" + url.QueryEscape(now.Add(-150*time.Second).UTC().Format(time.RFC3339)): 1,
	} {
		a, err := w.ask(query, given)
		require.NoError(t, err)
		require.Len(t, a.Lines, want, query)
	}
	require.Equal(t, []string{"get pods/log", "list pods"}, w.cluster.Used(), "the rights that a kubeconfig has to give")
}

// TestAClusterThatCannotBeAskedIsNamed, and its address is not.
func TestAClusterThatCannotBeAskedIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.ask("", nil)
	require.Equal(t, problem.NotImplemented, problem.KindOf(err))
	require.ErrorContains(t, err, "KUBECONFIG_DIR")

	_, err = w.ask("", map[string]string{"KUBECONFIG_DIR": t.TempDir()})
	require.Equal(t, problem.Unavailable, problem.KindOf(err))
	require.ErrorContains(t, err, "there is no kubeconfig of a cluster edge")

	w.cluster.Cut(true)
	_, err = w.ask("", map[string]string{"KUBECONFIG_DIR": w.dir})
	require.ErrorContains(t, err, "cluster edge: its API does not answer")
	require.NotContains(t, err.Error(), "127.0.0.1")
}

// TestThroughAProxyOfClusters, as cluster-proxy of Open Cluster Management: the server of the kubeconfig is the address of the cluster at
// the proxy.
func TestThroughAProxyOfClusters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pod := w.pod("web-1", "web", w.id, "Running")
	w.cluster.Write(pod, "w", "through the proxy", time.Now())
	mux := http.NewServeMux()
	mux.Handle("/edge/", http.StripPrefix("/edge", w.cluster))
	proxy := httptest.NewServer(mux)
	t.Cleanup(proxy.Close)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "edge"), []byte(`{"current-context": "p", "contexts": [{"name": "p", "context":
{"cluster": "p", "user": "p"}}], "clusters": [{"name": "p", "cluster": {"server": "`+proxy.URL+`/edge"}}], "users": [{"name": "p",
"user": {"token": "of a managed ServiceAccount"}}]}`), 0o600))
	a, err := w.ask("", map[string]string{"KUBECONFIG_DIR": dir})
	require.NoError(t, err)
	require.Equal(t, []string{"edge edge-a web-1 w web: through the proxy"}, lines(a))
}
