package match

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/cordon"
	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
)

// TestCandidates_decideAsAllNodesDo: the statement that finds candidates and package placement agree on which nodes can take
// what, and on which are the best, in random worlds that fill up.
func TestCandidates_decideAsAllNodesDo(t *testing.T) {
	t.Parallel()
	few := 0
	for seed := range uint64(3) {
		w := randomWorld{applicationtest.New(t), rand.New(rand.NewPCG(seed, 40))}
		w.see()
		for i := range 30 {
			id := applicationtest.Submit(t, w.DB, w.descriptor(fmt.Sprintf("app-%d", i), 4)).ID
			if w.compare(id) {
				few++
			}
			w.Must(func(ctx context.Context, tx *store.Tx) error {
				return Place(ctx, tx, id, settingsOfCandidates, false, "")
			})
		}
	}
	require.Greater(t, few, 30, "of 90, of which most find room")
}

var settingsOfCandidates = Settings{Freshness: topology.Freshness{StaleAfter: time.Minute}}

type randomWorld struct {
	applicationtest.World
	random *rand.Rand
}

func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// maybe is one of the values, or unknown.
func (w *randomWorld) maybe(values ...float64) topology.Measure {
	if w.random.IntN(8) == 0 {
		return topology.Measure{}
	}
	return topology.Known(pick(w.random, values...))
}

func (w *randomWorld) see() {
	w.Helper()
	now := time.Now()
	all := &topology.Taxonomy{Cluster: map[string]topology.Cluster{}}
	for c := range 4 {
		name := fmt.Sprint("c", c)
		cluster := topology.Cluster{
			Type: pick(w.random, "ocm", "ocm", "nuvla"), Name: name, Engine: pick(w.random, "Kubernetes", "docker"), AgentID: "agent-" + name,
			Node: map[string]topology.Node{},
		}
		for i := range 12 {
			n := topology.Node{
				Name: fmt.Sprintf("%s-n%d", name, i), Engine: pick(w.random, "", "kubernetes", "Kubernetes", "docker"),
				LastSeen: topology.Known(float64(now.Add(-pick(w.random, 0, time.Second, 59*time.Second, 61*time.Second, time.Hour)).UnixMilli()) / 1000),
				ScaScore: w.maybe(30, 60, 60.5, 80, 100, 120), Labels: map[string]string{"zone": pick(w.random, "a", "b", "")},
				StaticMetrics: topology.StaticMetrics{
					CPUArchitecture: pick(w.random, "x86_64", "x86_64", "AMD64 ", "aarch64", "", "riscv64"), CPUCores: w.maybe(1, 2, 4, 4, 7.5),
					RAMMemory: w.maybe(1<<30, 4<<30, 8<<30),
				},
				DynamicMetrics: topology.DynamicMetrics{
					CPUUsagePercent: w.maybe(0, 10, 33.3, 95), MemoryUsagePercent: w.maybe(5, 50), UsedRAM: w.maybe(1<<29, 3<<29),
					FreeRAM: w.maybe(1<<29, 3<<30), CPUPowerWatts: w.maybe(0, 20, 20, 45.5),
				},
			}
			if w.random.IntN(8) == 0 {
				no := false
				n.Schedulable = &no
			}
			if w.random.IntN(6) == 0 {
				delete(n.Labels, "zone")
			}
			for d := range w.random.IntN(3) {
				if n.Devices == nil {
					n.Devices = map[string]topology.Device{}
				}
				n.Devices[fmt.Sprint(d)] = topology.Device{
					Path: pick(w.random, "/dev/video0", "/dev/video0", "/dev/gps"), Status: pick(w.random, topology.DeviceAvailable, topology.DeviceBusy, topology.DeviceDetached),
				}
			}
			if w.random.IntN(4) == 0 {
				n.Pod = map[string]topology.Pod{"p": {
					Workload:  map[string]topology.Workload{"w": {AppInstance: uuid.NewString()}},
					Container: map[string]topology.Container{"c": {CPUUsage: topology.Known(0.1234), ContainerMemory: topology.Known(1 << 28)}},
				}}
			}
			cluster.Node[n.Name] = n
		}
		all.Cluster[name] = cluster
	}
	w.Must(func(ctx context.Context, tx *store.Tx) error {
		_, err := topology.Save(ctx, tx, all, now, time.Minute)
		return err
	})
	w.Must(func(ctx context.Context, tx *store.Tx) error {
		_, err := cordon.Set(ctx, tx, cordon.Cordon{Cluster: "c1", Node: "c1-n1"})
		return err
	})
}

