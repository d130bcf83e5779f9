package collect_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	simulation "github.com/littoral-project/littoral/infra/runner/fleet"
	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/topology"
	"github.com/littoral-project/littoral/shared/topology/collect"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// continuum is a fleet whose time is the test's.
type continuum struct {
	*fleet
	sites *simulation.Fleet
	clock time.Time
	pods  map[string]labels // of our applications, by uid
	asked func(query string)
}

func newContinuum(t *testing.T) *continuum {
	t.Helper()
	c := &continuum{fleet: newFleet(t), clock: now, pods: map[string]labels{}}
	var err error
	c.sites, err = simulation.New(simulation.Options{
		Plan: simulation.Default(), File: filepath.Join(t.TempDir(), "fleet.json"), Append: c.server.Append,
		Now: func() time.Time { return c.clock }, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	for range 8 {
		c.pass(15 * time.Second)
	}
	return c
}

// pass lets time pass and everything report at its end.
func (c *continuum) pass(d time.Duration) {
	c.t.Helper()
	c.clock = c.clock.Add(d)
	require.NoError(c.t, c.sites.Emit(context.Background()))
	for uid, l := range c.pods {
		c.emit(c.clock, "kube_pod_info", l, 1)
		named := with(l, nil)
		delete(named, "node")
		c.emit(c.clock, "kube_pod_status_phase", with(named, labels{"phase": "Running"}), 1)
		c.emit(c.clock, "kube_pod_container_info", with(named, labels{"container": "app"}), 1)
		used := labels{"icos_cluster_id": l["icos_cluster_id"], "k8s_pod_uid": uid, "k8s_container_name": "app"}
		c.emit(c.clock, "container_cpu_utilization_ratio", used, 0.25)
		c.emit(c.clock, "container_memory_working_set_bytes", used, 1e6)
	}
}

// collector counts what is asked.
func (c *continuum) collector() *collect.Collector {
	return c.fleet.collector(func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c.asked != nil {
				c.asked(r.FormValue("query"))
			}
			inner.ServeHTTP(w, r)
		})
	})
}

// whole looks at all nodes, whatever has changed.
func (c *continuum) whole(at *collect.Collector, db *store.DB) {
	c.t.Helper()
	picture, err := at.Collect(context.Background(), c.clock)
	require.NoError(c.t, err)
	before, _, err := topology.Current(context.Background(), db)
	if !errors.Is(err, topology.ErrUnknown) {
		require.NoError(c.t, err)
		picture.Complete(before)
	}
	require.NoError(c.t, db.Tx(context.Background(), func(ctx context.Context, tx *store.Tx) error {
		_, err := topology.Save(ctx, tx, picture.Taxonomy, picture.At, time.Minute)
		return err
	}))
}

// stored is the stored topology without what may be a little old, which is compared by near.
func stored(t *testing.T, db *store.DB) (*topology.Taxonomy, map[string]topology.DynamicMetrics) {
	t.Helper()
	got, _, err := topology.Current(context.Background(), db)
	require.NoError(t, err)
	readings := map[string]topology.DynamicMetrics{}
	for ck, c := range got.Cluster {
		for nk, n := range c.Node {
			readings[ck+"/"+nk] = n.DynamicMetrics
			n.DynamicMetrics, n.ForecastedMetrics = topology.DynamicMetrics{}, topology.ForecastedMetrics{}
			c.Node[nk] = n
		}
	}
	return got, readings
}

func announcedChanges(t *testing.T, db *store.DB) (all []string) {
	t.Helper()
	for _, e := range storetest.Published(db) {
		data, err := events.Data[events.Topology](e)
		require.NoError(t, err)
		for _, c := range data.Changes {
			if c.Change != topology.Load { // the moment at which a step is reached may differ
				all = append(all, fmt.Sprint(c.Place(), " ", c.Change, " ", c.Detail))
			}
		}
	}
	return all
}

