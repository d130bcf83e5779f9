package walks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
	"github.com/littoral-project/littoral/test/inprocess"
	"github.com/littoral-project/littoral/test/kubeapi"
	"github.com/littoral-project/littoral/test/nuvla"
)

// The places of the world: two clusters behind a hub, one for direct deployments, one with an agent that polls, and two
// edges of Nuvla, of which one runs compose files.
var places = map[string]struct {
	orchestrator, engine string
	nodes                []string
}{
	"one":    {"ocm", topology.Kubernetes, []string{"one-a", "one-b"}},
	"two":    {"ocm", topology.Kubernetes, []string{"two-a", "two-b"}},
	"three":  {"kubernetes", topology.Kubernetes, []string{"three-a", "three-b"}},
	"four":   {"compose", topology.Kubernetes, []string{"four-a", "four-b"}},
	"five":   {"nuvla", topology.Kubernetes, []string{"five-a", "five-b"}},
	composes: {"nuvla", topology.Docker, []string{"six-a", "six-b"}},
}

// composes is the place whose engine is Docker's.
const composes = "six"

// orchestrator is that of a place. In some worlds the agent's cluster is an edge of Nuvla as well, of which the functions for
// Nuvla know nothing, as the agent knows nothing of theirs.
func (w *world) orchestrator(place string) string {
	if place == "four" && w.mixed {
		return places[composes].orchestrator
	}
	return places[place].orchestrator
}

// agents serve the fourth cluster, one after the other.
var agents = []string{"agent-four", "agent-five"}

// world is the whole system with its clusters, and what was asked of it.
type world struct {
	t      *testing.T
	random *rand.Rand
	steps  []string // steps taken so far

	*inprocess.System
	tokens    map[string]string    // by role, or agent
	pending   []inprocess.Delivery // events that the Broker has still to deliver
	delivered []inprocess.Delivery // events that may be delivered again

	hub    *kubeapi.Server
	agents map[string]*kubeapi.Agent // of clusters one and two
	three  *kubeapi.Server
	agent  *agent        // of cluster four
	nuvla  *nuvla.Server // of five and six
	rules  string        // with the rules of policies
	mixed  bool          // cluster four is an edge of Nuvla
	lossy  bool          // the Broker loses events that it has accepted, and nobody tells it

	away    map[string]string // node -> drained, silent
	trouble map[string]bool   // present faults
	resting bool              // no more faults happen
	apps    []*app

	past *past // nil: the database was not restored
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		t: t, random: rand.New(rand.NewPCG(seed, 0)), tokens: map[string]string{}, away: map[string]string{}, trouble: map[string]bool{},
		hub: kubeapi.Start(t, nil, nil), agents: map[string]*kubeapi.Agent{}, three: kubeapi.Start(t, nil, places["three"].nodes),
		nuvla: nuvla.Start(t), mixed: seed%4 == 2,
	}
	w.nuvla.AddEdge("five", nuvla.Kubernetes)
	w.nuvla.AddEdge(composes, nuvla.Docker)
	for _, name := range []string{"one", "two"} {
		w.agents[name] = kubeapi.Join(t, w.hub, kubeapi.Start(t, nil, places[name].nodes), name)
	}
	kubeconfigs := t.TempDir()
	w.rules = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(kubeconfigs, "three"), []byte(w.three.Kubeconfig()), 0o600))
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.Routes.ServeHTTP(rw, r) }))
	t.Cleanup(api.Close)
	// see stores a topology in place of the aggregator, since there is no telemetry.
	w.System = inprocess.Hold(t, func(issuer *inprocess.Issuer) settings.Lookup {
		for _, role := range []auth.Role{auth.Operator, auth.Alertmanager} {
			w.tokens[string(role)] = issuer.Token(t, role)
		}
		for _, id := range agents {
			w.tokens[id] = issuer.AgentToken(t, id)
		}
		return settings.Map(map[string]string{
			"OCM_HUB": w.hub.KubeconfigFile(t, "hub"), "KUBECONFIG_DIR": kubeconfigs, "DEPLOY_WAIT": "0s", "OUTBOX_AGE": "0s",
			"RULES_BACKEND": "files", "RULES_DIR": w.rules, "RULES_API_URL": api.URL + "/rules/",
			"RULES_API_TOKEN": w.tokens[string(auth.Operator)], "PROMETHEUS_ADDRESS": "http://127.0.0.1:1",
			"NUVLA_ENDPOINT": w.nuvla.URL, "NUVLA_API_KEY": nuvla.Key, "NUVLA_API_SECRET": nuvla.Secret,
		})
	}, "aggregator-tick", "aggregator-alerted")
	w.agent = &agent{world: w, Agent: inprocess.NewAgent(t, w.orchestrator("four"), agents[0], w.call), epochs: seed%2 == 0, names: seed%3 == 0, copies: map[string]string{}, unsaid: map[string]string{}}
	t.Cleanup(func() {
		if t.Failed() || testing.Verbose() {
			t.Logf("the walk of seed %d:\n%s", seed, strings.Join(w.steps, "\n"))
		}
	})
	w.see()
	return w
}

