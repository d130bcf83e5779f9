package faults_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/topology"
	"github.com/littoral-project/littoral/test/inprocess"
	"github.com/littoral-project/littoral/test/kubeapi"
	"github.com/littoral-project/littoral/test/nuvla"
	"github.com/littoral-project/littoral/triggers"
)

// world is everything around the functions: the database, the Broker, the issuer, the agents and the user. It runs in
// this process; the functions run in a child that is killed and restarted.
type world struct {
	t      *testing.T
	url    string // of the database
	db     *store.DB
	issuer *inprocess.Issuer
	broker *inprocess.Broker
	sink   *httptest.Server

	child        *exec.Cmd
	ended        chan struct{} // closed when the child has ended
	address      string
	deaths       int
	deathsBefore int            // the present step
	steps        []string       // that began, in order
	passed       map[string]int // how many boundaries each step had that nothing ended
	kills        map[string]int // at which boundary of a step the functions are killed, counted from 1
	tokens       map[string]string
	repeats      int               // of the last call of an agent
	refused      int               // deliveries that are to be repeated
	promoted     map[string]string // job and epoch -> the agent that was told it owns the job

	managed *managed // nil = agents poll

	environment []string      // of the functions, beside the usual
	ahead       time.Duration // how far the clock of the database is ahead of this process's
	refusal     func()        // what happens elsewhere before a delivery is repeated; nil = nothing
	answered    func()        // after each call; nil = nothing
}

// managed is what our own functions deploy to.
type managed struct {
	orchestrator string                  // as in targets
	engine       string                  // of nodes
	crate        func(tag string) string // the application
	apis         map[string]string       // addresses for the functions, by name
	servers      map[string]*kubeapi.Server
	linked       bool // the clusters are peers of ClusterLink
	environment  func(kubeconfigs string) []string
	work         func()             // lets the clusters carry out their requests
	copies       func() []string    // all that was made there
	empty        func(t *testing.T) // demands that nothing is left
}

// newWorld returns a world whose jobs are done by agents that poll.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := prepare(t)
	w.subscribe()
	w.start()
	return w
}

// clusters for deployments, with one node each; if two are equally good, the matchmaker chooses the first.
var clusters = []string{"one", "two"}

// newHubWorld returns a world in which our own functions do the jobs, through a hub and its agents.
func newHubWorld(t *testing.T) *world {
	t.Helper()
	return hubWorld(t, false)
}

// newLinkedWorld is newHubWorld with clusters that are peers of ClusterLink.
func newLinkedWorld(t *testing.T) *world {
	t.Helper()
	return hubWorld(t, true)
}

func hubWorld(t *testing.T, linked bool) *world {
	t.Helper()
	hub := kubeapi.Start(t, nil, nil)
	servers := startClusters(t)
	agents := map[string]*kubeapi.Agent{}
	for _, name := range clusters {
		if linked {
			servers[name].HasLinks()
		}
		agents[name] = kubeapi.Join(t, hub, servers[name], name)
	}
	servers["hub"] = hub
	w := prepare(t)
	w.subscribe()
	w.managed = ofKubernetes(t, servers)
	w.managed.linked = linked
	w.managed.orchestrator, w.managed.apis = "ocm", map[string]string{"hub": hub.URL}
	w.managed.environment = func(kubeconfigs string) []string {
		settings := []string{"OCM_HUB=" + filepath.Join(kubeconfigs, "hub")}
		if linked {
			settings = append(settings, "LINKS=clusterlink")
		}
		return settings
	}
	w.managed.work = func() {
		for _, name := range clusters {
			agents[name].Work()
			if linked {
				servers[name].Peer()
				agents[name].Report()
			}
		}
	}
	w.start()
	return w
}

