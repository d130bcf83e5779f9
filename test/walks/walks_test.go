// Package walks_test takes random walks through the whole system: people submit, change, stop, start and delete
// applications, policies ask for remediations, nodes are drained or become silent, clusters, hub and Broker fail and
// recover, events arrive late, out of order and more than once, or in a third of the worlds not at all. Whatever
// happened, once all faults are repaired and all work is done, exactly what was last asked for runs, in one place, and
// nothing else is left anywhere.
//
//	go test ./test/walks                          # a few walks
//	go test ./test/walks -walks 500 -seed 1000    # many others
//	go test ./test/walks -walks 1 -seed 17 -v     # the steps of one
package walks_test

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/telemetry/rules/files"
	"github.com/littoral-project/littoral/test/inprocess"
	"github.com/littoral-project/littoral/test/kubeapi"
)

var (
	walks = flag.Int("walks", 8, "how many walks to take")
	first = flag.Uint64("seed", 1, "of the first walk; the next have those that follow")
	steps = flag.Int("steps", 150, "of a walk")
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestWalks(t *testing.T) {
	for n := range *walks {
		seed := *first + uint64(n)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed)
			if w.lossy = seed%3 == 1; w.lossy {
				w.subscribe()
			}
			for range *steps {
				w.step()
			}
			w.rest()
			w.check()
		})
	}
}

// threshold is the threshold of a descriptor's policy.
const threshold = "0.8"

// app is what a person has asked for.
type app struct {
	name, id   string
	components []component
	desired    string // running, stopped, deleted

	remediation string    // of its policy
	firing      time.Time // start of the violation; zero if the policy is not violated
	paused      bool      // the policy is not watched
	threshold   string    // of the policy, set by the descriptor or later by a person
}

type component struct {
	name, image, at string
	sides           []string // labels of which each needs a replica; none = one anywhere
	both            bool     // it may be run from a compose file, too
}

// places are the sides of which each needs a replica; "" stands for either.
func (c component) places() []string {
	if len(c.sides) == 0 {
		return []string{""}
	}
	return c.sides
}

// document is the descriptor of the application.
func (w *world) document(a *app) string {
	b := &strings.Builder{}
	fmt.Fprintf(b, "name: %s\ncomponents:\n", a.name)
	for _, c := range a.components {
		typ := "kubernetes"
		if c.both {
			typ = "multiple"
		}
		fmt.Fprintf(b, "  - name: %s\n    type: %s\n    requirements: {cpu: 1500m", c.name, typ)
		if len(c.sides) > 0 {
			fmt.Fprintf(b, ", nodelabel: {key: side, values: [%s]}", strings.Join(c.sides, ", "))
		}
		b.WriteString("}\n")
		if c.at != "" {
			fmt.Fprintf(b, "    targets: {cluster_name: %s, orchestrator: %s}\n", c.at, w.orchestrator(c.at))
		}
		fmt.Fprintf(b, "    manifests: [{name: %[1]s, manifest: {apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s}, spec: {replicas: 1, "+
			"selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: main, image: %[2]q}]}}}}}", c.name, c.image)
		if c.both {
			fmt.Fprintf(b, ", {name: %[1]s-file, manifest: {services: {%[1]s: {image: %[2]q}}}}", c.name, c.image)
		}
		b.WriteString("]\n")
	}
	fmt.Fprintf(b, "policies:\n  - {name: load, apply-to: web, fromTemplate: app-host-cpu-usage-perc, remediation: %s, variables: {threshold: %s}}\n",
		a.remediation, threshold)
	return b.String()
}

func (a *app) policyName() string { return a.name + "-" + a.id + "-load" }

func (a *app) policyID() string { return registry.ID(a.id, a.policyName()) }

