package broker_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	"sigs.k8s.io/yaml"

	"github.com/littoral-project/littoral/infra/runner/broker"
	"github.com/littoral-project/littoral/infra/runner/manifests"
	"github.com/littoral-project/littoral/infra/runner/mesh"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

// childURL, if set, makes this test binary a process that accepts one event and then waits to be killed.
const childURL = "BROKER_TEST_CHILD_URL"

func TestMain(m *testing.M) {
	if url := os.Getenv(childURL); url != "" {
		acceptAndHang(url)
	}
	storetest.Main(m)
}

var defaultBroker = types.NamespacedName{Namespace: "ns", Name: "default"}

// setOf makes a Set of the default Broker and of Triggers, given by name as the YAML of their specs.
func setOf(t testing.TB, ofBroker string, triggers map[string]string) *manifests.Set {
	t.Helper()
	set := &manifests.Set{
		Brokers:  map[types.NamespacedName]*eventingv1.Broker{defaultBroker: {}},
		Triggers: map[types.NamespacedName]*eventingv1.Trigger{},
	}
	require.NoError(t, yaml.UnmarshalStrict([]byte(ofBroker), &set.Brokers[defaultBroker].Spec))
	for name, spec := range triggers {
		tr := &eventingv1.Trigger{}
		require.NoError(t, yaml.UnmarshalStrict([]byte("broker: default\n"+spec), &tr.Spec))
		set.Triggers[types.NamespacedName{Namespace: "ns", Name: name}] = tr
	}
	return set
}

// subscriber answers deliveries with the results of answer and records them.
type subscriber struct {
	answer func(n int, w http.ResponseWriter, r *http.Request) // n counts from 1
	mu     sync.Mutex
	got    []cloudevents.Event
	times  []time.Time
}

func (s *subscriber) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e, err := events.FromRequest(r)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.got, s.times = append(s.got, e), append(s.times, time.Now())
	n := len(s.got)
	s.mu.Unlock()
	if s.answer != nil {
		s.answer(n, w, r)
	}
}

func (s *subscriber) events() []cloudevents.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]cloudevents.Event(nil), s.got...)
}

func answering(codes ...int) *subscriber {
	return &subscriber{answer: func(n int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(codes[min(n, len(codes))-1]) }}
}

