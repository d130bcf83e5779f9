package knative_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/deadletter"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/test/deployed"
)

const fleetFile = "testdata/fleet.json"

// TestEverythingIsReady checks the status of each object, and which functions can be called from where.
func TestEverythingIsReady(t *testing.T) {
	w := newWorld(t)
	for _, kind := range []string{"ksvc", "broker", "trigger", "pingsource"} {
		out := w.kubectl("get", kind, "-o", `jsonpath={range .items[*]}{.metadata.name} `+
			`{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}`)
		require.NotEmpty(t, out)
		for line := range strings.Lines(out) {
			require.Contains(t, line, " True", kind)
		}
	}
	out := w.kubectl("get", "ksvc", "-o", `jsonpath={range .items[*]}{.metadata.name} `+
		`{.metadata.annotations.littoral\.dev/routes} {.status.url}{"\n"}{end}`)
	for line := range strings.Lines(out) {
		if !strings.Contains(line, " /") { // no route
			require.Contains(t, line, ".svc.cluster.local", "only the cluster reaches a reaction")
		}
	}
	a, err := w.try(auth.Viewer, http.MethodPatch, "/jobmanager/groups", "")
	require.NoError(t, err)
	wrongMethod := http.StatusMethodNotAllowed // as on the laptop host
	if routes, _ := w.Kubectl("get", "httproutes", "-o", "name"); strings.HasPrefix(routes, "httproute.") {
		wrongMethod = http.StatusNotFound // a Gateway knows routes, but not why a call fails
	}
	require.Equal(t, wrongMethod, a.status)
	r, err := w.Inside().Get(w.Base + "/jobmanager/groups")
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.Equal(t, http.StatusUnauthorized, r.StatusCode)
}

// TestFromZeroToAvailable submits an application while no function has a pod; the functions that it needs wake by
// themselves.
func TestFromZeroToAvailable(t *testing.T) {
	w := newWorld(t)
	w.startFleet(t, fleetFile)
	id := w.submit(t, application("e2e-chain"))
	w.available(id)
	require.Equal(t, "e2e-pier", w.jobs(id)[0].Targets.Cluster)
	require.Equal(t, http.StatusOK, w.ask(auth.Operator, http.MethodPut, "/jobmanager/groups/stop/"+id, "", nil))
	w.eventually("it has stopped", func() bool {
		for _, j := range w.jobs(id) {
			if j.Available() {
				return false
			}
		}
		return true
	})
	require.Equal(t, http.StatusOK, w.ask(auth.Operator, http.MethodPut, "/jobmanager/groups/start/"+id, "", nil))
	w.available(id)
}

// letters returns the dead letters of an event that were not replayed yet.
func (w *world) letters(eventID string) []deadletter.Letter {
	w.t.Helper()
	var all, of []deadletter.Letter
	require.Equal(w.t, http.StatusOK, w.ask(auth.Viewer, http.MethodGet, "/events/dead", "", &all))
	for _, l := range all {
		if l.EventID == eventID {
			of = append(of, l)
		}
	}
	return of
}

// entry is a row of history.
type entry struct {
	Event, Message string
	Data           struct {
		EventID string `json:"eventId"`
	}
}

// TestForgedEventIsRefusedAndRecorded: everyone who reaches the Broker can send an event. Without the key it changes
// nothing, is not stored for a replay (which would sign it), and is recorded in history.
func TestForgedEventIsRefusedAndRecorded(t *testing.T) {
	w := newWorld(t)
	w.startFleet(t, fleetFile)
	id := w.submit(t, application("e2e-forged"))
	w.available(id)
	forged, err := events.New(t.Context(), "/functions/jobmanager-group-delete", events.ApplicationDisplaced, id,
		events.Application{ID: uuid.MustParse(id), Name: "e2e-forged"})
	require.NoError(t, err)
	before := w.jobs(id)
	w.publish(forged)
	w.eventually("the forgery is on record", func() bool {
		var all []entry
		w.ask(auth.Viewer, http.MethodGet, "/jobmanager/history?event=event.forged", "", &all)
		for _, e := range all {
			if e.Event == "event.forged" && e.Data.EventID == forged.ID() {
				return true
			}
		}
		return false
	})
	require.Empty(t, w.letters(forged.ID()))
	require.Equal(t, before, w.jobs(id))
	require.Equal(t, http.StatusNotFound, w.ask(auth.Operator, http.MethodPost, "/events/"+forged.ID()+"/replay", "", nil))
}