// alert is a message of Alertmanager about the policy of the application.
func (a *app) alert(status string) string {
	return fmt.Sprintf(`{"version": "4", "alerts": [{"status": %q, "startsAt": %q, "fingerprint": %q,
"labels": {"alertname": %q, "icos_app_instance": %q, "icos_app_component": "web"},
"annotations": {"plm_id": %q, "plm_expr_value": "0.9"}}]}`,
		status, a.firing.UTC().Format(time.RFC3339Nano), a.name, a.policyName()+":rule-0", a.id, a.policyID())
}

// ticking are the functions that PingSources wake.
var ticking = []string{
	"outbox-sweep", "deploymentmanager-sync-ocm", "deploymentmanager-sync-kubernetes", "deploymentmanager-sync-nuvla", "jobmanager-displace",
	"policymanager-reconcile",
}

// step makes one random step.
func (w *world) step() {
	switch n := w.random.IntN(100); {
	case n < 32:
		if len(w.pending) > 0 {
			i := 0
			if w.random.IntN(3) == 0 {
				i = w.random.IntN(len(w.pending))
			}
			w.deliver(w.removePending(i))
		}
	case n < 37:
		var some []inprocess.Delivery
		for range min(len(w.pending), 4) {
			some = append(some, w.removePending(w.random.IntN(len(w.pending))))
		}
		w.deliverWhile(w.other(), some)
	case n < 40:
		if len(w.delivered) > 0 {
			d := w.delivered[w.random.IntN(len(w.delivered))]
			d.Failures = 0
			w.log("once more")
			w.deliver(d)
		}
	case n < 49:
		w.work()
	case n < 55:
		w.tick(w.pick(ticking...))
	case n < 58:
		w.agent.list()
	case n < 66:
		w.agent.do()
	case n < 70:
		w.disturb()
	case n < 76:
		w.nodes()
	case n < 78:
		w.lapse()
	case n < 80:
		w.meddle()
	case n < 81:
		w.agent.ID = agents[(slices.Index(agents, w.agent.ID)+1)%len(agents)]
		w.log("four is served by %s now", w.agent.ID)
		w.see()
	default:
		w.user()
	}
}

// other is a step during the delivery of events.
func (w *world) other() func() {
	return []func(){w.user, w.agent.do, w.work, func() { w.tick(w.pick(ticking...)) }, func() {}}[w.random.IntN(5)]
}

// work lets the clusters carry out their requests.
func (w *world) work() {
	w.log("clusters work")
	for _, name := range []string{"one", "two"} {
		w.agents[name].Work()
	}
	w.three.Work()
	w.nuvla.Work()
}

// nodes drains a node, silences one, or restores one.
func (w *world) nodes() {
	cluster := w.pick(slices.Sorted(maps.Keys(places))...)
	node := w.pick(places[cluster].nodes...)
	if w.away[node] == "" {
		w.away[node] = w.pick("drained", "silent")
	} else {
		delete(w.away, node)
	}
	w.log("node %s is now %q", node, w.away[node])
	w.see()
}

// lapse lets time pass until all leases and claims have expired.
func (w *world) lapse() {
	w.log("time passes")
	w.endClaims()
	for _, sql := range []string{
		`update jobs set lease_until = now() - interval '1 s' where lease_until is not null`,
		`update jobs set created_at = created_at - interval '1 min'`,
		`update jobs set updated_at = updated_at - interval '10 min' where owner_id <> '' and state <> 'Finished'`,
		`update outbox set created_at = created_at - interval '1 d', tried_at = tried_at - interval '1 d'`,
	} {
		_, err := w.DB.Exec(w.t.Context(), sql)
		require.NoError(w.t, err)
	}
}

// endClaims lets the claims of those who were cut off in their midst end.
func (w *world) endClaims() {
	_, err := w.DB.Exec(w.t.Context(), `update claims set ends_at = now() - interval '1 s'`)
	require.NoError(w.t, err)
}

