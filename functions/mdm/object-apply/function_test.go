package objectapply_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	objectapply "github.com/littoral-project/littoral/functions/mdm/object-apply"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/mdm/connect"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/kubeapi"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const (
	plant = "/api/v1/namespaces/plant/"

	node = `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "edge-1"}, "spec": {}, "status": {
		"nodeInfo": {"architecture": "arm64", "kubeletVersion": "v1.34.1"}, "allocatable": {"cpu": "3500m", "memory": "4Gi"},
		"conditions": [{"type": "Ready", "status": "True"}]}}`
	claim = `{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "frames", "namespace": "plant"},
		"spec": {"storageClassName": "local", "accessModes": ["ReadWriteOnce"]}, "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}`
	service = `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "eye", "namespace": "plant"},
		"spec": {"type": "ClusterIP", "selector": {"app": "eye"}, "ports": [{"port": 80}]}}`
	application = "0b0f1d1e-8b63-4c2c-9a0e-3d0f4a1c7e55"
)

// pod is one of the component eye, with a password in its environment.
func pod(name, app, phase string) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q, "namespace": "plant",
		"labels": {"app": %q, "app.icos.eu/instance": %q, "app.icos.eu/component": "eye"}},
		"spec": {"nodeName": "edge-1", "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "frames"}}], "containers": [
			{"name": "c", "image": "registry.example/eye:1", "env": [{"name": "PASSWORD", "value": "hunter2"}], "resources": {"requests": {"cpu": "250m"}}},
			{"name": "d", "image": "registry.example/log:1", "resources": {"requests": {"cpu": "0.25", "memory": "1Mi"}}}]},
		"status": {"phase": %q}}`, name, app, application, phase)
}

type world struct {
	t   *testing.T
	db  *store.DB
	api *kubeapi.Server
	at  *objectapply.Function
}

func start(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, db: storetest.New(t), api: kubeapi.Start(t, []string{"plant"}, nil)}
	w.at = w.open(map[string]string{"CODECO_OBJECTS": w.api.KubeconfigFile(t, "objects"), "MDM_CLUSTER": "harbour"})
	return w
}

func (w *world) open(set map[string]string) *objectapply.Function {
	w.t.Helper()
	f, err := objectapply.New(function.Platform{DB: w.db, Log: slog.New(slog.DiscardHandler), Settings: settings.Map(set)}.Env("mdm-object-apply"))
	require.NoError(w.t, err)
	return f
}

func (w *world) ctx() context.Context { return store.WithSource(w.t.Context(), "/test") }

func (w *world) tick() error {
	e := cloudevents.New()
	e.SetType(events.Tick)
	return w.at.Work(w.ctx(), e)
}

func (w *world) told(kind, namespace, name string) {
	w.t.Helper()
	e := cloudevents.New()
	e.SetType(events.ObjectUpdated)
	require.NoError(w.t, e.SetData(cloudevents.ApplicationJSON, map[string]any{
		"kind": kind, "metadata": map[string]any{"namespace": namespace, "name": name},
	}))
	require.NoError(w.t, w.at.Work(w.ctx(), e))
}

func (w *world) list(query string) []string {
	w.t.Helper()
	found, err := store.Collect(w.ctx(), w.db, "list", pgx.RowTo[string], query)
	require.NoError(w.t, err)
	return found
}

func (w *world) entities() []string {
	w.t.Helper()
	return w.list(`select type || ' ' || identifier from mdm_entities`)
}

// relations are those of the graph, and those that wait for an end.
func (w *world) relations() []string {
	w.t.Helper()
	return w.list(`select coalesce(s.identifier, '?') || ' ' || r.type || ' ' || coalesce(t.identifier, '?')