func (w *world) log(format string, args ...any) {
	w.steps = append(w.steps, fmt.Sprintf("%3d %s", len(w.steps), fmt.Sprintf(format, args...)))
}

// call sends a request and collects its events for the Broker.
func (w *world) call(as, method, path, body string) (status int, answer []byte) {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+w.tokens[as])
	recorder := httptest.NewRecorder()
	w.Routes.ServeHTTP(recorder, r)
	w.collect()
	return recorder.Code, bytes.TrimSpace(recorder.Body.Bytes())
}

// collect adds the Broker's events to the pending ones, for each consumer separately.
func (w *world) collect() {
	w.t.Helper()
	require.NoError(w.t, w.DB.Flush(w.t.Context()))
	for _, d := range w.Broker.Dequeue() {
		for _, to := range w.Broker.Consumers(d.Event) {
			if w.lossy && !w.resting && w.random.IntN(8) == 0 {
				w.log("%s %s for %s is lost", d.Type(), d.Subject(), to)
				continue
			}
			w.pending = append(w.pending, inprocess.Delivery{Event: d.Event, To: to})
		}
	}
}

// attempts is how often an event is delivered again by its Trigger.
const attempts = 11

// removePending removes the i-th of what is pending.
func (w *world) removePending(i int) inprocess.Delivery {
	d := w.pending[i]
	w.pending = slices.Delete(w.pending, i, i+1)
	return d
}

// deliver delivers all of these concurrently. Failed ones are delivered again later.
func (w *world) deliver(list ...inprocess.Delivery) {
	w.t.Helper()
	w.deliverWhile(func() {}, list)
}

// deliverWhile delivers all of these during another step. Some deliveries are interrupted.
func (w *world) deliverWhile(do func(), list []inprocess.Delivery) {
	w.t.Helper()
	errs, cut := make([]error, len(list)), make([]bool, len(list))
	var all sync.WaitGroup
	for i, d := range list {
		ctx, cancel := context.WithCancel(w.t.Context())
		if cut[i] = w.random.IntN(8) == 0 && !w.resting; cut[i] {
			defer time.AfterFunc(time.Duration(w.random.IntN(15_000))*time.Microsecond, cancel).Stop()
		}
		defer cancel()
		w.log("%s is given %s %s", d.To, d.Type(), d.Subject())
		all.Go(func() { errs[i] = w.Broker.DeliverTo(ctx, d.To, d.Event) })
	}
	do()
	all.Wait()
	w.collect()
	for i, d := range list {
		err := errs[i]
		if err == nil {
			w.delivered = append(w.delivered, d)
			continue
		}
		w.log("    %v", err)
		if cut[i] {
			w.pending = append(w.pending, d)
			continue
		}
		require.Regexp(w.t, " (409|503) to ", err.Error(), "only what may go well later is refused")
		if !w.troubled() {
			d.Failures++
			w.endClaims() // nothing else is delivered now, so whoever has one was cut off
		}
		if d.Failures > attempts {
			require.Equal(w.t, "policymanager-remediate", d.To, "%s never takes %s %s: %v", d.To, d.Type(), d.Subject(), err)
			w.log("    it becomes a dead letter") // the remediation of a violation may never become possible
			dead := d.Event.Clone()
			dead.SetExtension("knativeerrordest", "http://"+d.To+".littoral.svc.cluster.local")
			dead.SetExtension("knativeerrorcode", http.StatusServiceUnavailable)
			require.NoError(w.t, w.Broker.DeliverTo(w.t.Context(), "outbox-dead-letter", dead))
			continue
		}
		w.pending = append(w.pending, d)
	}
}

// tick wakes a scheduled function.
func (w *world) tick(name string) {
	w.t.Helper()
	w.log("%s ticks", name)
	if err := w.Broker.TickOne(w.t.Context(), name); err != nil {
		w.log("    %v", err)
		require.Contains(w.t, err.Error(), " 503 ")
	}
	w.collect()
}

// troubled reports whether something that functions need is failing.
func (w *world) troubled() bool { return len(w.trouble) > 0 }

// heal repairs all faults.
func (w *world) heal() {
	w.t.Helper()
	for name := range w.agents {
		w.join(name)
	}
	for _, s := range []*kubeapi.Server{w.hub, w.three} {
		s.Cut(false)
		s.Refuse(nil)
	}
	w.nuvla.Heal()
	w.nuvla.Offline("five", false)
	w.nuvla.Offline(composes, false)
	w.Broker.Fail(nil)
	clear(w.away)
	clear(w.trouble)
}

// join registers the cluster on the hub, and lets its agent reach the hub.
func (w *world) join(name string) {
	w.agents[name] = kubeapi.Join(w.t, w.hub, w.agents[name].Cluster, name)
}

// remove deletes an object without anyone's knowledge.
func (w *world) remove(s *kubeapi.Server, path string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodDelete, s.URL+path, http.NoBody)
	require.NoError(w.t, err)
	resp, err := http.DefaultClient.Do(r)
	if err == nil { // otherwise the API cannot be reached
		require.NoError(w.t, resp.Body.Close())
	}
}