// TestRefresh_findsWhatACompleteRefreshFinds, whatever happens to the fleet, and announces the same.
func TestRefresh_findsWhatACompleteRefreshFinds(t *testing.T) {
	t.Parallel()
	c := newContinuum(t)
	at := c.collector()
	some, all := storetest.New(t), storetest.New(t)
	random := rand.New(rand.NewPCG(40, 1)) // a test that can be repeated
	nodes := []string{
		"cloud-1", "cloud-2", "cloud-3", "cloud-4", "edge-1", "edge-2", "edge-3", "edge-4", "edge-5", "quay-1", "quay-2", "crane-1",
	}
	var sites []topology.Place
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	for step := range 45 {
		var done []string
		for range random.IntN(3) {
			node, what := nodes[random.IntN(len(nodes))], random.IntN(10)
			done = append(done, fmt.Sprint(node, " ", what))
			switch what {
			case 0:
				_ = c.sites.Drain(node)
			case 1, 2:
				for _, n := range nodes {
					_ = c.sites.Restore(n)
				}
			case 3:
				require.NoError(t, c.sites.Set(node, map[string]string{"sca": pick("20", "55", "90")}))
			case 4:
				require.NoError(t, c.sites.Set(node, map[string]string{"label:color": pick("green", "blue", "")}))
			case 5:
				require.NoError(t, c.sites.Set(node, map[string]string{"cores": pick("2", "8", ""), "ram": pick("4Gi", "16Gi", "")}))
			case 6:
				require.NoError(t, c.sites.Set(node, map[string]string{"device:/dev/video0": pick("available", "busy", "detached")}))
			case 7:
				require.NoError(t, c.sites.Set(node, map[string]string{"telemetry": pick("none", "node", "")}))
			case 8:
				require.NoError(t, c.sites.Set(node, map[string]string{"cpu": pick("0.1", "0.5", "")}))
			case 9:
				if len(c.pods) > 2 || sites == nil {
					clear(c.pods)
					continue
				}
				p := sites[random.IntN(len(sites))]
				uid := fmt.Sprintf("pod-%d", step)
				c.pods[uid] = labels{
					"icos_controller_id": "littoral", "icos_agent_id": p.In.AgentID, "icos_cluster_id": p.In.UUID, "node": p.At.Name,
					"uid": uid, "namespace": "ns", "pod": uid,
				}
			}
		}
		c.pass(15 * time.Second)
		_, err := at.RefreshAt(t.Context(), some, c.clock)
		require.NoError(t, err)
		c.whole(at, all)
		got, gotReadings := stored(t, some)
		want, wantReadings := stored(t, all)
		require.Equal(t, want, got, "step %d: %v", step, done)
		for node, w := range wantReadings {
			g := gotReadings[node]
			require.InDelta(t, w.CPUUsagePercent.Or(-1), g.CPUUsagePercent.Or(-1), 2.01, "step %d: %s: %v", step, node, done)
			require.InEpsilon(t, 1+w.UsedRAM.Or(0), 1+g.UsedRAM.Or(0), 0.05, "step %d: %s: %v", step, node, done)
			require.InEpsilon(t, 1+w.FreeRAM.Or(0), 1+g.FreeRAM.Or(0), 0.05, "step %d: %s: %v", step, node, done)
		}
		require.Equal(t, announcedChanges(t, all), announcedChanges(t, some), "step %d: %v", step, done)
		sites = want.Places()
	}
}

// TestRefresh_asksOnlyAboutWhatChanged.
func TestRefresh_asksOnlyAboutWhatChanged(t *testing.T) {
	t.Parallel()
	c := newContinuum(t)
	at, db := c.collector(), storetest.New(t)
	look := func() {
		t.Helper()
		c.pass(15 * time.Second)
		_, err := at.RefreshAt(t.Context(), db, c.clock)
		require.NoError(t, err)
	}
	look()
	var mu sync.Mutex
	var asked []string
	c.asked = func(query string) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, query)
	}
	about := func(part string) []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.DeleteFunc(slices.Clone(asked), func(q string) bool { return !strings.Contains(q, part) })
	}
	look()
	require.Empty(t, about("last_over_time"), "nothing has changed, so only counts and readings are asked for")
	require.Empty(t, about(" offset "), "what was then is stored")

	require.NoError(t, c.sites.Set("edge-2", map[string]string{"sca": "12"}))
	look()
	described := about("last_over_time(node_mounted")
	require.Len(t, described, 1)
	require.Contains(t, described[0], `agent_hostname=~"edge-2"`)
	require.NotContains(t, described[0], "edge-3")
	require.Empty(t, about("last_over_time(tlum_runtime_info"), "what there is is stored")
	for _, compared := range about(" offset ") {
		require.NotContains(t, compared, "tlum_host_info", "only metrics whose counts differ are compared with what was then")
	}

	require.NoError(t, c.sites.Set("edge-2", map[string]string{"label:color": "violet"}))
	mu.Lock()
	asked = nil
	mu.Unlock()
	look()
	compared := about("tlum_host_labels{")
	require.NotEmpty(t, compared)
	require.Regexp(t, `tlum_host_labels\{icos_agent_id=~"[^"|]+"\} offset`, compared[0], "only of the agent that told of the change")
	mu.Lock()
	asked = nil
	mu.Unlock()

	for len(about("last_over_time(node_mounted[")) == 0 { // about all, since some minutes have passed
		require.Less(t, c.clock.Sub(now), time.Hour)
		look()
	}
}

