package carry_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/clusterlink"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/kube"
	"github.com/littoral-project/littoral/shared/linking"
	"github.com/littoral-project/littoral/shared/linking/carry"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/orchestrator/kubernetes"
	"github.com/littoral-project/littoral/shared/orchestrator/ocm"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/kubeapi"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// hello calls world, which D3.3 has in its Snippet 12.
const hello = `
name: shop
components:
  - name: hello
    type: kubernetes
    communication: [{incoming: world-svc}]
    manifests: [{name: hello, manifest: {apiVersion: v1, kind: Pod, metadata: {name: hello}, spec: {containers: [{name: h, image: i}]}}}]
  - name: world
    type: kubernetes
    communication: [{outgoing: world-svc}]
    manifests:
      - {name: world, manifest: {apiVersion: v1, kind: Pod, metadata: {name: world}, spec: {containers: [{name: w, image: i}]}}}
      - {name: world-svc, manifest: {apiVersion: v1, kind: Service, metadata: {name: world-svc}, spec: {ports: [{port: 8080}]}}}
`

// world is clusters a and b under a hub of Open Cluster Management, and c that is reached directly.
type world struct {
	applicationtest.World

	carrier  *carry.Carrier
	clusters map[string]*kubeapi.Server
	agents   map[string]*kubeapi.Agent
	app      uuid.UUID
}

type direct map[string]*kube.Client

func (d direct) Open(name string) (*kube.Client, error) {
	if c := d[name]; c != nil {
		return c, nil
	}
	return nil, orchestrator.Refuse(orchestrator.ReasonClusterNotFound, "no cluster %s", name)
}

func (d direct) Names() []string { return []string{"c"} }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: applicationtest.New(t), clusters: map[string]*kubeapi.Server{}, agents: map[string]*kubeapi.Agent{}}
	hub := kubeapi.Start(t, nil, nil)
	for _, name := range []string{"a", "b", "c"} {
		w.clusters[name] = kubeapi.Start(t, nil, []string{name + "-1"})
		w.clusters[name].HasLinks()
		if name != "c" {
			w.agents[name] = kubeapi.Join(t, hub, w.clusters[name], name)
		}
	}
	open := func(s *kubeapi.Server) *kube.Client {
		c, err := kube.Read([]byte(s.Kubeconfig()), nil)
		require.NoError(t, err)
		return c
	}
	w.carrier = &carry.Carrier{
		DB: w.DB, Log: slog.New(slog.DiscardHandler), Links: clusterlink.Settings{Kind: clusterlink.ClusterLink}, Wait: 0,
		Orchestrators: map[string]orchestrator.Orchestrator{
			kinds.OCM: ocm.New(open(hub)), kinds.Direct: kubernetes.New(direct{"c": open(w.clusters["c"])}),
		},
	}
	w.app = applicationtest.Submit(t, w.DB, hello).ID
	return w
}

// place has hello and world run in these clusters.
func (w *world) place(clusters ...string) {
	w.Helper()
	for i, cluster := range clusters {
		to := job.Target{Orchestrator: kinds.OCM, Cluster: cluster, Node: cluster + "-1"}
		if cluster == "c" {
			to.Orchestrator = kinds.Direct
		}
		require.NoError(w, w.DB.Tx(w.Context(), func(ctx context.Context, tx *store.Tx) error {
			a, err := application.Lock(ctx, tx, w.app)
			if err != nil || a.Jobs[i].Target == to {
				return err
			}
			if a.Jobs[i].Placed() {
				if err := a.Jobs[i].Displace(ctx, tx, "a drain", false); err != nil {
					return err
				}
			}
			return a.Jobs[i].Place(ctx, tx, to, "for the test")
		}))
	}
}

// link plans and carries out, with the agents and peers at work, until nothing is open any more.
func (w *world) link() {
	w.Helper()
	require.Eventually(w, func() bool {
		err := w.carrier.Application(w.Context(), w.app)
		w.turn()
		if err != nil {
			require.Equal(w, problem.Unavailable, problem.KindOf(err), err.Error())
			return false
		}
		for _, s := range w.sides() {
			if s.State != linking.Ready {
				return false
			}
		}
		return true
	}, 30*time.Second, time.Millisecond)
}