// meddle deletes something that was deployed, like a stranger.
func (w *world) meddle() {
	w.t.Helper()
	if w.past != nil {
		return // what nobody knows any more would not come back
	}
	if deployments := w.nuvla.Of("deployment"); len(deployments) > 0 && w.random.IntN(5) == 0 {
		id, _ := deployments[w.random.IntN(len(deployments))]["id"].(string)
		w.log("a stranger stops %s", id)
		w.nuvla.Stop(id)
		return
	}
	servers := []*kubeapi.Server{w.hub, w.three, w.agents["one"].Cluster, w.agents["two"].Cluster}
	s := servers[w.random.IntN(len(servers))]
	if paths := slices.Concat(s.Paths("/manifestworks/"), s.Paths("/deployments/")); len(paths) > 0 {
		path := paths[w.random.IntN(len(paths))]
		w.log("a stranger deletes %s", path)
		w.remove(s, path)
	}
}

// disturb causes or repairs a fault.
func (w *world) disturb() {
	what := w.pick("one", "two", "three", "hub", "broker", "flaky hub", "flaky three", "one at the hub", "five", composes,
		"nuvla", "flaky nuvla", "forgetful nuvla")
	away := !w.trouble[what]
	if away {
		w.trouble[what] = true
		w.log("%s is away", what)
	} else {
		delete(w.trouble, what)
		w.log("%s is well again", what)
	}
	flaky := func(s *kubeapi.Server) {
		if !away {
			s.Refuse(nil)
			return
		}
		var writes atomic.Int64
		s.Refuse(func(string, string) error {
			if writes.Add(1)%2 == 1 {
				return apierrors.NewInternalError(errors.New("etcd has no leader"))
			}
			return nil
		})
	}
	switch what {
	case "one", "two":
		w.agents[what].Cut(away)
	case "three":
		w.three.Cut(away)
	case "five", composes:
		w.nuvla.Offline(what, away)
	case "nuvla", "flaky nuvla", "forgetful nuvla": // one of them at a time
		w.nuvla.Heal()
		for _, other := range []string{"nuvla", "flaky nuvla", "forgetful nuvla"} {
			if other != what {
				delete(w.trouble, other)
			}
		}
		if away {
			w.nuvla.Fail(map[string]nuvla.Fault{
				"nuvla":           {Status: http.StatusBadGateway},
				"flaky nuvla":     {Call: w.pick("POST /api/deployment", "PUT /api/deployment", "POST /api/module", "DELETE"), Status: http.StatusInternalServerError},
				"forgetful nuvla": {Call: w.pick("POST /api/deployment", "PUT /api/", "DELETE"), After: true},
			}[what])
		}
	case "hub":
		w.hub.Cut(away)
	case "broker":
		var err error
		if away {
			err = errors.New("the Broker is away")
		}
		w.Broker.Fail(err)
	case "one at the hub":
		if away {
			w.remove(w.hub, "/apis/cluster.open-cluster-management.io/v1/managedclusters/one")
		} else {
			w.join("one")
		}
	case "flaky hub":
		flaky(w.hub)
	case "flaky three":
		flaky(w.three)
	}
}

// pick returns one of the values.
func (w *world) pick(values ...string) string { return values[w.random.IntN(len(values))] }

// side is the label that divides the nodes of each cluster.
func side(node string) string { return node[len(node)-1:] }

// see stores a topology like the aggregator: all nodes with changing scores, some drained and some silent.
func (w *world) see() {
	w.t.Helper()
	now := time.Now()
	taxonomy := &topology.Taxonomy{Cluster: map[string]topology.Cluster{}}
	for _, name := range slices.Sorted(maps.Keys(places)) {
		c := topology.Cluster{Type: w.orchestrator(name), Name: name, Engine: places[name].engine, Node: map[string]topology.Node{}}
		if name == "four" {
			c.AgentID = w.agent.ID
		}
		for _, node := range places[name].nodes {
			schedulable, seen := w.away[node] != "drained", now
			if w.away[node] == "silent" {
				seen = now.Add(-time.Hour)
			}
			c.Node[node] = topology.Node{
				Name: node, Schedulable: &schedulable, LastSeen: topology.Known(float64(seen.Unix())),
				ScaScore: topology.Known(float64(w.random.IntN(100))), Labels: map[string]string{"side": side(node)},
				StaticMetrics: topology.StaticMetrics{
					CPUArchitecture: "amd64", CPUCores: topology.Known(64), RAMMemory: topology.Known(64 << 30),
				},
			}
		}
		taxonomy.Cluster[name] = c
	}
	require.NoError(w.t, w.DB.Tx(w.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := topology.Save(ctx, tx, taxonomy, now, time.Minute)
		return err
	}))
	w.collect()
}

// decode reads an answer.
func decode[T any](t *testing.T, text []byte) T {
	t.Helper()
	var v T
	require.NoError(t, json.Unmarshal(text, &v), "%s", text)
	return v
}