// user makes a request of a person or a policy.
func (w *world) user() {
	var alive []*app
	for _, a := range w.apps {
		if a.desired != "deleted" {
			alive = append(alive, a)
		}
	}
	if len(alive) == 0 || len(alive) < 4 && w.random.IntN(4) == 0 {
		w.submit()
		return
	}
	a := alive[w.random.IntN(len(alive))]
	group := "/jobmanager/groups/" + a.id
	switch w.random.IntN(15) {
	case 0, 1, 2:
		was := slices.Clone(a.components)
		w.alter(a)
		status, answer := w.call(string(auth.Operator), http.MethodPut, group, w.document(a))
		w.log("%s is changed to %v: %d %s", a.name, a.components, status, brief(answer))
		if status != http.StatusOK {
			require.Equal(w.t, http.StatusConflict, status, "%s", answer)
			a.components = was
			return
		}
		a.threshold = threshold
	case 3:
		w.order(a, "stop", "stopped")
	case 4, 5:
		w.order(a, "start", "running")
	case 6:
		status, answer := w.call(string(auth.Operator), http.MethodDelete, group+"?stop=true", "")
		w.log("%s is deleted: %d %s", a.name, status, brief(answer))
		require.Contains(w.t, []int{http.StatusOK, http.StatusAccepted}, status, "%s", answer)
		a.desired = "deleted"
	case 10, 11:
		w.tend(a)
	case 7, 8, 9:
		said := "firing"
		switch {
		case a.firing.IsZero():
			a.firing = time.Now()
		case w.random.IntN(2) == 0:
			said = "resolved"
		}
		status, answer := w.call(string(auth.Alertmanager), http.MethodPost, "/polman/watcher/api/v1/webhooks/alertmanager", a.alert(said))
		w.log("the policy of %s is %s: %d %s", a.name, said, status, brief(answer))
		require.Equal(w.t, http.StatusOK, status, "%s", answer)
		if said == "resolved" {
			a.firing = time.Time{}
		}
	default:
		remediation := w.pick("reallocate", "scale-out", "scale-in", "replace")
		status, answer := w.call(string(auth.Operator), http.MethodPost, "/jobmanager/policies/incompliance", fmt.Sprintf(
			`{"policyName": "p", "remediation": %q, "subject": {"appInstance": %q, "appComponent": %q}}`,
			remediation, a.id, a.components[0].name))
		w.log("%s of %s is asked for: %d %s", remediation, a.name, status, brief(answer))
		require.Contains(w.t, []int{http.StatusOK, http.StatusConflict, http.StatusNotFound}, status, "%s", answer)
	}
}

// tend makes a person's change to a policy.
func (w *world) tend(a *app) {
	value := fmt.Sprintf("0.%d1", len(w.steps)%90+10)
	what := w.pick("activate", "deactivate", "variables/threshold/"+value)
	status, answer := w.call(string(auth.Operator), http.MethodPost, "/polman/registry/api/v1/policies/"+a.policyID()+"/"+what, "")
	w.log("the policy of %s is told to %s: %d %s", a.name, what, status, brief(answer))
	require.Contains(w.t, []int{http.StatusNoContent, http.StatusNotFound}, status, "%s", answer)
	switch {
	case status == http.StatusNotFound: // the policy manager does not know it yet
	case what == "activate":
		a.paused = false
	case what == "deactivate":
		a.paused = true
	default:
		a.threshold = value
	}
}

func (w *world) order(a *app, what, desired string) {
	status, answer := w.call(string(auth.Operator), http.MethodPut, "/jobmanager/groups/"+what+"/"+a.id, "")
	w.log("%s is told to %s: %d %s", a.name, what, status, brief(answer))
	require.Equal(w.t, http.StatusOK, status, "%s", answer)
	a.desired = desired
}

func (w *world) submit() {
	a := &app{
		name: fmt.Sprint("app-", len(w.apps)), desired: "running", threshold: threshold,
		remediation: w.pick("reallocate", "scale-out", "replace", "none"),
	}
	w.alter(a)
	status, answer := w.call(string(auth.Operator), http.MethodPost, "/jobmanager/groups", w.document(a))
	w.log("%s is handed in with %v: %d %s", a.name, a.components, status, brief(answer))
	require.Equal(w.t, http.StatusCreated, status, "%s", answer)
	a.id = decode[struct {
		ID string `json:"id"`
	}](w.t, answer).ID
	w.apps = append(w.apps, a)
}