// TestRefresh_asksAFailedQueryAgain: what it feeds stays as it was, and the next refresh is of all nodes.
func TestRefresh_asksAFailedQueryAgain(t *testing.T) {
	t.Parallel()
	c := newContinuum(t)
	db := storetest.New(t)
	look := func(at *collect.Collector) {
		t.Helper()
		c.pass(15 * time.Second)
		_, err := at.RefreshAt(t.Context(), db, c.clock)
		require.NoError(t, err)
	}
	read := func() topology.Node {
		t.Helper()
		got, _ := stored(t, db)
		for _, p := range got.Places() {
			if p.Node == "edge-2" {
				return *p.At
			}
		}
		t.Fatal("there is no edge-2")
		return topology.Node{}
	}
	look(c.collector())
	before := read()
	require.NoError(t, c.sites.Set("edge-2", map[string]string{"label:color": "violet", "sca": "12"}))
	look(c.fleet.collector(failing("tlum_host_labels")))
	during := read()
	require.Equal(t, before.Labels, during.Labels)
	require.InDelta(t, 12, during.ScaScore.Or(0), 0, "the others are fresh")
	look(c.collector())
	require.Equal(t, "violet", read().Labels["color"])
	got, _ := stored(t, db)
	require.Empty(t, got.Warnings)
}

// TestRefresh_ofMoreNodesThanOneQueryBounds: they are asked about and stored in parts.
func TestRefresh_ofMoreNodesThanOneQueryBounds(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	const clusters, nodes = 6, 250
	var round []prometheus.Sample
	for c := range clusters {
		for n := range nodes {
			m := machine{agent: fmt.Sprintf("agent-%d", c), cluster: fmt.Sprintf("c%d", c), id: fmt.Sprintf("h%d", n), name: fmt.Sprintf("n%d", n)}
			add := func(name string, l labels, v float64) {
				round = append(round, prometheus.Sample{Name: name, Labels: with(m.host(), l), Value: v, At: now})
			}
			add("tlum_host_info", labels{"hostname": m.name, "arch": "arm64"}, 1)
			add("tlum_runtime_info", labels{"type": "Kubernetes", "node_name": m.name}, 1)
			add("node_memory_MemTotal_bytes", nil, float64(1e9+c))
			round = append(round, prometheus.Sample{
				Name: "kube_node_status_capacity", Labels: with(m.kube(), labels{"resource": "cpu"}), Value: float64(n), At: now,
			})
			if n == 0 {
				add("tlum_orch_info", labels{"type": "ocm", "agent_id": m.agent, "agent_name": m.agent}, 1)
			}
		}
	}
	require.NoError(t, f.server.Append(t.Context(), round))
	at, db := f.collector(nil), storetest.New(t)
	changed, err := at.RefreshAt(t.Context(), db, now)
	require.NoError(t, err)
	require.True(t, changed)
	picture, err := at.Collect(t.Context(), now)
	require.NoError(t, err)
	got, _, err := topology.Current(t.Context(), db)
	require.NoError(t, err)
	require.Equal(t, len(picture.Taxonomy.Places()), len(got.Places()))
	for i, want := range picture.Taxonomy.Places() {
		have := got.Places()[i]
		have.At.Series, want.At.Series = 0, 0
		have.At.Identity, want.At.Identity = topology.Identity{}, topology.Identity{}
		require.Equal(t, want.At, have.At)
	}
}