from mdm_relations r left join mdm_entities s on s.edf_id = r.source left join mdm_entities t on t.edf_id = r.target`)
}

// TestObjectsBecomeAGraph: of what is there when the source begins to watch, and of what it tells.
func TestObjectsBecomeAGraph(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.api.Put(t, "/api/v1/nodes/edge-1", node)
	w.api.Put(t, plant+"persistentvolumeclaims/frames", claim)
	w.api.Put(t, plant+"services/eye", service)
	w.api.Put(t, plant+"pods/eye-1", pod("eye-1", "eye", "Running"))
	w.api.Put(t, plant+"pods/eye-0", pod("eye-0", "eye", "Succeeded"))
	w.api.Page(1)
	require.NoError(t, w.tick())

	require.ElementsMatch(t, []string{
		"node harbour/edge-1", "persistentvolumeclaim harbour/plant/frames", "service harbour/plant/eye", "pod harbour/plant/eye-1",
		"pod harbour/plant/eye-0",
	}, w.entities())
	ended := []string{"harbour/plant/eye-0 PART_OF ?", "harbour/plant/eye-0 MOUNTS harbour/plant/frames", "harbour/edge-1 IS ?"}
	all := append([]string{
		"harbour/plant/eye-1 RUNS_ON harbour/edge-1", "harbour/plant/eye-1 MOUNTS harbour/plant/frames",
		"harbour/plant/eye-1 PART_OF ?", "harbour/plant/eye SELECTS harbour/plant/eye-1",
	}, ended...)
	require.ElementsMatch(t, all, w.relations(), "what the taxonomy and the applications lack waits")
	require.Equal(t, []string{"0.5 1048576 Running"}, w.list(
		`select concat_ws(' ', properties -> 'cpu', properties -> 'memory', properties ->> 'phase') from mdm_entities where identifier = 'harbour/plant/eye-1'`))
	require.Equal(t, []string{"3.5 true true"}, w.list(
		`select concat_ws(' ', properties -> 'cpu', properties -> 'ready', properties -> 'schedulable') from mdm_entities where type = 'node'`))
	require.Empty(t, w.list(`select identifier from mdm_entities where properties::text like '%hunter2%'`), "secrets stay where they are")
	require.Equal(t, []string{"Objects of the cluster harbour"}, w.list(`select name from mdm_connectors where heard_at is not null and refused = 0`))
	require.Equal(t, []string{"list nodes", "list persistentvolumeclaims", "list pods", "list services"}, w.api.Used())
	require.Equal(t, w.api.Used(), kubeapi.Granted(t, "../../../infra/mdm/roles.yaml", "littoral-mdm-object-apply"))

	events := w.list(`select events::text from mdm_connectors`)
	require.NoError(t, w.tick())
	require.Equal(t, events, w.list(`select events::text from mdm_connectors`), "done again, it publishes nothing")

	w.api.Put(t, plant+"pods/eye-2", pod("eye-2", "eye", "Pending"))
	w.told("Pod", "plant", "eye-2")
	require.Contains(t, w.relations(), "harbour/plant/eye SELECTS harbour/plant/eye-2")
	w.api.Change(plant+"pods/eye-2", func(o *kubeapi.Object) { o.SetLabels(map[string]string{"app": "ear"}) })
	w.told("Pod", "plant", "eye-2")
	require.NotContains(t, w.relations(), "harbour/plant/eye SELECTS harbour/plant/eye-2", "its labels are others now")
	w.api.Change(plant+"services/eye", func(o *kubeapi.Object) {
		o.Object["spec"].(map[string]any)["selector"] = map[string]any{"app": "ear"}
	})
	w.told("Service", "plant", "eye")
	require.Contains(t, w.relations(), "harbour/plant/eye SELECTS harbour/plant/eye-2")
	require.NotContains(t, w.relations(), "harbour/plant/eye SELECTS harbour/plant/eye-1")

	w.api.Forget(plant + "pods/eye-2")
	w.told("Pod", "plant", "eye-2")
	w.told("Pod", "plant", "eye-2")
	require.NotContains(t, w.entities(), "pod harbour/plant/eye-2")
	for _, r := range w.relations() {
		require.NotContains(t, r, "eye-2", "its relations went with it")
	}
	for _, path := range append(w.api.Paths("/pods/"), w.api.Paths("/services/")...) {
		w.api.Forget(path)
	}
	require.NoError(t, w.tick())
	require.ElementsMatch(t, []string{"node harbour/edge-1", "persistentvolumeclaim harbour/plant/frames"}, w.entities(), "what nobody told is caught up with")
	require.Equal(t, []string{"harbour/edge-1 IS ?"}, w.relations())
}

// TestTheLaterLookCounts: of two that looked at an object, the one that looked earlier and publishes later says nothing.
func TestTheLaterLookCounts(t *testing.T) {
	t.Parallel()
	w := start(t)
	k := connect.Kubernetes{Cluster: "harbour"}
	eye := func(phase string) []connect.Object {
		return []connect.Object{{Type: connect.Pod, Namespace: "plant", Name: "eye", Attributes: map[string]any{"phase": phase}}}
	}
	phases := func() []string { return w.list(`select properties ->> 'phase' from mdm_entities`) }
	gone := []connect.Gone{{ID: connect.ObjectID(connect.Pod, "harbour", "plant", "eye"), Type: connect.Pod}}

	require.NoError(t, k.Publish(w.ctx(), w.db, 20, eye("Running"), nil))
	require.NoError(t, k.Publish(w.ctx(), w.db, 9, eye("Pending"), nil), "as a number it is less, though not as a text")
	require.Equal(t, []string{"Running"}, phases())
	require.NoError(t, k.Publish(w.ctx(), w.db, 19, nil, gone))
	require.Equal(t, []string{"Running"}, phases(), "it was made again since")
	require.NoError(t, k.Publish(w.ctx(), w.db, 30, nil, gone))
	require.NoError(t, k.Publish(w.ctx(), w.db, 29, eye("Running"), nil))
	require.Empty(t, phases(), "it does not come back")

	_, err := w.db.Exec(w.ctx(), `update mdm_versions set at = now() - interval '11 minutes'`)
	require.NoError(t, err)
	require.NoError(t, k.Publish(w.ctx(), w.db, 3, eye("Running"), nil))
	require.Equal(t, []string{"Running"}, phases(), "the cluster was set up again")
}

// TestAConnectorSaysWhyItCannotLook: in the registry, until it can.
func TestAConnectorSaysWhyItCannotLook(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.api.Put(t, "/api/v1/nodes/edge-1", node)
	require.NoError(t, w.open(map[string]string{"CODECO_OBJECTS": w.api.KubeconfigFile(t, "objects")}).Work(w.ctx(), cloudevents.New()))
	require.Empty(t, w.entities(), "the cluster has no name")
	health := func() *mdm.Connector {
		t.Helper()
		all, err := mdm.Connectors(w.ctx(), w.db)
		require.NoError(t, err)
		require.Len(t, all, 1)
		return &all[0]
	}
	w.api.Deny(apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("it may not list")))
	require.Error(t, w.tick())
	require.Equal(t, mdm.Failing, health().Health)
	require.Contains(t, health().Refusal, "it may not list")
	w.api.Deny(nil)
	require.NoError(t, w.tick())
	require.Equal(t, mdm.Healthy, health().Health)
}