// newClusterWorld returns a world in which our own functions do the jobs, directly on the clusters.
func newClusterWorld(t *testing.T) *world {
	t.Helper()
	servers := startClusters(t)
	w := prepare(t)
	w.subscribe()
	w.managed = ofKubernetes(t, servers)
	w.managed.orchestrator, w.managed.apis = "kubernetes", map[string]string{}
	for name, server := range servers {
		w.managed.apis[name] = server.URL
	}
	w.managed.environment = func(kubeconfigs string) []string { return []string{"KUBECONFIG_DIR=" + kubeconfigs} }
	w.managed.work = func() {
		for _, name := range clusters {
			servers[name].Work()
		}
	}
	w.start()
	return w
}

// newNuvlaWorld returns a world in which our own functions have Nuvla run compose files on its edges.
func newNuvlaWorld(t *testing.T) *world {
	t.Helper()
	server := nuvla.Start(t)
	for _, name := range clusters {
		server.AddEdge(name, nuvla.Docker)
	}
	w := prepare(t)
	w.subscribe()
	w.managed = &managed{
		orchestrator: "nuvla", engine: topology.Docker, crate: composed, apis: map[string]string{nuvlaAPI: server.URL},
		environment: func(string) []string {
			return []string{"NUVLA_API_KEY=" + nuvla.Key, "NUVLA_API_SECRET=" + nuvla.Secret}
		},
		work: func() {
			server.Work() // the jobs are fetched
			server.Work() // and carried out
		},
		copies: func() []string { return atNuvla(t, server) },
		empty: func(t *testing.T) {
			t.Helper()
			require.Empty(t, server.Of("deployment"))
			for _, m := range server.Of("module") {
				require.Equal(t, "project", m["subtype"], "%v", m["path"])
			}
			for _, name := range clusters {
				require.Empty(t, server.Running(name))
			}
		},
	}
	w.start()
	return w
}

// ofKubernetes are clusters, perhaps with a hub, that run pods.
func ofKubernetes(t *testing.T, servers map[string]*kubeapi.Server) *managed {
	return &managed{
		engine: topology.Kubernetes, crate: crate, servers: servers,
		copies: func() []string { return inClusters(t, servers) },
		empty: func(t *testing.T) {
			t.Helper()
			for _, server := range servers {
				require.Empty(t, server.Paths("/manifestworks/"))
				require.Empty(t, server.Paths("/deployments/"))
			}
		},
	}
}

// startClusters starts an API server for each cluster, with one node.
func startClusters(t *testing.T) map[string]*kubeapi.Server {
	servers := map[string]*kubeapi.Server{}
	for _, name := range clusters {
		servers[name] = kubeapi.Start(t, nil, []string{name + "-a"})
	}
	return servers
}

func prepare(t *testing.T) *world {
	t.Helper()
	broker, err := inprocess.NewBroker(triggers.Files)
	require.NoError(t, err)
	w := &world{
		t: t, broker: broker, url: storetest.URL(t), promoted: map[string]string{}, tokens: map[string]string{}, passed: map[string]int{},
	}
	w.db, err = store.Open(t.Context(), store.Config{DatabaseURL: w.url, MaxConns: 2}, w.broker, nil)
	require.NoError(t, err)
	w.issuer = inprocess.NewIssuer(t)
	w.sink = httptest.NewServer(w.broker)
	for subject, role := range map[string]string{
		"user": "operator", "alertmanager": "alertmanager",
	} {
		w.tokens[subject] = w.issuer.TokenWith(t, inprocess.Claims{"sub": subject, "roles": []string{role}})
	}
	for _, id := range []string{agentID, rivalID} {
		w.tokens[id] = w.issuer.AgentToken(t, id)
	}
	t.Cleanup(func() {
		if w.ended != nil {
			_ = w.child.Process.Kill()
			<-w.ended
		}
		w.sink.Close()
		w.db.Close()
	})
	return w
}

// subscribe makes events stay in the outbox until their consumers have taken them. Hand-overs do without it: while the network between
// two controllers is cut, the event would come back with each sweep.
func (w *world) subscribe() {
	w.t.Helper()
	table, err := triggers.Table(triggers.Files)
	require.NoError(w.t, err)
	var list []store.Subscription
	for _, row := range table {
		if row.Function != "aggregator-tick" { // see stores a topology in its place
			list = append(list, store.Subscriptions(row.Function, []map[string]string{row.Attributes})...)
		}
	}
	_, err = w.db.Subscribe(w.t.Context(), list)
	require.NoError(w.t, err)
}