// descriptor asks for something of each kind now and then: once in so many times.
func (w *randomWorld) descriptor(name string, rarely int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\ncomponents:\n", name)
	for i := range 1 + w.random.IntN(3) {
		need := []string{"cpu: " + pick(w.random, "0", "50m", "100m", "250m", "700m")}
		for _, other := range []string{
			"memory: " + pick(w.random, "64Mi", "1Gi"), "architecture: " + pick(w.random, "x86_64", "amd64", "arm64"),
			"devices: /dev/video0", "nodelabel: {key: zone, values: [" + pick(w.random, "a", "a, b") + "]}",
		} {
			if w.random.IntN(rarely) == 0 {
				need = append(need, other)
			}
		}
		fmt.Fprintf(&b, "  - name: x%[1]d\n    type: %[3]s\n    requirements: {%[2]s}\n", i, strings.Join(need, ", "), pick(w.random, "kubernetes", "kubernetes", "manifest"))
		if w.random.IntN(6) == 0 {
			b.WriteString("    targets: {cluster_name: c2, orchestrator: ocm}\n")
		}
		if i > 0 && w.random.IntN(rarely) == 0 {
			fmt.Fprintf(&b, "    communication: [{incoming: s%d}]\n", i-1)
		}
		fmt.Fprintf(&b, "    manifests: [{name: s%[1]d, manifest: {apiVersion: v1, kind: Service, metadata: {name: s%[1]d}}}]\n", i)
	}
	if w.random.IntN(4) == 0 {
		b.WriteString("policies: [{security: " + pick(w.random, "low", "medium", "high") + "}]\n")
	}
	return b.String()
}

// compare compares what candidates decide with what all nodes do; false if the candidates cannot tell.
func (w *randomWorld) compare(id uuid.UUID) (few bool) {
	w.Helper()
	err := w.Tx(func(ctx context.Context, tx *store.Tx) error {
		require.NoError(w, Lock(ctx, tx))
		c, err := load(ctx, tx, id, nobody)
		require.NoError(w, err)
		require.True(w, c.simple(settingsOfCandidates))
		d, err := decideAmongCandidates(ctx, tx, settingsOfCandidates, false, c)
		require.NoError(w, err)
		if d == nil {
			return errRollBack
		}
		few = true
		inv, blind, err := freshInventory(ctx, tx, settingsOfCandidates)
		require.NoError(w, err)
		require.Empty(w, blind)
		require.NoError(w, inv.readAround(ctx, tx, c.app, c.list))
		_, p, plan, err := solve(c.app, c.list, inv)
		require.NoError(w, err)
		require.Less(w, len(d.problem.Nodes), len(p.Nodes)+1)
		require.Equal(w, w.explained(c.list, p, plan), w.explained(c.list, d.problem, d.plan), c.stored.Name)
		return errRollBack
	})
	require.True(w, errors.Is(err, errRollBack))
	return few
}

// explained is all that is stored of a decision, but for what it cost.
func (w *randomWorld) explained(list []part, p placement.Problem, plan placement.Plan) string {
	w.Helper()
	plan.Work = 0
	text, err := json.MarshalIndent(placement.Decide("", plan, explain(list, p, plan, (*part).decided), func(int) bool { return true }), "", " ")
	require.NoError(w, err)
	return string(text)
}