// begin plans and carries out as far as that goes without agents.
func (w *world) begin() {
	w.Helper()
	if err := w.carrier.Application(w.Context(), w.app); err != nil {
		require.Equal(w, problem.Unavailable, problem.KindOf(err), err.Error())
	}
}

func (w *world) turn(broken ...string) {
	for name := range w.clusters {
		if a := w.agents[name]; a != nil {
			a.Work()
			w.clusters[name].Peer(broken...)
			a.Report()
			continue
		}
		w.clusters[name].Work()
		w.clusters[name].Peer(broken...)
	}
}

func (w *world) sides() []linking.Side {
	w.Helper()
	sides, err := linking.Of(w.Context(), w.DB, w.app)
	require.NoError(w, err)
	return sides
}

// has lists the objects of ClusterLink in a cluster, each as kind and number.
func (w *world) has(cluster string) string {
	var all []string
	for _, kind := range []string{"exports", "imports", "accesspolicies"} {
		for _, path := range w.clusters[cluster].Paths("/" + kind + "/") {
			name := path[strings.LastIndexByte(path, '/')+1:]
			if kind == "accesspolicies" {
				name = name[:len("littoral-to")]
			}
			all = append(all, kind+" "+strings.TrimSuffix(name, "-f"))
		}
	}
	return strings.Join(all, ", ")
}

const (
	serving = "exports world-svc, accesspolicies littoral-fr"
	calling = "imports world-svc, accesspolicies littoral-to"
)

func (w *world) sources(cluster string) string {
	o := w.clusters[cluster].Get(w.clusters[cluster].Paths("/imports/")[0])
	sources, _, _ := unstructured.NestedSlice(o.Object, "spec", "sources")
	var peers []string
	for _, s := range sources {
		peers = append(peers, s.(map[string]any)["peer"].(string))
	}
	return strings.Join(peers, ",")
}

func TestLinksAreMadeMovedWithEitherEndAndRemovedWithTheLastUser(t *testing.T) {
	w := newWorld(t)
	w.place("a", "a")
	w.link()
	require.Empty(t, w.sides(), "in one cluster they need nothing")

	w.place("a", "b")
	w.link()
	require.Equal(t, calling, w.has("a"))
	require.Equal(t, serving, w.has("b"))
	require.Equal(t, "b", w.sources("a"))

	w.place("a", "c") // the server moves, to a cluster of another orchestrator
	w.link()
	require.Equal(t, calling, w.has("a"))
	require.Equal(t, "c", w.sources("a"))
	require.Empty(t, w.has("b"), "nobody uses it any more")
	require.Equal(t, serving, w.has("c"))
	epochs := map[string]int64{}
	for _, s := range w.sides() {
		epochs[s.Cluster] = s.Epoch
	}

	w.place("b", "c") // the client moves
	w.link()
	require.Empty(t, w.has("a"))
	require.Equal(t, calling, w.has("b"))
	require.Equal(t, serving, w.has("c"))
	for _, s := range w.sides() {
		require.Greater(t, s.Epoch, epochs[s.Cluster], "the policy names the client's peer")
	}

	w.place("c", "c")
	w.link()
	require.Empty(t, w.has("b")+w.has("c"))
	require.Empty(t, w.sides())
}

func TestAStoppedApplicationLeavesNoLink(t *testing.T) {
	w := newWorld(t)
	w.place("a", "c")
	w.link()
	require.NoError(t, w.DB.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := application.Stop(ctx, tx, w.app)
		return err
	}))
	w.link()
	require.Empty(t, w.has("a")+w.has("c"))
	for name, cluster := range w.clusters {
		require.Empty(t, cluster.Paths("/namespaces/shop-"), name)
	}
}