// alter changes the components of the application.
func (w *world) alter(a *app) {
	image := fmt.Sprint("image:", len(w.steps))
	var at string // for all, since an application has one orchestrator
	if w.random.IntN(4) == 0 {
		at = w.pick(slices.Sorted(maps.Keys(places))...)
	}
	sides := [][]string{nil, nil, {"a"}, {"a", "b"}, {"b", "a"}}[w.random.IntN(5)]
	both := at == composes || w.random.IntN(3) == 0
	next := []component{{"web", image, at, sides, both}}
	if w.random.IntN(2) == 0 {
		next = append(next, component{"db", image, at, nil, both})
	}
	a.components = next
}

// rest repairs all faults and lets everyone do their work until nothing changes any more.
func (w *world) rest() {
	w.t.Helper()
	w.heal()
	w.resting = true
	w.log("all is well")
	w.see()
	for range 30 {
		w.answer()
		w.work()
		w.agent.list()
		for len(w.agent.listed) > 0 {
			w.agent.do()
		}
		for _, name := range ticking {
			w.tick(name)
		}
		w.lapse()
	}
	for range 5 {
		w.answer()
	}
	require.Empty(w.t, w.pending, "events go on for ever")
}

// answer delivers everything that is pending now.
func (w *world) answer() {
	w.t.Helper()
	for range len(w.pending) {
		w.deliver(w.removePending(0))
	}
}

// row is a job in the database.
type row struct {
	ID, Application, Component, State, Cluster, Node string
	Cleans, Available                                bool
	Text                                             string
}

// check compares the requests with the database, and the database with what runs.
func (w *world) check() {
	w.t.Helper()
	jobs, err := store.Collect(w.t.Context(), w.DB, "read jobs", pgx.RowToStructByPos[row], `select id::text, application_id::text, component, state,
cluster, node, cleans is not null, coalesce(conditions @> '[{"type": "Available", "status": "True"}]', false), jobs::text from jobs order by id`)
	require.NoError(w.t, err)
	wanted := map[string]string{} // cluster/job -> image of the copies
	for _, a := range w.apps {
		var own []row
		for _, j := range jobs {
			if j.Application == a.id {
				own = append(own, j)
			}
		}
		status, answer := w.call(string(auth.Operator), http.MethodGet, "/jobmanager/groups/"+a.id, "")
		if a.desired == "deleted" {
			require.Equal(w.t, http.StatusNotFound, status, "%s was deleted: %s", a.name, answer)
			continue
		}
		require.Equal(w.t, http.StatusOK, status, "%s: %s", a.name, answer)
		asked := map[string]component{} // by name and side
		if a.desired == "running" {
			for _, c := range a.components {
				for _, s := range c.places() {
					asked[c.name+s] = c
				}
			}
		}
		var runs []string
		for _, j := range own {
			if !j.Available || !strings.Contains(j.Text, "PolicyViolated") { // it may stay if nothing else fits
				require.Equal(w.t, "Finished", j.State, "%s, which is to be %s: %s", a.name, a.desired, j.Text)
			}
			if j.Cleans || !j.Available { // the job of a stopped or removed component stays in the database
				continue
			}
			name := j.Component
			if _, ok := asked[name]; !ok {
				name += side(j.Node)
			}
			c, ok := asked[name]
			require.True(w.t, ok, "%s: nobody asked for %s", a.name, j.Text)
			if c.at != "" {
				require.Equal(w.t, c.at, j.Cluster, "%s: %s", a.name, j.Text)
			}
			runs = append(runs, name)
			wanted[j.Cluster+"/"+j.ID] = c.image
		}
		require.ElementsMatch(w.t, slices.Collect(maps.Keys(asked)), runs, a.name)
	}
	if w.past != nil {
		require.Equal(w.t, wanted, w.past.except(w, wanted))
	} else {
		require.Equal(w.t, wanted, w.copies())
	}
	w.checkRules()
	applicationtest.RequireReservations(w.t, w.DB)
	broken, err := store.Collect(w.t.Context(), w.DB, "read history", pgx.RowTo[string], `select h::text from (
  select *, lag(to_state) over job as before, lead(id) over job is null as last from history
  where event like 'job.%' window job as (partition by job_id order by id)) h left join jobs j on j.id = h.job_id
where from_state <> before or last and to_state <> j.state`)
	require.NoError(w.t, err)
	require.Empty(w.t, broken, "history that does not lead to what is")
	var left int
	require.NoError(w.t, w.DB.QueryRow(w.t.Context(), `select count(*) from outbox`).Scan(&left))
	require.Zero(w.t, left, "events nobody has published")
}