// start runs the functions in a child process of this test binary.
func (w *world) start() {
	w.t.Helper()
	w.child = exec.CommandContext(w.t.Context(), os.Args[0], "-test.run=^$")
	config := w.issuer.Config()
	w.child.Env = append(os.Environ(), envChild+"=1",
		"DATABASE_URL="+w.url, "K_SINK="+w.sink.URL, "OUTBOX_AGE=0s",
		"PUBLISH_AT_ONCE=1", // so that the boundaries are the same in each run
		"OIDC_ISSUER="+config.Issuer, "OIDC_AUDIENCE="+config.Audience, "OIDC_JWKS_URL="+config.JWKSURL,
		"PROMETHEUS_ADDRESS=http://127.0.0.1:1")
	if w.managed != nil {
		w.child.Env = append(w.child.Env, w.managed.environ(w.t)...)
	}
	w.child.Env = append(w.child.Env, w.environment...)
	w.child.Stderr = os.Stderr
	out, err := w.child.StdoutPipe()
	require.NoError(w.t, err)
	require.NoError(w.t, w.child.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(w.t, err, "the functions did not start")
	w.address = "http://" + strings.TrimSpace(line)
	child, ended := w.child, make(chan struct{})
	go func() {
		_ = child.Wait() // its ProcessState has the reason
		close(ended)
	}()
	w.ended = ended
}

// environ is the environment of functions that deploy to these clusters.
func (m *managed) environ(t *testing.T) []string {
	t.Helper()
	apis, err := json.Marshal(m.apis)
	require.NoError(t, err)
	kubeconfigs := t.TempDir()
	return append(m.environment(kubeconfigs), envAPIs+"="+string(apis), envKubeconfigs+"="+kubeconfigs, "DEPLOY_WAIT=0s")
}

// revive restarts the functions after they were killed; the new process is not killed in the same step. A call may also fail because a
// busy machine runs out of ports: then the process is alive, and the call is retried.
func (w *world) revive() {
	w.t.Helper()
	select {
	case <-w.ended:
	case <-time.After(time.Second):
		return
	}
	require.Equal(w.t, "signal: killed", w.child.ProcessState.String(), "the functions may end by the kill only")
	w.deaths++
	w.start()
}

// answer is the result of a request.
type answer struct {
	status  int
	body    []byte
	repeats int
}

// call sends the request until it is answered, like a user, an agent or a Broker whose connection broke: a killed
// process is restarted, and a 503 is retried.
func (w *world) call(subject, method, path string, header http.Header, body string) answer {
	w.t.Helper()
	repeats := 0
	for range 100 {
		a := w.ask(subject, method, path, header, body)
		repeats += a.repeats
		if a.status != http.StatusServiceUnavailable {
			a.repeats = repeats
			return a
		}
		repeats++
		time.Sleep(20 * time.Millisecond) // Retry-After, scaled to this test's time
	}
	w.t.Fatalf("%s %s was never answered", method, path)
	return answer{}
}

// ask sends the request until there is an answer, and returns when the functions have published their events.
func (w *world) ask(subject, method, path string, header http.Header, body string) answer {
	w.t.Helper()
	for repeats := range 100 {
		r, err := http.NewRequestWithContext(w.t.Context(), method, w.address+path, strings.NewReader(body))
		require.NoError(w.t, err)
		for k, v := range header {
			r.Header[k] = v
		}
		if subject != "" {
			r.Header.Set("Authorization", "Bearer "+w.tokens[subject])
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			w.revive()
			continue
		}
		answered, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			w.revive()
			continue
		}
		w.awaitPublished()
		if w.answered != nil {
			w.answered()
		}
		return answer{resp.StatusCode, answered, repeats}
	}
	w.t.Fatalf("%s %s was never answered", method, path)
	return answer{}
}