func TestTurningLinksOffRemovesThem(t *testing.T) {
	w := newWorld(t)
	w.place("a", "c")
	w.link()
	w.carrier.Links = clusterlink.Settings{}
	require.Eventually(t, func() bool {
		require.NoError(t, w.carrier.Sync(t.Context()))
		w.turn()
		return len(w.sides()) == 0
	}, 30*time.Second, time.Millisecond)
	require.Empty(t, w.has("a")+w.has("c"))
}

func TestTheSynchronisationPutsBackWhatSomebodyTookAway(t *testing.T) {
	w := newWorld(t)
	w.place("a", "c")
	w.link()
	path := w.clusters["c"].Paths("/exports/")[0]
	before := len(w.clusters["c"].Calls())
	require.NoError(t, w.carrier.Sync(t.Context()))
	require.Len(t, w.clusters["c"].Calls(), before, "nothing is new, so nothing is written")
	w.clusters["c"].Forget(path)
	require.Empty(t, w.clusters["c"].Paths("/exports/"))
	require.NoError(t, w.carrier.Sync(t.Context()))
	require.NotEmpty(t, w.clusters["c"].Paths("/exports/"))
}

func TestASilentClusterGetsItsLinkWhenItIsBack(t *testing.T) {
	w := newWorld(t)
	w.place("a", "b")
	w.agents["b"].Cut(true)
	w.begin()
	w.turn()
	require.NoError(t, w.carrier.Sync(t.Context()))
	states := map[string]linking.State{}
	for _, s := range w.sides() {
		states[s.Cluster] = s.State
	}
	require.Equal(t, map[string]linking.State{"a": linking.Ready, "b": linking.Silent}, states)
	w.place("a", "c") // it moves while the partition lasts
	w.begin()
	w.agents["b"].Cut(false)
	require.Eventually(t, func() bool {
		require.NoError(t, w.carrier.Sync(t.Context()))
		w.turn()
		return w.has("b") == "" && w.has("c") == serving && len(w.sides()) == 2
	}, 30*time.Second, time.Millisecond, "no stale link is left")
}

// client returns the client's job.
func (w *world) client() *job.Job { return applicationtest.Job(w, w.DB, w.app) }

func TestAClientStartsAfterItsLinkAndIsAvailableWithIt(t *testing.T) {
	w := newWorld(t)
	w.place("a", "c")
	o := carry.Orchestrator(w.carrier.Orchestrators[kinds.OCM], w.DB, w.carrier.Links, 0)
	j := w.client()
	require.Equal(t, problem.Unavailable, problem.KindOf(o.Apply(t.Context(), j)), "it waits for its link")
	require.Len(t, w.sides(), 2, "which was planned all the same")
	w.begin()
	w.turn("world-svc") // the peer does not find it valid
	for range 2 {
		require.NoError(t, w.carrier.Sync(t.Context()))
	}
	require.NoError(t, o.Apply(t.Context(), j), "both clusters have it")
	w.turn("world-svc")
	s, err := o.Observe(t.Context(), j)
	require.NoError(t, err)
	state, conditions := s.Verdict(j)
	require.Equal(t, job.Progressing, state)
	j.Conditions = conditions
	require.Equal(t, "LinkNotValid", j.Condition(job.ConditionAvailable).Reason)
	w.turn()
	_, seen, err := o.Copies(t.Context())
	require.NoError(t, err)
	for _, how := range []orchestrator.Orchestrator{o, seen} {
		s, err = how.Observe(t.Context(), j)
		require.NoError(t, err)
		state, _ = s.Verdict(j)
		require.Equal(t, job.Finished, state)
	}
}

func TestAClientIsRefusedWhenItsLinkIs(t *testing.T) {
	w := newWorld(t)
	w.clusters["c"] = nil
	w.carrier.Orchestrators[kinds.Direct] = kubernetes.New(direct{})
	w.place("a", "c")
	o := carry.Orchestrator(w.carrier.Orchestrators[kinds.OCM], w.DB, w.carrier.Links, 0)
	w.begin()
	var refusal *orchestrator.Refusal
	require.ErrorAs(t, o.Apply(t.Context(), w.client()), &refusal)
	require.Equal(t, "LinkRefused", refusal.Reason)
}