// open starts a Broker on the database; its subscribers answer at http://<name>.
func open(t testing.TB, url string, set *manifests.Set, subscribers map[string]http.Handler) *broker.Broker {
	t.Helper()
	m := mesh.New(http.DefaultTransport)
	for host, h := range subscribers {
		m.Handle(host, h)
	}
	b, err := broker.Open(t.Context(), broker.Options{
		DatabaseURL: url, Set: set, Client: &http.Client{Transport: m}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	require.NoError(t, err)
	require.Equal(t, problem.Unavailable, problem.KindOf(b.Ingest(t.Context(), defaultBroker, event(t, "early"))))
	require.NoError(t, b.Start(t.Context()))
	return b
}

func stop(t testing.TB, b *broker.Broker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.NoError(t, b.Stop(ctx))
	b.Close()
}

func event(t testing.TB, typ string) cloudevents.Event {
	t.Helper()
	e, err := events.New(t.Context(), "/test", typ, "s", nil)
	require.NoError(t, err)
	require.NoError(t, e.SetData(cloudevents.ApplicationJSON, []byte(`{"note":  "<kept> as it is"}`)))
	events.Sign(&e, "key")
	return e
}

func awaitIdle(t testing.TB, b *broker.Broker) {
	t.Helper()
	require.Eventually(t, func() bool { return b.Pending() == 0 }, 10*time.Second, 2*time.Millisecond)
}

func count(t testing.TB, url, table string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	require.NoError(t, conn.QueryRow(t.Context(), "select count(*) from broker."+table).Scan(&n))
	return n
}

func TestAnEventReachesEveryTriggerThatWantsIt(t *testing.T) {
	t.Parallel()
	a, b, c := &subscriber{}, &subscriber{}, &subscriber{}
	url := storetest.URL(t)
	br := open(t, url, setOf(t, "{}", map[string]string{
		"a": "subscriber: {uri: http://a}\nfilter: {attributes: {type: wanted}}",
		"b": "subscriber: {uri: http://b}\nfilters: [{prefix: {type: want}}]",
		"c": "subscriber: {uri: http://c}\nfilter: {attributes: {type: other}}",
	}), map[string]http.Handler{"a": a, "b": b, "c": c})
	e := event(t, "wanted")
	require.NoError(t, br.Publisher(defaultBroker).Publish(t.Context(), e))
	require.NoError(t, br.Ingest(t.Context(), defaultBroker, event(t, "unwanted by all")))
	awaitIdle(t, br)
	require.Len(t, a.events(), 1)
	require.Len(t, b.events(), 1)
	require.Empty(t, c.events())
	got := a.events()[0]
	require.Equal(t, e.Context.AsV1(), got.Context.AsV1(), "what the Broker adds for itself is gone again")
	require.Equal(t, string(e.Data()), string(got.Data()))
	require.True(t, events.Signed(got, "key"))
	require.Zero(t, count(t, url, "deliveries"), "done rows are removed")
	stats := br.Stats()["ns/a"]
	require.Equal(t, broker.Stats{Delivered: 1, Filtered: 1}, stats)
	stop(t, br)
}

func TestIngress(t *testing.T) {
	t.Parallel()
	a := &subscriber{}
	br := open(t, storetest.URL(t), setOf(t, "{}", map[string]string{"a": "subscriber: {uri: http://a}"}),
		map[string]http.Handler{"a": a})
	defer stop(t, br)
	server := httptest.NewServer(br.Ingress())
	defer server.Close()

	publisher := events.HTTPPublisher{URL: server.URL + "/ns/default", Client: server.Client()}
	e := event(t, "x")
	require.NoError(t, publisher.Publish(t.Context(), e))
	awaitIdle(t, br)
	require.Len(t, a.events(), 1)
	require.True(t, events.Signed(a.events()[0], "key"), "structured in, binary out, data byte for byte")

	for name, row := range map[string]struct {
		method, path, body string
		status             int
	}{
		"an unknown Broker":   {"POST", "/ns/other", `{"specversion":"1.0","id":"1","source":"/x","type":"t"}`, 404},
		"what is no event":    {"POST", "/ns/default", `{}`, 400},
		"another method":      {"GET", "/ns/default", ``, 405},
		"a path without name": {"POST", "/ns", ``, 404},
	} {
		r, err := http.NewRequestWithContext(t.Context(), row.method, server.URL+row.path, strings.NewReader(row.body))
		require.NoError(t, err)
		r.Header.Set("Content-Type", cloudevents.ApplicationCloudEventsJSON)
		resp, err := server.Client().Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, row.status, resp.StatusCode, name)
		require.Equal(t, problem.ContentType, resp.Header.Get("Content-Type"))
	}
}

func TestAFailedDeliveryIsRepeated(t *testing.T) {
	t.Parallel()
	const delay = 100 * time.Millisecond // Knative rounds durations to a tenth of a second
	a := answering(503, 404, 500, 200)
	url := storetest.URL(t)
	br := open(t, url, setOf(t, "{}", map[string]string{
		"a": "subscriber: {uri: http://a}\ndelivery: {retry: 4, backoffPolicy: exponential, backoffDelay: PT0.1S}",
	}), map[string]http.Handler{"a": a})
	require.NoError(t, br.Ingest(t.Context(), defaultBroker, event(t, "x")))
	awaitIdle(t, br)
	require.Len(t, a.times, 4)
	for i := 1; i < len(a.times); i++ {
		require.GreaterOrEqual(t, a.times[i].Sub(a.times[i-1]), delay<<(i-1), "before retry %d", i)
	}
	require.Equal(t, broker.Stats{Delivered: 1, Retried: 3}, br.Stats()["ns/a"])
	require.Zero(t, count(t, url, "deliveries"))
	require.Zero(t, count(t, url, "dead_letters"))
	stop(t, br)
}

func TestWhatCannotBeDeliveredBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	refusing := &subscriber{answer: func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = w.Write([]byte("no \x00 repeat helps"))
	}}
	exhausted := answering(503)
	sink := answering(503, 200)
	url := storetest.URL(t)
	br := open(t, url, setOf(t, "delivery: {retry: 2, deadLetterSink: {uri: http://sink}}", map[string]string{
		"refusing":  "subscriber: {uri: http://refusing}",
		"exhausted": "subscriber: {uri: http://exhausted}\ndelivery: {retry: 1}",
		"gone":      "subscriber: {uri: http://127.0.0.1:1}\ndelivery: {retry: 1}",
	}), map[string]http.Handler{"refusing": refusing, "exhausted": exhausted, "sink": sink})
	e := event(t, "x")
	require.NoError(t, br.Ingest(t.Context(), defaultBroker, e))
	awaitIdle(t, br)
	require.Len(t, refusing.events(), 1, "a repeat cannot help")
	require.Len(t, exhausted.events(), 2)

	byDestination := map[string]cloudevents.Event{}
	for _, got := range sink.events() {
		require.Equal(t, e.ID(), got.ID())
		byDestination[fmt.Sprint(got.Extensions()["knativeerrordest"])] = got
	}
	require.Len(t, byDestination, 3)
	got := byDestination["http://refusing"].Extensions()
	require.EqualValues(t, "422", got["knativeerrorcode"])
	require.Equal(t, base64.StdEncoding.EncodeToString([]byte("no \x00 repeat helps")), got["knativeerrordata"])
	require.EqualValues(t, "-1", byDestination["http://127.0.0.1:1"].Extensions()["knativeerrorcode"])

	letters, err := br.DeadLetters(t.Context(), 10)
	require.NoError(t, err)
	require.Len(t, letters, 3)
	for _, l := range letters {
		require.Equal(t, "delivered", l.SinkState)
		require.Contains(t, string(l.Event), e.ID())
	}
	require.Zero(t, count(t, url, "deliveries"))

	w := httptest.NewRecorder()
	br.State().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/dead-letters", nil))
	var shown []broker.DeadLetter
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &shown))
	require.Len(t, shown, 3)
	w = httptest.NewRecorder()
	br.State().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/stats", nil))
	require.Contains(t, w.Body.String(), `"deadLettered":1`)
	stop(t, br)
}