// TestOnlyWhoIsKnownMaySend: if Knative requires tokens of senders, neither the Broker nor a function accepts an event
// without one. All other tests show then that events with one are accepted.
func TestOnlyWhoIsKnownMaySend(t *testing.T) {
	w := newWorld(t)
	if w.setting("KNATIVE_TOKENS") == "" {
		t.Skip("KNATIVE_TOKENS is not set: this Knative does not ask who sends (knative/authentication)")
	}
	stranger, err := events.New(t.Context(), "/functions/jobmanager-group-delete", events.Tick, "", nil)
	require.NoError(t, err)
	for _, address := range []string{w.setting("K_SINK"), "http://outbox-sweep." + deployed.Namespace + ".svc.cluster.local/"} {
		status, err := w.PostAs(t.Context(), "", address, stranger)
		require.NoError(t, err)
		require.Equal(t, http.StatusUnauthorized, status, address)
	}
}

// withKey returns a function's variables with another EVENT_KEY.
func withKey(t *testing.T, env, key string) string {
	t.Helper()
	var all []map[string]any
	require.NoError(t, json.Unmarshal([]byte(env), &all))
	for i := range all {
		if all[i]["name"] == "EVENT_KEY" {
			all[i] = map[string]any{"name": "EVENT_KEY", "value": key}
		}
	}
	text, err := json.Marshal(all)
	require.NoError(t, err)
	return string(text)
}

// TestDeadLetterAndReplay: a faulty roll-out (the image of another function) refuses its events; after a roll-back to
// the former revision, the events that became dead letters are replayed.
func TestDeadLetterAndReplay(t *testing.T) {
	w := newWorld(t)
	w.startFleet(t, fleetFile)
	const function = "matchmaker-place"
	good := w.kubectl("get", "ksvc", function, "-o", "jsonpath={.spec.template.spec.containers[0].env}")
	roll := func(env string) {
		w.kubectl("patch", "ksvc", function, "--type=json", "-p",
			`[{"op":"add","path":"/spec/template/spec/containers/0/env","value":`+env+`}]`)
		w.kubectl("wait", "--for=condition=Ready", "ksvc/"+function, "--timeout=300s")
	}
	t.Cleanup(func() { roll(good) })
	roll(withKey(t, good, "another")) // all our events are forgeries for it

	id := w.submit(t, application("e2e-dead"))
	var dead deadletter.Letter
	w.eventually("its event is a dead letter", func() bool {
		var all []deadletter.Letter
		w.ask(auth.Viewer, http.MethodGet, "/events/dead", "", &all)
		for _, l := range all {
			if l.Type == events.ApplicationSubmitted && strings.Contains(string(l.Event), id) {
				dead = l
				return true
			}
		}
		return false
	})
	require.Equal(t, function, dead.Consumer)
	require.Equal(t, http.StatusForbidden, dead.Code)
	roll(good)
	require.Equal(t, http.StatusOK, w.ask(auth.Operator, http.MethodPost, "/events/"+dead.EventID+"/replay", "", nil))
	w.available(id)
}

// result counts how calls ended.
type result struct {
	mu       sync.Mutex
	answers  map[int]int
	failures []string
}

func (r *result) add(a answer, err error, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers[a.status]++
	switch {
	case err != nil:
		r.failures = append(r.failures, fmt.Sprintf("%s: %v", what, err))
	case a.status/100 == 2:
	case a.status == http.StatusServiceUnavailable && a.header.Get("Retry-After") != "":
	default:
		r.failures = append(r.failures, fmt.Sprintf("%s: %d %s", what, a.status, a.body))
	}
}