// awaitPublished waits until the functions have published their events. A process that is killed meanwhile has not.
func (w *world) awaitPublished() {
	w.t.Helper()
	for {
		r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.address+"/settled", http.NoBody)
		require.NoError(w.t, err)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			w.revive()
			continue
		}
		_ = resp.Body.Close()
		require.Equal(w.t, http.StatusOK, resp.StatusCode)
		return
	}
}

// deliver delivers an event to all its consumers. If a consumer cannot accept it yet, it is delivered again after the
// others.
func (w *world) deliver(d inprocess.Delivery) {
	w.t.Helper()
	body, err := json.Marshal(d.Event)
	require.NoError(w.t, err)
	for _, path := range slices.Sorted(maps.Keys(functions.Registry)) { // in the same order in each run
		entry := functions.Registry[path]
		if !slices.Contains(entry.Spec.Consumes, d.Type()) || d.To != "" && d.To != entry.Name {
			continue
		}
		if !w.post(entry.Name, body) {
			w.broker.Again(d.Event, entry.Name)
			w.tick("outbox-sweep") // it may wait for an event that a killed function has not sent
			if w.managed != nil {  // or for the work of the clusters
				w.managed.work()
			}
			if w.refusal != nil {
				w.refusal()
			}
		}
	}
}

// post delivers the event to the consumer and reports whether it was accepted.
func (w *world) post(consumer string, event []byte) bool {
	w.t.Helper()
	header := http.Header{"Content-Type": {cloudevents.ApplicationCloudEventsJSON}}
	a := w.ask("", http.MethodPost, "/events/"+consumer, header, string(event))
	if a.status == http.StatusServiceUnavailable {
		w.refused++
		require.Less(w.t, w.refused, 1_000, "%s never takes %s: %s", consumer, event, a.body)
		// A killed function leaves its claim, which ends in time. Deliveries come one after the other, so no other has one.
		// It fails while Postgres is away, as the delivery did; the next refusal tries again.
		_, _ = w.db.Exec(context.Background(), `update claims set ends_at = now() - interval '1 s'`)
		return false
	}
	require.Equal(w.t, http.StatusNoContent, a.status, "%s refused %s: %s", consumer, event, a.body)
	return true
}

// tick wakes a scheduled function.
func (w *world) tick(name string) {
	w.t.Helper()
	e, err := events.New(w.t.Context(), "/test/ping", events.Tick, "", map[string]string{})
	require.NoError(w.t, err)
	body, err := json.Marshal(e)
	require.NoError(w.t, err)
	for !w.post(name, body) {
		continue
	}
}

// deliverAll delivers until the Broker and the outbox are empty. It does nothing while the Broker is away.
func (w *world) deliverAll() {
	w.t.Helper()
	if w.broker.Away() {
		return
	}
	for {
		for d, ok := w.broker.Next(); ok; d, ok = w.broker.Next() {
			w.deliver(d)
		}
		w.tick("outbox-sweep")
		if w.broker.Waiting() == 0 {
			return
		}
	}
}

// begin begins a step: the functions are killed at one of its boundaries, if they are to be.
func (w *world) begin(step string) {
	w.t.Helper()
	require.NotContains(w.t, w.steps, step)
	w.steps = append(w.steps, step)
	w.control(http.MethodPost, fmt.Sprintf("/boundaries/%d", w.kills[step]))
	w.deathsBefore = w.deaths
}

// end ends the step that began last. It counts its boundaries, unless the functions were killed at one of them.
func (w *world) end() {
	w.t.Helper()
	if w.deaths > w.deathsBefore {
		return
	}
	step := w.steps[len(w.steps)-1]
	n, err := strconv.Atoi(w.control(http.MethodGet, "/boundaries"))
	require.NoError(w.t, err)
	w.passed[step] = n
	if kill := w.kills[step]; kill > 0 { // this run had a statement less, for instance because no race made it repeat one
		require.Less(w.t, n, kill, "the functions were to die in %q", step)
		w.control(http.MethodPost, "/boundaries/0")
	}
}