func TestASinkThatFailsTooLeavesTheDeadLetterVisible(t *testing.T) {
	t.Parallel()
	br := open(t, storetest.URL(t), setOf(t, "{}", map[string]string{
		"a": "subscriber: {uri: http://a}\ndelivery: {deadLetterSink: {uri: http://sink}}",
	}), map[string]http.Handler{"a": answering(400), "sink": answering(400)})
	defer stop(t, br)
	require.NoError(t, br.Ingest(t.Context(), defaultBroker, event(t, "x")))
	awaitIdle(t, br)
	letters, err := br.DeadLetters(t.Context(), 10)
	require.NoError(t, err)
	require.Len(t, letters, 1)
	require.Equal(t, "failed", letters[0].SinkState)
}

func TestARepliedEventIsDeliveredToo(t *testing.T) {
	t.Parallel()
	reply := event(t, "answer")
	asked := &subscriber{answer: func(_ int, w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "reply", r.Header.Get("Prefer"))
		w.Header().Set("Content-Type", cloudevents.ApplicationCloudEventsJSON)
		_ = json.NewEncoder(w).Encode(reply)
	}}
	// Every answer is answered with another event; only the hop limit ends that.
	endless := &subscriber{answer: func(n int, w http.ResponseWriter, _ *http.Request) {
		again := event(t, "endless")
		w.Header().Set("Content-Type", cloudevents.ApplicationCloudEventsJSON)
		_ = json.NewEncoder(w).Encode(again)
	}}
	answered := &subscriber{}
	url := storetest.URL(t)
	br := open(t, url, setOf(t, "{}", map[string]string{
		"asked":    "subscriber: {uri: http://asked}\nfilter: {attributes: {type: question}}",
		"answered": "subscriber: {uri: http://answered}\nfilter: {attributes: {type: answer}}",
		"endless":  "subscriber: {uri: http://endless}\nfilter: {attributes: {type: endless}}",
	}), map[string]http.Handler{"asked": asked, "answered": answered, "endless": endless})
	defer stop(t, br)
	require.NoError(t, br.Ingest(t.Context(), defaultBroker, event(t, "question")))
	awaitIdle(t, br)
	require.Len(t, answered.events(), 1)
	require.Equal(t, reply.ID(), answered.events()[0].ID())
	require.Equal(t, int64(1), br.Stats()["ns/asked"].Replies)

	require.NoError(t, br.Ingest(t.Context(), defaultBroker, event(t, "endless")))
	awaitIdle(t, br)
	require.Len(t, endless.events(), 255)
}

func TestASlowSubscriberHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var running, most int
	var mu sync.Mutex
	slow := &subscriber{answer: func(int, http.ResponseWriter, *http.Request) {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		<-release
		mu.Lock()
		running--
		mu.Unlock()
	}}
	quick := &subscriber{}
	br := open(t, storetest.URL(t), setOf(t, "{}", map[string]string{
		"slow": "subscriber: {uri: http://slow}", "quick": "subscriber: {uri: http://quick}",
	}), map[string]http.Handler{"slow": slow, "quick": quick})
	defer stop(t, br)
	for range 20 {
		require.NoError(t, br.Ingest(t.Context(), defaultBroker, event(t, "x")))
	}
	require.Eventually(t, func() bool { return len(quick.events()) == 20 }, 10*time.Second, 2*time.Millisecond)
	require.Len(t, slow.events(), broker.Parallel)
	close(release)
	awaitIdle(t, br)
	require.Equal(t, broker.Parallel, most)
}

func TestAnAttemptHasATimeLimit(t *testing.T) {
	t.Parallel()
	hang := &subscriber{answer: func(n int, _ http.ResponseWriter, r *http.Request) {
		if n == 1 {
			<-r.Context().Done()
		}
	}}
	br := open(t, storetest.URL(t), setOf(t, "{}", map[string]string{
		"a": "subscriber: {uri: http://a}\ndelivery: {retry: 1, timeout: PT0.1S}",
	}), map[string]http.Handler{"a": hang})
	defer stop(t, br)
	require.NoError(t, br.Ingest(t.Context(), defaultBroker, event(t, "x")))
	awaitIdle(t, br)
	require.Equal(t, broker.Stats{Delivered: 1, Retried: 1}, br.Stats()["ns/a"])
}

func TestStop_waitsForWhatIsUnderWayAndKeepsTheRest(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}, 100), make(chan struct{})
	held := &subscriber{answer: func(int, http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-release
	}}
	set := setOf(t, "{}", map[string]string{"a": "subscriber: {uri: http://a}"})
	url := storetest.URL(t)
	br := open(t, url, set, map[string]http.Handler{"a": held})
	const sent = broker.Parallel + 5
	for range sent {
		e := event(t, "x")
		e.DataBase64 = false // as if it had arrived as JSON
		require.NoError(t, br.Ingest(t.Context(), defaultBroker, e))
	}
	for range broker.Parallel {
		<-entered
	}
	stopped := make(chan error, 1)
	go func() { stopped <- br.Stop(context.WithoutCancel(t.Context())) }()
	close(release)
	require.NoError(t, <-stopped)
	br.Close()
	done := len(held.events())
	require.GreaterOrEqual(t, done, broker.Parallel)
	require.Equal(t, sent-done, count(t, url, "deliveries"))

	next := &subscriber{}
	br = open(t, url, set, map[string]http.Handler{"a": next})
	awaitIdle(t, br)
	require.Len(t, next.events(), sent-done)
	for _, e := range next.events() {
		require.True(t, events.Signed(e, "key"), "kept to the byte: %s", e.Data())
	}
	stop(t, br)
}

func TestStop_cutsOffWhatDoesNotEndAndDeliversItAgain(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{}, 1)
	hanging := &subscriber{answer: func(_ int, _ http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-r.Context().Done()
	}}
	set := setOf(t, "{}", map[string]string{"a": "subscriber: {uri: http://a}"})
	url := storetest.URL(t)
	br := open(t, url, set, map[string]http.Handler{"a": hanging})
	require.NoError(t, br.Ingest(t.Context(), defaultBroker, event(t, "x")))
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.Error(t, br.Stop(ctx))
	br.Close()
	require.Zero(t, count(t, url, "dead_letters"), "being cut off is no failure of the subscriber")

	next := &subscriber{}
	br = open(t, url, set, map[string]http.Handler{"a": next})
	awaitIdle(t, br)
	require.Len(t, next.events(), 1)
	stop(t, br)
}