// created is how many submissions were accepted so far.
func (r *result) created() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answers[http.StatusCreated]
}

// submissions are applications that were handed in under a key each, which makes retries harmless.
type submissions struct {
	name string
	mu   sync.Mutex
	made map[string][]string // name of the application: the ids that were answered
}

// run hands in applications, called NAME-0 and so on, until quit is closed. One that was not accepted is handed in again under the
// same key, like a client would. r counts the answers.
func (s *submissions) run(w *world, quit <-chan struct{}, r *result) {
	for n := 0; ; n++ {
		name, key := fmt.Sprintf("%s-%d", s.name, n), uuid.NewString()
		for {
			a, err := w.try(auth.Operator, http.MethodPost, "/jobmanager/groups", application(name), "Idempotency-Key", key)
			r.add(a, err, "POST groups")
			if a.status/100 == 2 {
				var g api.Application
				if json.Unmarshal(a.body, &g) == nil {
					s.mu.Lock()
					s.made[name] = append(s.made[name], g.ID)
					s.mu.Unlock()
				}
				break
			}
			if ended(quit, 200*time.Millisecond) {
				return
			}
		}
		if ended(quit, time.Second) {
			return
		}
	}
}

// accepted are the applications that were, by name.
func (s *submissions) accepted() map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.made)
}

// areThereOnce checks that each application that was accepted is there, and once.
func (s *submissions) areThereOnce(w *world) {
	for name, ids := range s.accepted() {
		var g []api.Application
		w.ask(auth.Viewer, http.MethodGet, "/jobmanager/groups?app="+name, "", &g)
		n := 0
		for i := range g {
			if g[i].Name == name {
				n++
			}
		}
		require.Equal(w.t, 1, n, "%s was handed in under one key, and is there once (%v)", name, ids)
	}
}

// traffic keeps submitting, reading and listing until stop is called, which checks that all calls succeeded; r has the
// counts meanwhile.
func (w *world) traffic(t *testing.T, name string) (r *result, stop func()) {
	t.Helper()
	w.client(auth.Operator)
	w.client(auth.Viewer)
	r = &result{answers: map[int]int{}}
	quit := make(chan struct{})
	var all sync.WaitGroup
	handed := &submissions{name: name, made: map[string][]string{}}
	all.Go(func() { handed.run(w, quit, r) })
	for _, path := range []string{"/jobmanager/groups", "/jobmanager/jobs", "/matchmaker/", "/aggregator/"} {
		all.Go(func() {
			for !ended(quit, 300*time.Millisecond) {
				a, err := w.try(auth.Viewer, http.MethodGet, path, "")
				r.add(a, err, "GET "+path)
			}
		})
	}
	end := sync.OnceFunc(func() {
		close(quit)
		all.Wait()
	})
	t.Cleanup(func() { w.removeAll(name + "-") })
	t.Cleanup(end) // earlier, and even if the test has failed
	return r, func() {
		end()
		t.Logf("answers by status: %v", r.answers)
		require.Empty(t, r.failures, "%v", r.answers)
		handed.areThereOnce(w)
		for _, ids := range handed.accepted() {
			w.available(ids[0])
		}
	}
}

// ended waits, and reports whether quit was closed meanwhile.
func ended(quit <-chan struct{}, wait time.Duration) bool {
	select {
	case <-quit:
		return true
	case <-time.After(wait):
		return false
	}
}