// control talks to the process of the functions about its boundaries, while it does nothing else.
func (w *world) control(method, path string) string {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.address+path, http.NoBody)
	require.NoError(w.t, err)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(w.t, err)
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	require.NoError(w.t, err)
	require.Equal(w.t, http.StatusOK, resp.StatusCode)
	return string(text)
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// dump is the whole state in a form that is the same in two runs: ids are replaced by names, times are removed.
func (w *world) dump() string {
	w.t.Helper()
	names := map[string]string{}
	w.query(`select id::text, 'app-' || name from applications
union all select id::text, 'job-' || component || '-' || replica || case when cleans is null then '' else '-cleanup-' || epoch end from jobs
union all select copy::text, 'link-' || cluster from link_sides`,
		func(row pgx.CollectableRow) error {
			var id, name string
			if err := row.Scan(&id, &name); err != nil {
				return err
			}
			names[id] = name
			if strings.HasPrefix(name, "app-") {
				names["-"+id[:8]] = "-" + name // as in namespaces
			} else {
				names["-"+id[24:]] = "-" + name // as in names of copies
			}
			return nil
		})
	var lines []string
	for _, sql := range []string{
		`select 'application ' || jsonb_build_array(id, name, namespace, desired, version, owner, deleted_at is not null, descriptor)::text from applications`,
		`select 'job ' || jsonb_build_array(id, application_id, component, cleans, type, sub_type, state, cluster, node, owner_id, epoch, lease_until is null,
resource_uuid, resource_name, (select jsonb_agg(c - 'lastTransitionTime') from jsonb_array_elements(conditions) c),
(select jsonb_agg(r - 'id') from jsonb_array_elements(remediations) r), excluded)::text from jobs`,
		`select 'history ' || jsonb_build_array(application_id, job_id, component, event, from_state, to_state, message)::text from history`,
		`select 'policy ' || jsonb_build_array(instance, phase, rule_done = rule_wanted, deleted_at is null)::text from policies`,
		`select 'alert ' || jsonb_build_array(fingerprint, status, known)::text from policy_alerts`,
		`select 'action ' || jsonb_build_array(instance, component, remediation, status)::text from policy_actions`,
		`select 'inbox ' || jsonb_build_array(consumer, count(*))::text from inbox group by consumer`,
		`select 'link ' || jsonb_build_array(application, cluster, contents, links, state, message, applied = epoch)::text from link_sides`,
		`select 'outbox ' || event::text from outbox`,
	} {
		w.query(sql, func(row pgx.CollectableRow) error {
			var line string
			if err := row.Scan(&line); err != nil {
				return err
			}
			lines = append(lines, line)
			return nil
		})
	}
	if w.managed != nil {
		lines = append(lines, w.managed.copies()...)
	}
	for typ, n := range w.eventCounts() {
		lines = append(lines, fmt.Sprintf("events %s %d", typ, n))
	}
	for i, line := range lines {
		line = uuids.ReplaceAllStringFunc(line, func(id string) string { return names[id] })
		for short, name := range names {
			if strings.HasPrefix(short, "-") {
				line = strings.ReplaceAll(line, short, name)
			}
		}
		lines[i] = line
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// volatile is what differs between two runs with the same result: the digest includes ids.
var volatile = regexp.MustCompile(`"(littoral.dev/(content|revision)|resourceVersion|uid|creationTimestamp|deletionTimestamp|` +
	`lastTransitionTime|time)":"[^"]*",?|"(generation|observedGeneration)":[0-9]+,?`)

// epoch is the number of a job or a link.
var epoch = regexp.MustCompile(`"littoral.dev/epoch":"[0-9]+",?`)

// inClusters is the content of the clusters and their hub.
func inClusters(t *testing.T, servers map[string]*kubeapi.Server) (lines []string) {
	t.Helper()
	for name, server := range servers {
		for _, path := range server.Paths("") {
			o := server.Get(path)
			switch o.GetKind() {
			case "ManifestWork":
				delete(o.Object, "status") // the agent's answer, which contains revisions
			case "Secret":
				unveil(t, o.Object)
			}
			text, err := o.MarshalJSON()
			require.NoError(t, err)
			line := volatile.ReplaceAllString(string(text), "")
			if strings.Contains(path, "/links-") { // their numbers are of a sequence, which also counts what was not committed
				line = epoch.ReplaceAllString(line, "")
			}
			lines = append(lines, name+" "+path+" "+line)
		}
	}
	return lines
}

// volatileTag is what differs so at Nuvla.
var volatileTag = regexp.MustCompile(`"littoral.dev/content=[^"]*",?|"(commit|created|updated)":"[^"]*",?`)

// derivedName is the path of a module, which is made of the ids of a job and its place.
var derivedName = regexp.MustCompile(`(littoral/[a-z]+-)[0-9a-f]{12}`)

// atNuvla is what Nuvla keeps of applications, and what its edges run. How often its jobs ran may differ.
func atNuvla(t *testing.T, server *nuvla.Server) (lines []string) {
	t.Helper()
	for _, kind := range []string{"module", "deployment"} {
		for _, r := range server.Of(kind) {
			text, err := json.Marshal(r)
			require.NoError(t, err)
			lines = append(lines, derivedName.ReplaceAllString(volatileTag.ReplaceAllString(string(text), ""), "$1"))
		}
	}
	for _, edge := range clusters {
		for _, o := range server.Running(edge) {
			text, err := json.Marshal(o)
			require.NoError(t, err)
			lines = append(lines, edge+" "+string(text))
		}
	}
	return lines
}

// unveil replaces the base64 in a Secret by the documents.
func unveil(t *testing.T, secret map[string]any) {
	t.Helper()
	data := map[string]any{}
	for key, text := range secret["data"].(map[string]any) {
		document, err := base64.StdEncoding.DecodeString(text.(string))
		require.NoError(t, err)
		var plain any
		require.NoError(t, json.Unmarshal(document, &plain))
		data[key] = plain
	}
	secret["data"] = data
}

func (w *world) query(sql string, each func(pgx.CollectableRow) error) {
	w.t.Helper()
	rows := func() error {
		read := func(row pgx.CollectableRow) (struct{}, error) { return struct{}{}, each(row) }
		_, err := store.Collect(w.t.Context(), w.db, "read", read, sql)
		return err
	}
	err := rows()
	for problem.KindOf(store.Classify(err)) == problem.Unavailable { // a connection from before a restart
		err = rows()
	}
	require.NoError(w.t, err)
}

// eventCounts counts the distinct events that the Broker got, by type: none may be missing after any kill.
func (w *world) eventCounts() map[string]int {
	seen, counts := map[string]bool{}, map[string]int{}
	for _, e := range w.broker.Accepted() {
		if !seen[e.ID()] {
			seen[e.ID()] = true
			counts[e.Type()]++
		}
	}
	return counts
}

// repeatAll delivers every event of the run three more times, newest first.
func (w *world) repeatAll() {
	w.t.Helper()
	all := slices.Clone(w.broker.Accepted())
	slices.Reverse(all)
	for range 3 {
		for _, e := range all {
			w.deliver(inprocess.Delivery{Event: e})
		}
	}
	w.deliverAll()
}

func compact(body []byte) string { return string(bytes.TrimSpace(body)) }

// same compares two dumps and shows the lines that are only in one of them.
func same(t *testing.T, want, got, message string) {
	t.Helper()
	if want == got {
		return
	}
	difference := func(a, b string) string {
		left := strings.Split(a, "\n")
		for _, line := range strings.Split(b, "\n") {
			if i := slices.Index(left, line); i >= 0 {
				left = slices.Delete(left, i, i+1)
			}
		}
		return strings.Join(left, "\n")
	}
	t.Errorf("%s\nmissing:\n%s\ntoo many:\n%s", message, difference(want, got), difference(got, want))
}
