package exporter_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/bus/keyexpr"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/exporter"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/topology"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const shop = `name: shop
components:
  - name: web
    type: kubernetes
    requirements: {cpu: 500m, memory: 1Gi}
    manifests: [{name: web, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}}}]
`

var start = time.Now().UTC().Truncate(time.Second)

// fleet is two clusters of one node each, "a" and "b", with pods of an instance's component web: ip by cluster.
func fleet(at time.Time, instance string, ips map[string]string) *topology.Taxonomy {
	t := &topology.Taxonomy{Cluster: map[string]topology.Cluster{}}
	for _, name := range []string{"a", "b"} {
		n := topology.Node{
			Name: "node", Engine: topology.Kubernetes, LastSeen: topology.Known(float64(at.Unix())),
			StaticMetrics: topology.StaticMetrics{CPUCores: topology.Known(4), RAMMemory: topology.Known(8e9)},
		}
		if ip := ips[name]; ip != "" {
			n.Pod = map[string]topology.Pod{"uid-" + name: {
				Name: "shop__web-0", IP: ip,
				Container: map[string]topology.Container{"c": {Name: "c", Port: "8080"}},
				Workload:  map[string]topology.Workload{instance: {AppName: "shop", AppInstance: instance, AppComponent: "web"}},
			}}
		}
		t.Cluster["key-"+name] = topology.Cluster{Type: kinds.OCM, Name: name, Node: map[string]topology.Node{"node": n}}
	}
	return t
}

func tx(t *testing.T, db *store.DB, do func(context.Context, *store.Tx) error) {
	t.Helper()
	require.NoError(t, db.Tx(t.Context(), do))
}

func see(t *testing.T, db *store.DB, at time.Time, instance string, ips map[string]string) {
	t.Helper()
	tx(t, db, func(ctx context.Context, tx *store.Tx) error {
		_, err := topology.Save(ctx, tx, fleet(at, instance, ips), at, time.Minute)
		return err
	})
}

func update(t *testing.T, db *store.DB, instance string) {
	t.Helper()
	tx(t, db, func(ctx context.Context, tx *store.Tx) error { return exporter.Update(ctx, tx, instance) })
}

// published is what was published to the component web last.
func published(t *testing.T, db *store.DB, instance string) *exporter.Value {
	t.Helper()
	var found *exporter.Value
	require.NoError(t, bus.Get(t.Context(), db, keyexpr.Expr(instance+"/web"), func(v bus.Value) error {
		found = &exporter.Value{}
		return json.Unmarshal(v.Payload, found)
	}))
	return found
}

func TestAComponentReceivesWhereItRunsWhileItMoves(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	a := applicationtest.Submit(t, db, shop)
	instance := a.ID.String()
	see(t, db, start, instance, map[string]string{"a": "10.0.0.1"})
	update(t, db, instance)
	require.Empty(t, published(t, db, instance).Clusters, "it is placed nowhere")

	applicationtest.Place(t, db, a.ID, job.Target{Orchestrator: "ocm", Cluster: "a", Node: "node"})
	update(t, db, instance)
	first := published(t, db, instance)
	require.Equal(t, "shop", first.Application)
	require.Equal(t, map[string]exporter.Cluster{"key-a": {Name: "a", Pods: map[string]exporter.Pod{
		"uid-a": {Name: "web-0", IP: "10.0.0.1", Port: 8080, Cores: 0.5, MemoryGB: 1.074},
	}}}, first.Clusters)
	require.WithinDuration(t, start, first.ObservedAt, time.Second)
	update(t, db, instance)
	require.Equal(t, first.Generation, published(t, db, instance).Generation, "nothing has changed")

	applicationtest.Place(t, db, a.ID, job.Target{Orchestrator: "ocm", Cluster: "b", Node: "node"})
	see(t, db, start.Add(time.Second), instance, map[string]string{"a": "10.0.0.1", "b": "10.0.0.2"})
	update(t, db, instance)
	moved := published(t, db, instance)
	require.Greater(t, moved.Generation, first.Generation)
	require.Equal(t, "10.0.0.2", moved.Clusters["key-b"].Pods["uid-b"].IP)
	require.Len(t, moved.Clusters, 1, "what still runs at the former place does not count")

	tx(t, db, func(ctx context.Context, tx *store.Tx) error {
		_, err := application.Stop(ctx, tx, a.ID)
		return err
	})
	update(t, db, instance)
	stopped := published(t, db, instance)
	require.NotNil(t, stopped.Clusters)
	require.Empty(t, stopped.Clusters)
	require.Greater(t, stopped.Generation, moved.Generation)
	tx(t, db, func(ctx context.Context, tx *store.Tx) error {
		_, _, err := application.Delete(ctx, tx, a.ID, true)
		return err
	})
	update(t, db, instance)
	list, err := exporter.List(t.Context(), db)
	require.NoError(t, err)
	require.Empty(t, list)
	require.Empty(t, published(t, db, instance).Clusters)
	require.NoError(t, exporter.Repeat(t.Context(), db, time.Hour, 0))
	require.Nil(t, published(t, db, instance))
}

func TestNothingIsPublishedWhileNothingWasSeen(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	a := applicationtest.Submit(t, db, shop)
	err := db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error { return exporter.Update(ctx, tx, a.ID.String()) })
	require.Equal(t, problem.Unavailable, problem.KindOf(err), "%v", err)
	require.Nil(t, published(t, db, a.ID.String()))
}

func TestAnApplicationOfOthers(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	see(t, db, start, "inst", map[string]string{"a": "10.0.0.1", "b": "10.0.0.2"})
	register := func(instance string, components ...string) error {
		return db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			return exporter.Register(ctx, tx, instance, exporter.Application{Name: "shop", Components: components})
		})
	}
	require.NoError(t, register("inst", "web", "db"))
	require.Len(t, published(t, db, "inst").Clusters, 2)
	affected, err := exporter.Affected(t.Context(), db, []events.TopologyChange{{Cluster: "b", Node: "node"}})
	require.NoError(t, err)
	require.Equal(t, []string{"inst"}, affected)
	affected, err = exporter.Affected(t.Context(), db, []events.TopologyChange{{Cluster: "c", Node: "node"}, {}})
	require.NoError(t, err)
	require.Empty(t, affected)
	require.NoError(t, register("inst", "web"))
	list, err := exporter.List(t.Context(), db)
	require.NoError(t, err)
	require.Equal(t, map[string]exporter.Application{"inst": {Name: "shop", Components: []string{"web"}}}, list)

	for _, bad := range []string{"a/b", "*", "", "a#b", "@x"} {
		require.Equal(t, problem.Invalid, problem.KindOf(register(bad, "web")), bad)
		require.Equal(t, problem.Invalid, problem.KindOf(register("inst", bad)), bad)
	}
	tx(t, db, func(ctx context.Context, tx *store.Tx) error {
		found, err := exporter.Unregister(ctx, tx, "inst")
		require.True(t, found)
		return err
	})
	require.Empty(t, published(t, db, "inst").Clusters, "who listens is told that there is nothing any more")
	tx(t, db, func(ctx context.Context, tx *store.Tx) error {
		found, err := exporter.Unregister(ctx, tx, uuid.NewString())
		require.False(t, found)
		return err
	})
}

func TestWhatHasNotChangedIsRepeatedAsItIs(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	see(t, db, start, "inst", map[string]string{"a": "10.0.0.1"})
	tx(t, db, func(ctx context.Context, tx *store.Tx) error {
		return exporter.Register(ctx, tx, "inst", exporter.Application{Name: "shop", Components: []string{"web"}})
	})
	number := func() (n int64) {
		require.NoError(t, bus.Get(t.Context(), db, "inst/web", func(v bus.Value) error { n = v.Number; return nil }))
		return n
	}
	before, was := number(), published(t, db, "inst")
	require.NoError(t, exporter.Repeat(t.Context(), db, time.Hour, time.Hour))
	require.Equal(t, before, number())
	_, err := db.Exec(t.Context(), "update bus_values set at = now() - interval '2 hours'")
	require.NoError(t, err)
	require.NoError(t, exporter.Repeat(t.Context(), db, time.Hour, time.Hour))
	require.Greater(t, number(), before)
	require.Equal(t, was, published(t, db, "inst"))
}