// TestRefresh_tellsNodesApartThatAreCalledAlike: a change is read together with the nodes that its series might mean as well.
func TestRefresh_tellsNodesApartThatAreCalledAlike(t *testing.T) {
	t.Parallel()
	c := &continuum{fleet: newFleet(t), clock: now}
	var all []machine
	for cluster := range 3 {
		for node := range 3 {
			all = append(all, machine{
				agent: fmt.Sprintf("agent-%d", cluster), cluster: fmt.Sprintf("c%d", cluster),
				id: fmt.Sprintf("h%d", node), name: fmt.Sprintf("n%d", node), ip: fmt.Sprintf("192.0.2.%d", 10*cluster+node),
			})
		}
	}
	report := func(at time.Time) {
		t.Helper()
		for _, m := range all {
			c.until(at, m)
		}
	}
	for _, ago := range []time.Duration{2 * time.Minute, time.Minute, 0} {
		report(now.Add(-ago))
	}
	some, whole := storetest.New(t), storetest.New(t)
	at := c.collector()
	look := func() {
		t.Helper()
		_, err := at.RefreshAt(t.Context(), some, c.clock)
		require.NoError(t, err)
	}
	compare := func() {
		t.Helper()
		c.whole(at, whole)
		want, _ := stored(t, whole)
		got, _ := stored(t, some)
		require.Equal(t, want, got)
		require.Equal(t, announcedChanges(t, whole), announcedChanges(t, some))
	}
	look()
	compare()
	for i, change := range []func(){
		func() {
			c.emit(c.clock, "kube_node_status_capacity", with(all[4].kube(), labels{"resource": "cpu", "unit": "core"}), 5)
		},
		func() {
			c.emit(c.clock, "SCA_score", labels{"icos_controller_id": "controller-a", "agent_hostname": "n1", "agent_ip": all[7].ip}, 40)
		},
		func() { // several hosts have this identifier
			c.emit(c.clock, "tlum_host_labels", labels{"icos_controller_id": "controller-a", "icos_host_id": "h0", "label_color": "red"}, 1)
		},
	} {
		c.clock = now.Add(time.Duration(30*(i+1)) * time.Second)
		report(c.clock.Add(-time.Second))
		change()
		var looked atomic.Bool
		c.asked = func(query string) {
			if strings.Contains(query, "last_over_time(tlum_runtime_info") {
				looked.Store(true)
			}
		}
		look()
		c.asked = nil
		require.False(t, looked.Load(), "what there is is stored")
		compare()
	}
}

// TestRefresh_withoutCountsToCompareWith_isOfAllNodes: what has changed since the look before is found all the same.
func TestRefresh_withoutCountsToCompareWith_isOfAllNodes(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]string{
		"none":               `update topology set counts = null, counted_at = null`,
		"those of a former":  `update topology set counted_at = counted_at - interval '1 second'`,
		"of another version": `update topology set counts = replace(counts::text, '"version":', '"version":0, "was":')::json`,
		"another document":   `update topology set counts = '[]'`,
		"too few":            `update topology set counts = jsonb_set(counts::jsonb, '{agents}', '[]')::json`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newContinuum(t)
			at, db := c.collector(), storetest.New(t)
			var whole atomic.Bool
			c.asked = func(query string) {
				if strings.Contains(query, "last_over_time(tlum_runtime_info[") {
					whole.Store(true)
				}
			}
			look := func() bool {
				t.Helper()
				whole.Store(false)
				c.pass(15 * time.Second)
				_, err := at.RefreshAt(t.Context(), db, c.clock)
				require.NoError(t, err)
				return whole.Load()
			}
			require.True(t, look())
			require.False(t, look())
			_, err := db.Exec(t.Context(), spoil)
			require.NoError(t, err)
			require.NoError(t, c.sites.Set("edge-2", map[string]string{"label:color": "violet"}))
			require.True(t, look())
			got, _ := stored(t, db)
			for _, p := range got.Places() {
				require.Equal(t, p.Node == "edge-2", p.At.Labels["color"] == "violet", p.Node)
			}
			require.False(t, look(), "then there are counts again")
		})
	}
}

// TestRefresh_besideAnotherLook_losesNoChange: a look that was compared with an older picture than the stored one does not know what
// the other has seen, even if nothing has changed between that older picture and now.
func TestRefresh_besideAnotherLook_losesNoChange(t *testing.T) {
	t.Parallel()
	c := newContinuum(t)
	at, db := c.collector(), storetest.New(t)
	set := func(score string) {
		t.Helper()
		require.NoError(t, c.sites.Set("edge-2", map[string]string{"sca": score}))
		c.pass(15 * time.Second)
	}
	look := func(when time.Time) {
		t.Helper()
		_, err := at.RefreshAt(t.Context(), db, when)
		require.NoError(t, err)
	}
	score := func() float64 {
		t.Helper()
		got, _ := stored(t, db)
		for _, p := range got.Places() {
			if p.Node == "edge-2" {
				return p.At.ScaScore.Or(0)
			}
		}
		return 0
	}
	set("55")
	look(c.clock)
	set("12")
	between := c.clock
	for range 4 {
		set("55")
	}
	var begun atomic.Bool
	failed := make(chan error, 1)
	c.asked = func(string) {
		if begun.CompareAndSwap(false, true) {
			_, err := at.RefreshAt(context.Background(), db, between)
			failed <- err
		}
	}
	look(c.clock)
	require.NoError(t, <-failed)
	c.asked = nil
	require.InDelta(t, 12, score(), 0, "the other look was stored, and this one dropped")
	set("55")
	look(c.clock)
	require.InDelta(t, 55, score(), 0)
}