func TestATriggerThatIsGoneLeavesDeadLetters(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	busy := "subscriber: {uri: http://a}\ndelivery: {retry: 5, backoffPolicy: exponential, backoffDelay: PT1H}"
	br := open(t, url, setOf(t, "{}", map[string]string{"a": busy}), map[string]http.Handler{"a": answering(503)})
	require.NoError(t, br.Ingest(t.Context(), defaultBroker, event(t, "x")))
	require.Eventually(t, func() bool { return br.Stats()["ns/a"].Retried == 1 }, 10*time.Second, 2*time.Millisecond)
	stop(t, br)

	br = open(t, url, setOf(t, "{}", nil), nil)
	letters, err := br.DeadLetters(t.Context(), 10)
	require.NoError(t, err)
	require.Len(t, letters, 1)
	require.Contains(t, letters[0].Answer, "gone")
	require.Zero(t, count(t, url, "deliveries"))
	stop(t, br)
}

const childTriggers = 3

func childSet(t testing.TB) *manifests.Set {
	triggers := map[string]string{"unwanted": "subscriber: {uri: http://s0}\nfilter: {attributes: {type: other}}"}
	for i := range childTriggers {
		triggers[fmt.Sprintf("t%d", i)] = fmt.Sprintf("subscriber: {uri: 'http://s%d'}", i)
	}
	return setOf(t, "{}", triggers)
}

// acceptAndHang is the child of the test below: its subscribers never answer.
func acceptAndHang(url string) {
	t := &testing.B{}
	m := mesh.New(http.DefaultTransport)
	for i := range childTriggers {
		m.Handle(fmt.Sprintf("s%d", i), http.HandlerFunc(func(http.ResponseWriter, *http.Request) { select {} }))
	}
	ctx := context.Background()
	b, err := broker.Open(ctx, broker.Options{DatabaseURL: url, Set: childSet(t), Client: &http.Client{Transport: m}})
	if err == nil {
		err = b.Start(ctx)
	}
	if err != nil {
		panic(err)
	}
	e, err := events.New(ctx, "/test", "x", "s", nil)
	if err != nil {
		panic(err)
	}
	body, _ := json.Marshal(e)
	r := httptest.NewRequest(http.MethodPost, "/ns/default", bytes.NewReader(body))
	r.Header.Set("Content-Type", cloudevents.ApplicationCloudEventsJSON)
	w := httptest.NewRecorder()
	b.Ingress().ServeHTTP(w, r)
	fmt.Println(w.Code, e.ID())
	select {}
}

func TestAnAcceptedEventSurvivesKill9(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childURL+"="+url)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, child.Process.Kill())
	_ = child.Wait()
	code, id, _ := strings.Cut(strings.TrimSpace(line), " ")
	require.Equal(t, "202", code)

	handlers := map[string]http.Handler{}
	subscribers := make([]*subscriber, childTriggers)
	for i := range subscribers {
		subscribers[i] = &subscriber{}
		handlers[fmt.Sprintf("s%d", i)] = subscribers[i]
	}
	b := open(t, url, childSet(t), handlers)
	awaitIdle(t, b)
	stop(t, b)
	for i, s := range subscribers {
		require.Len(t, s.events(), 1, "Trigger t%d has it once", i)
		require.Equal(t, id, s.events()[0].ID())
	}
	require.Zero(t, count(t, url, "deliveries"))
}

func BenchmarkIngestAndDeliver(b *testing.B) {
	a := &subscriber{}
	br := open(b, storetest.URL(b), setOf(b, "{}", map[string]string{"a": "subscriber: {uri: http://a}"}),
		map[string]http.Handler{"a": a})
	defer stop(b, br)
	e := event(b, "x")
	for n := 1; b.Loop(); n++ {
		require.NoError(b, br.Ingest(b.Context(), defaultBroker, e))
		for br.Pending() > 0 {
			time.Sleep(50 * time.Microsecond)
		}
	}
}