// during runs disturb under traffic and checks that callers only got 2xx, or 503 with Retry-After, and that all
// submitted applications become available. flow waits until some more submissions were accepted. The sweep is triggered
// directly instead of waiting for its PingSource.
func (w *world) during(t *testing.T, name string, disturb func(flow func())) {
	t.Helper()
	w.startFleet(t, fleetFile)
	w.removeAll(name + "-") // left by an interrupted run
	r, stop := w.traffic(t, name)
	disturb(func() {
		before := r.created()
		w.eventually("applications are accepted", func() bool { return r.created() >= before+3 })
	})
	time.Sleep(store.LeftFor + time.Second) // OUTBOX_AGE: younger events are still being published by their function
	w.tick("outbox-sweep")
	stop()
	require.Positive(t, r.answers[http.StatusCreated])
}

// TestFunctionPodsKilledInMidRequest kills all pods of functions again and again, without a grace period.
func TestFunctionPodsKilledInMidRequest(t *testing.T) {
	w := newWorld(t)
	w.during(t, "e2e-kill", func(flow func()) {
		for range 4 {
			flow()
			w.kubectl("delete", "pods", "-l", "serving.knative.dev/service", "--grace-period=0", "--force", "--wait=false")
		}
	})
}

// TestBrokerPodsDeleted deletes the Broker's ingress and filter pods while events are in flight. An event that was not
// accepted stays in the outbox; one that was not delivered is delivered again.
func TestBrokerPodsDeleted(t *testing.T) {
	w := newWorld(t)
	w.during(t, "e2e-broker", func(flow func()) {
		for range 2 {
			flow()
			w.kubectl("-n", "knative-eventing", "delete", "pods", "--wait=false",
				"-l", "eventing.knative.dev/brokerRole in (ingress, filter)")
			w.kubectl("-n", "knative-eventing", "wait", "--for=condition=Available", "deploy", "--all", "--timeout=300s")
		}
	})
}

// TestPostgresRestarted kills the process, as in a crash of the node's runtime; it comes back with the same data.
func TestPostgresRestarted(t *testing.T) {
	w := newWorld(t)
	if _, err := w.Kubectl("get", "statefulset", "postgres"); err != nil {
		t.Skip("Postgres is not this namespace's own")
	}
	w.during(t, "e2e-postgres", func(flow func()) {
		flow()
		restarts := w.kubectl("get", "pod", "postgres-0", "-o", "jsonpath={.status.containerStatuses[0].restartCount}")
		w.kubectl("exec", "postgres-0", "--", "bash", "-c", "kill -QUIT 1")
		w.eventually("Postgres is back", func() bool {
			out, err := w.Kubectl("get", "pod", "postgres-0", "-o",
				"jsonpath={.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}")
			return err == nil && out != restarts+" true" && strings.HasSuffix(out, " true")
		})
	})
}

// TestTheIdleSystemSleeps: without applications the PingSources are suspended, and no function ever has a pod.
func TestTheIdleSystemSleeps(t *testing.T) {
	const never = "0 0 31 2 *" // the schedule of a suspended PingSource
	w := newWorld(t)
	if w.setting("CLOCKS") == "" {
		t.Skip("CLOCKS is not set in the ConfigMap littoral: the clocks tick on")
	}
	var all []api.Application
	require.Equal(t, http.StatusOK, w.ask(auth.Viewer, http.MethodGet, "/jobmanager/groups", "", &all))
	require.Empty(t, all, "somebody else's applications run here")
	w.eventually("the clocks rest", func() bool {
		w.nudge("clock-pause")
		clocks := strings.Split(w.kubectl("get", "pingsource", "-l", "littoral.dev/ticks-while", "-o",
			`jsonpath={range .items[*]}{.spec.schedule},{end}`), ",")
		return len(clocks) > 1 && !slices.ContainsFunc(clocks[:len(clocks)-1], func(schedule string) bool { return schedule != never })
	})
	require.Zero(t, w.watch(5*time.Minute))
	w.startFleet(t, fleetFile)
	id := w.submit(t, application("e2e-first"))
	w.available(id)
	w.eventually("the clocks tick again", func() bool {
		return !strings.Contains(w.kubectl("get", "pingsource", "-l", "littoral.dev/ticks-while=work", "-o", "jsonpath={.items[*].spec.schedule}"), never)
	})
}