// TestRefresh_seesHostsThatExchangeCPUs, though the agent has as many series as before.
func TestRefresh_seesHostsThatExchangeCPUs(t *testing.T) {
	t.Parallel()
	c := &continuum{fleet: newFleet(t), clock: now}
	cpus := map[string]int{"h1": 2, "h2": 6}
	report := func() {
		t.Helper()
		c.clock = c.clock.Add(15 * time.Second)
		for id, n := range cpus {
			m := machine{agent: "agent-nuvla-1", cluster: "c2", id: id, name: id, docker: true}
			for name, l := range map[string]labels{
				"tlum_orch_info":    {"type": "nuvla", "agent_id": m.agent, "agent_name": m.agent},
				"tlum_host_info":    {"hostname": id, "arch": "arm64"},
				"tlum_runtime_info": {"type": "Docker", "node_name": id},
			} {
				c.emit(c.clock, name, with(m.host(), l), 1)
			}
			for cpu := range 8 {
				value := 1000 + c.clock.Sub(now).Seconds()
				if cpu >= n {
					value = prometheus.Stale
				}
				c.emit(c.clock, "node_cpu_seconds_total", with(m.host(), labels{"cpu": fmt.Sprint(cpu), "mode": "idle"}), value)
			}
		}
	}
	at, db := c.collector(), storetest.New(t)
	look := func() {
		t.Helper()
		report()
		_, err := at.RefreshAt(t.Context(), db, c.clock)
		require.NoError(t, err)
		got, _ := stored(t, db)
		for _, p := range got.Places() {
			require.InDelta(t, cpus[p.Node], p.At.StaticMetrics.CPUCores.Or(0), 0, p.Node)
		}
		require.Len(t, got.Places(), 2)
	}
	report()
	report()
	look()
	look()
	cpus["h1"], cpus["h2"] = cpus["h2"], cpus["h1"]
	look()
}

// TestRefresh_ofMoreAgentsThanAreCountedApart: where each node has an agent of its own, all are counted together.
func TestRefresh_ofMoreAgentsThanAreCountedApart(t *testing.T) {
	t.Parallel()
	c := &continuum{fleet: newFleet(t), clock: now}
	const agents = 1001
	report := func() {
		t.Helper()
		c.clock = c.clock.Add(15 * time.Second)
		var round []prometheus.Sample
		for i := range agents {
			name := fmt.Sprintf("n%d", i)
			m := machine{agent: "agent-" + name, cluster: "cluster-" + name, id: name, name: name, docker: true}
			for metric, l := range map[string]labels{
				"tlum_orch_info":    {"type": "nuvla", "agent_id": m.agent, "agent_name": m.agent},
				"tlum_host_info":    {"hostname": name, "arch": "arm64"},
				"tlum_runtime_info": {"type": "Docker", "node_name": name},
			} {
				round = append(round, prometheus.Sample{Name: metric, Labels: with(m.host(), l), Value: 1, At: c.clock})
			}
		}
		require.NoError(t, c.server.Append(t.Context(), round))
	}
	at, db := c.collector(), storetest.New(t)
	look := func() {
		t.Helper()
		report()
		_, err := at.RefreshAt(t.Context(), db, c.clock)
		require.NoError(t, err)
	}
	report()
	look()
	var counted int
	require.NoError(t, db.QueryRow(t.Context(), `select json_array_length(counts->'agents') from topology`).Scan(&counted))
	require.Equal(t, 1, counted)
	var whole atomic.Bool
	c.asked = func(query string) {
		if strings.Contains(query, "last_over_time(tlum_runtime_info[") {
			whole.Store(true)
		}
	}
	m := machine{agent: "agent-n7", cluster: "cluster-n7", id: "n7", name: "n7"}
	c.emit(c.clock.Add(time.Second), "tlum_host_labels", with(m.host(), labels{"label_color": "red"}), 1)
	look()
	require.False(t, whole.Load())
	got, _ := stored(t, db)
	require.Len(t, got.Places(), agents)
	for _, p := range got.Places() {
		require.Equal(t, p.Node == "n7", p.At.Labels["color"] == "red", p.Node)
	}
}