// checkRules compares the watched policies with Prometheus' rules.
func (w *world) checkRules() {
	w.t.Helper()
	found := map[string]string{} // likewise
	kept, err := files.New(w.rules, "", nil)
	require.NoError(w.t, err)
	groups, err := kept.List(w.t.Context())
	require.NoError(w.t, err)
	for _, g := range groups {
		_, limit, _ := strings.Cut(g.Rules[len(g.Rules)-1].Expr, "> ")
		found[g.Name] = limit
	}
	watched := map[string]string{} // group -> threshold
	for _, a := range w.apps {
		if a.desired == "running" && !a.paused {
			watched[a.policyName()] = a.threshold
		}
	}
	require.Equal(w.t, watched, found)
}

// copies is what runs: cluster/job -> image.
func (w *world) copies() map[string]string {
	w.t.Helper()
	found := map[string]string{}
	clusters := map[string]*kubeapi.Server{"one": w.agents["one"].Cluster, "two": w.agents["two"].Cluster, "three": w.three}
	for name, server := range clusters {
		for _, path := range server.Paths("/deployments/") {
			o := server.Get(path)
			text, err := o.MarshalJSON()
			require.NoError(w.t, err)
			found[name+"/"+o.GetLabels()[orchestrator.LabelJob]] = imageName.FindString(string(text))
		}
	}
	w.atNuvla(found)
	for resource, text := range w.agent.copies {
		name, _, _ := strings.Cut(resource, "/")
		if _, twice := found["four/"+name]; twice {
			name = resource
		}
		found["four/"+name] = imageName.FindString(text)
	}
	return found
}

// atNuvla adds what Nuvla's edges run. A deployment of which nothing runs is told by its state.
func (w *world) atNuvla(found map[string]string) {
	w.t.Helper()
	jobs := map[string]string{} // by deployment
	for _, d := range w.nuvla.Of("deployment") {
		id, _ := d["id"].(string)
		tags, _ := d["tags"].([]any)
		for _, tag := range tags {
			if text, _ := tag.(string); strings.HasPrefix(text, orchestrator.LabelJob+"=") {
				jobs[strings.TrimPrefix(id, "deployment/")] = strings.TrimPrefix(text, orchestrator.LabelJob+"=")
			}
		}
		if state, _ := d["state"].(string); state != "STARTED" {
			found[id+" of "+jobs[strings.TrimPrefix(id, "deployment/")]] = state
		}
	}
	for _, edge := range []string{"five", composes} {
		for _, o := range w.nuvla.Running(edge) {
			if kind, _, kubernetes := strings.Cut(o.Name, "/"); kubernetes && kind != "Deployment" {
				continue
			}
			key := edge + "/" + jobs[o.Deployment]
			if _, twice := found[key]; twice || jobs[o.Deployment] == "" {
				key += " by " + o.Deployment
			}
			found[key] = imageName.FindString(fmt.Sprint(o.Doc))
		}
	}
}

// imageName is the name in a document of an image that runs.
var imageName = regexp.MustCompile(`image:[0-9]+`)