// TestCandidates_decideForSeveralApplicationsAsAllNodesDo: the same where they are placed together.
func TestCandidates_decideForSeveralApplicationsAsAllNodesDo(t *testing.T) {
	t.Parallel()
	few := 0
	for seed := range uint64(3) {
		w := randomWorld{applicationtest.New(t), rand.New(rand.NewPCG(seed, 41))}
		w.see()
		for i := range 12 {
			var ids []uuid.UUID
			for k := range 2 + w.random.IntN(2) {
				ids = append(ids, applicationtest.Submit(t, w.DB, w.descriptor(fmt.Sprintf("app-%d-%d", i, k), 20)).ID)
			}
			if w.compareTogether(ids) {
				few++
			}
			w.Must(func(ctx context.Context, tx *store.Tx) error {
				return PlaceAll(ctx, tx, ids, settingsOfCandidates, "")
			})
		}
	}
	require.Greater(t, few, 6, "of 36")
}

// compareTogether is compare for several applications at once.
func (w *randomWorld) compareTogether(ids []uuid.UUID) (few bool) {
	w.Helper()
	err := w.Tx(func(ctx context.Context, tx *store.Tx) error {
		require.NoError(w, Lock(ctx, tx))
		var all []*candidate
		var list []part
		for _, id := range ids {
			c, err := load(ctx, tx, id, nobody)
			require.NoError(w, err)
			if len(pairs(c.app)) > 0 {
				return errRollBack
			}
			all, list = append(all, c), append(list, c.list...)
		}
		d, err := decideAmongCandidates(ctx, tx, settingsOfCandidates, true, all...)
		require.NoError(w, err)
		if d == nil {
			return errRollBack
		}
		few = true
		inv, blind, err := freshInventory(ctx, tx, settingsOfCandidates)
		require.NoError(w, err)
		require.Empty(w, blind)
		for _, c := range all {
			require.NoError(w, inv.readAround(ctx, tx, c.app, c.list))
		}
		p := problemOfAll(all, inv)
		plan, err := placement.Place(p)
		require.NoError(w, err)
		require.Equal(w, w.explained(list, p, plan), w.explained(list, d.problem, d.plan))
		return errRollBack
	})
	require.True(w, errors.Is(err, errRollBack))
	return few
}

// TestCandidates_areOnlySoughtAmongManyNodes: and then a decision reads few of them.
func TestCandidates_areOnlySoughtAmongManyNodes(t *testing.T) {
	t.Parallel()
	w := randomWorld{applicationtest.New(t), rand.New(rand.NewPCG(1, 40))}
	place := func(nodes int, name string) (target string) {
		t.Helper()
		c := topology.Cluster{Type: "ocm", Name: "edge", Engine: "kubernetes", Node: map[string]topology.Node{}}
		for i := range nodes {
			n := topology.Node{Name: fmt.Sprintf("n%04d", i), ScaScore: topology.Known(50)}
			n.StaticMetrics = topology.StaticMetrics{CPUCores: topology.Known(4), RAMMemory: topology.Known(8 << 30)}
			if i == 7 {
				n.ScaScore = topology.Known(90)
			}
			c.Node[n.Name] = n
		}
		w.Must(func(ctx context.Context, tx *store.Tx) error {
			_, err := topology.Save(ctx, tx, &topology.Taxonomy{Cluster: map[string]topology.Cluster{"edge": c}}, time.Now(), time.Minute)
			return err
		})
		id := applicationtest.Submit(t, w.DB, "name: "+name+"\ncomponents:\n- {name: x, type: kubernetes, requirements: {cpu: 1}, "+
			"manifests: [{name: m, manifest: {apiVersion: v1, kind: Pod, metadata: {name: m}}}]}\n").ID
		w.Must(func(ctx context.Context, tx *store.Tx) error {
			return Place(ctx, tx, id, settingsOfCandidates, false, "")
		})
		return w.Get(id).Jobs[0].Target.Node
	}
	judged := func() (n int64) {
		t.Helper()
		require.NoError(t, w.DB.QueryRow(t.Context(), `select count(*) from history where data::text ~ '"of": ?1000\M'`).Scan(&n))
		return n
	}
	require.Equal(t, "n0007", place(manyNodes-1, "few"))
	require.Zero(t, judged())
	require.Equal(t, "n0007", place(manyNodes, "many"), "it has room for another")
	require.Equal(t, int64(1), judged(), "all nodes are counted, though few were read")
}
