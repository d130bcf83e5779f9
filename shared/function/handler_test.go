package function_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/observe"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/trace"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// operation is an Operation made of a function.
type operation func(http.ResponseWriter, *http.Request) error

func (o operation) Handle(w http.ResponseWriter, r *http.Request) error { return o(w, r) }

type reaction func(context.Context, *store.Tx, cloudevents.Event) error

func (f reaction) React(ctx context.Context, tx *store.Tx, e cloudevents.Event) error {
	return f(ctx, tx, e)
}

type task func(context.Context) error

func (f task) Run(ctx context.Context) error { return f(ctx) }

type sink func(context.Context, cloudevents.Event) error

func (f sink) Store(ctx context.Context, e cloudevents.Event) error { return f(ctx, e) }

const key, formerKey = "event-key", "former-event-key"

// serve returns the handler of a function made from f, and its log.
func serve[F any](t *testing.T, db *store.DB, spec function.Spec, f F) (http.Handler, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	env := function.Platform{
		DB: db, EventKey: key, FormerKey: formerKey, Auth: auth.NewVerifier(auth.Config{}, http.DefaultClient, nil), Log: slog.New(observe.LogHandler(slog.NewTextHandler(&log, nil))),
	}.Env("test-function")
	h, err := function.NewEntry("test-function", spec, func(*function.Env) (F, error) { return f, nil }).Handler(env)
	require.NoError(t, err)
	return h, &log
}

// routes declares patterns that need the same role.
func routes(role auth.Role, patterns ...string) []function.Route {
	var all []function.Route
	for _, pattern := range patterns {
		all = append(all, function.Route{Pattern: pattern, Role: role})
	}
	return all
}

func call(h http.Handler, method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w
}

func document(t *testing.T, w *httptest.ResponseRecorder) problem.Document {
	t.Helper()
	require.Equal(t, problem.ContentType, w.Header().Get("Content-Type"))
	var d problem.Document
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &d))
	require.Equal(t, w.Code, d.Status)
	require.Len(t, d.TraceID, 32)
	return d
}

func TestHandler_answersEveryFailureWithAProblem(t *testing.T) {
	t.Parallel()
	work := operation(func(w http.ResponseWriter, r *http.Request) error {
		switch r.PathValue("what") {
		case "panic":
			panic("secret")
		case "error":
			return errors.New("secret")
		case "slow":
			<-r.Context().Done()
			return r.Context().Err()
		case "store":
			return &pgconn.PgError{Code: "57P01"}
		case "conflict":
			return problem.New(problem.Conflict, "busy")
		case "body":
			_, err := function.Body(r)
			return err
		case "id":
			_, err := function.PathID(r, "what")
			return err
		}
		_, err := w.Write([]byte("fine"))
		return err
	})
	h, log := serve(t, nil, function.Spec{
		Routes: routes(auth.Open, "GET /things/{what}", "PUT /things/{what}"), MaxBody: 10, Timeout: 50 * time.Millisecond,
	}, work)

	for name, row := range map[string]struct {
		method, path, body string
		status             int
		header             [2]string
		detail             string
	}{
		"an unknown path":       {"GET", "/elsewhere", "", 404, [2]string{}, "/elsewhere"},
		"a wrong method":        {"POST", "/things/x", "", 405, [2]string{"Allow", "GET, HEAD, PUT"}, "PUT"},
		"a panic":               {"GET", "/things/panic", "", 500, [2]string{}, "trace id"},
		"an error without kind": {"GET", "/things/error", "", 500, [2]string{}, "trace id"},
		"a call out of time":    {"GET", "/things/slow", "", 503, [2]string{"Retry-After", "2"}, "too long"},
		"a store that is away":  {"GET", "/things/store", "", 503, [2]string{"Retry-After", "2"}, "store"},
		"an error with a kind":  {"GET", "/things/conflict", "", 409, [2]string{}, "busy"},
		"too large a body":      {"PUT", "/things/body", "12345678901", 413, [2]string{}, "10 bytes"},
		"an empty body":         {"PUT", "/things/body", "", 400, [2]string{}, "empty"},
		"a malformed id":        {"GET", "/things/id", "", 400, [2]string{}, "UUID"},
	} {
		t.Run(name, func(t *testing.T) {
			w := call(h, row.method, row.path, row.body)
			require.Equal(t, row.status, w.Code, w.Body.String())
			d := document(t, w)
			require.Contains(t, d.Detail, row.detail)
			require.NotContains(t, w.Body.String(), "secret")
			if row.header[0] != "" {
				require.Equal(t, row.header[1], w.Header().Get(row.header[0]))
			}
			if row.status == 500 {
				require.Contains(t, log.String(), d.TraceID, "the answer leads to the log line")
			}
		})
	}
	require.Contains(t, log.String(), "panic: secret", "the cause stays in the log")
	require.Equal(t, "fine", call(h, "GET", "/things/x", "").Body.String())
}

// traced returns an exporter for calls, and the spans that it has pushed by its shutdown.
func traced(t *testing.T) (exporter *observe.Exporter, spans *[]ptrace.Span) {
	t.Helper()
	spans = &[]ptrace.Span{}
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		told := ptraceotlp.NewExportRequest()
		if err = errors.Join(err, told.UnmarshalJSON(body)); err != nil {
			t.Error(err)
			return
		}
		of := told.Traces().ResourceSpans().At(0).ScopeSpans().At(0).Spans()
		for i := range of.Len() {
			*spans = append(*spans, of.At(i))
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"partialSuccess":{}}`)
	}))
	t.Cleanup(collector.Close)
	settings, err := observe.FromEnv(func(name string) string {
		return map[string]string{
			"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": collector.URL, "OTEL_BSP_SCHEDULE_DELAY": "3600000",
		}[name]
	})
	require.NoError(t, err)
	exporter = observe.New(settings, http.DefaultClient, slog.New(slog.DiscardHandler))
	return exporter, spans
}

// TestHandler_doesNotTakeHangingUpForAFault: impatient callers must not appear in the monitoring of server errors.
func TestHandler_doesNotTakeHangingUpForAFault(t *testing.T) {
	t.Parallel()
	exporter, spans := traced(t)
	env := function.Platform{
		Auth: auth.NewVerifier(auth.Config{}, http.DefaultClient, nil), Log: slog.New(slog.DiscardHandler), Recorder: exporter.Recorder,
	}.Env("test-function")
	spec := function.Spec{Routes: routes(auth.Open, "GET /waits", "GET /fails")}
	arrived := make(chan struct{}, 2)
	h, err := function.NewEntry("test-function", spec, func(*function.Env) (operation, error) {
		return func(_ http.ResponseWriter, r *http.Request) error {
			if r.URL.Path == "/fails" {
				return errors.New("broken")
			}
			arrived <- struct{}{}
			<-r.Context().Done()
			return fmt.Errorf("read: %w", r.Context().Err())
		}, nil
	}).Handler(env)
	require.NoError(t, err)

	ctx, hangUp := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/waits", nil))
		close(done)
	}()
	<-arrived
	hangUp()
	<-done
	require.Equal(t, http.StatusInternalServerError, call(h, http.MethodGet, "/fails", "").Code)
	exporter.Shutdown(t.Context())

	require.Len(t, *spans, 2)
	for i, want := range []struct {
		status int64
		code   ptrace.StatusCode
	}{{499, ptrace.StatusCodeUnset}, {http.StatusInternalServerError, ptrace.StatusCodeError}} {
		status, _ := (*spans)[i].Attributes().Get("http.response.status_code")
		require.Equal(t, want.status, status.Int())
		require.Equal(t, want.code, (*spans)[i].Status().Code())
	}
}

// TestHandler_keepsTheBeginningOfAPath: a stranger's path may have a megabyte, and thousands of spans wait for the
// collector.
func TestHandler_keepsTheBeginningOfAPath(t *testing.T) {
	t.Parallel()
	exporter, spans := traced(t)
	var log bytes.Buffer
	env := function.Platform{
		Auth: auth.NewVerifier(auth.Config{}, http.DefaultClient, nil), Log: slog.New(slog.NewTextHandler(&log, nil)), Recorder: exporter.Recorder,
	}.Env("test-function")
	spec := function.Spec{Routes: routes(auth.Viewer, "GET /things/{id}")}
	h, err := function.NewEntry("test-function", spec, func(*function.Env) (operation, error) { return nil, nil }).Handler(env)
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, call(h, http.MethodGet, "/things/"+strings.Repeat("x", 1<<20), "").Code)
	exporter.Shutdown(t.Context())

	require.Len(t, *spans, 1)
	path, _ := (*spans)[0].Attributes().Get("url.path")
	require.True(t, strings.HasPrefix(path.Str(), "/things/xxx"))
	require.Less(t, len(path.Str()), 1000)
	require.Contains(t, log.String(), "path=/things/xxx")
	require.Less(t, log.Len(), 2000)
}

// TestHandler_waitsForABodyNoLongerThanForACall: a body that never ends would occupy a call, and so the function,
// forever.
func TestHandler_waitsForABodyNoLongerThanForACall(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, nil, function.Spec{Routes: routes(auth.Open, "POST /x"), Timeout: 100 * time.Millisecond},
		operation(func(_ http.ResponseWriter, r *http.Request) error {
			_, err := function.Body(r)
			return err
		}))
	server := httptest.NewServer(h)
	defer server.Close()
	body, rest := io.Pipe()
	defer rest.Close()           // it cannot fail
	go io.WriteString(rest, "{") //nolint:errcheck // it cannot fail
	resp, err := http.Post(server.URL+"/x", "application/json", body)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	var d problem.Document
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&d))
	require.Equal(t, "the body did not come to its end in time", d.Detail)
}

func TestHandler_addsNothingToAnAnswerThatHasBegun(t *testing.T) {
	t.Parallel()
	h, log := serve(t, nil, function.Spec{Routes: routes(auth.Open, "GET /x")},
		operation(func(w http.ResponseWriter, _ *http.Request) error {
			_, err := w.Write([]byte("half of "))
			return errors.Join(err, errors.New("broken"))
		}))
	w := call(h, http.MethodGet, "/x", "")
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "half of ", w.Body.String())
	require.Contains(t, log.String(), "broken")
}

// recognizing is an operation that recognizes every caller, with the role of an Alertmanager.
type recognizing struct{ operation }

func (recognizing) Recognize(*http.Request) (auth.Principal, bool) {
	return auth.Principal{Subject: "known", Roles: []auth.Role{auth.Alertmanager}}, true
}

// TestHandler_asksTheRoleOfWhoeverItsFunctionKnows: a recognized caller needs no token, but still needs the role.
func TestHandler_asksTheRoleOfWhoeverItsFunctionKnows(t *testing.T) {
	t.Parallel()
	for role, status := range map[auth.Role]int{
		auth.Alertmanager: http.StatusNoContent, auth.Viewer: http.StatusUnauthorized, auth.Admin: http.StatusUnauthorized,
	} {
		h, _ := serve(t, nil, function.Spec{Routes: routes(role, "GET /x")},
			recognizing{func(w http.ResponseWriter, r *http.Request) error {
				require.Equal(t, "known", auth.From(r.Context()).Subject)
				w.WriteHeader(http.StatusNoContent)
				return nil
			}})
		require.Equal(t, status, call(h, http.MethodGet, "/x", "").Code, role)
	}
}

// TestHandler_leavesTheConnectionToLaterCalls: calls on the same connection succeed after one that lasted until its
// deadline.
func TestHandler_leavesTheConnectionToLaterCalls(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, nil, function.Spec{
		Routes: routes(auth.Open, "GET /{does}", "POST /{does}"), Timeout: 100 * time.Millisecond,
	}, operation(func(_ http.ResponseWriter, r *http.Request) error {
		if r.Method == http.MethodPost {
			if _, err := function.Body(r); err != nil {
				return err
			}
		}
		if r.PathValue("does") == "wait" {
			<-r.Context().Done()
		}
		return r.Context().Err()
	}))
	for method, body := range map[string]string{http.MethodGet: "", http.MethodPost: "{}"} {
		server := httptest.NewServer(h)
		defer server.Close()
		for i, want := range []int{http.StatusServiceUnavailable, http.StatusOK, http.StatusOK} {
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
				require.Equal(t, i > 0, c.Reused)
			}})
			req, err := http.NewRequestWithContext(ctx, method, server.URL+[]string{"/wait", "/answer", "/answer"}[i], strings.NewReader(body))
			require.NoError(t, err)
			resp, err := server.Client().Do(req)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, want, resp.StatusCode, "call %d of %s", i, method)
		}
	}
}

func TestHandler_asksForTheRole(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, nil, function.Spec{Routes: routes(auth.Viewer, "GET /x")},
		operation(func(http.ResponseWriter, *http.Request) error { return errors.New("must not be reached") }))
	w := call(h, "GET", "/x", "")
	require.Equal(t, http.StatusUnauthorized, w.Code)
	require.Contains(t, w.Header().Get("WWW-Authenticate"), "Bearer")
	document(t, w)
}

func TestHandler_keepsTheTrace(t *testing.T) {
	t.Parallel()
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	var id string
	h, _ := serve(t, nil, function.Spec{Routes: routes(auth.Open, "GET /x")},
		operation(func(_ http.ResponseWriter, r *http.Request) error {
			id = trace.ID(r.Context())
			return nil
		}))
	r := httptest.NewRequest(http.MethodGet, "/x", nil)
	r.Header.Set("Traceparent", parent)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", id)
	require.Contains(t, w.Header().Get("Traceparent"), id)
}

// deliver posts an event like the Broker.
func deliver(t *testing.T, h http.Handler, e cloudevents.Event) *httptest.ResponseRecorder {
	t.Helper()
	body, err := json.Marshal(e)
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodPost, function.EventPath, bytes.NewReader(body))
	r.Header.Set("Content-Type", cloudevents.ApplicationCloudEventsJSON)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func event(t *testing.T, typ, signedWith string) cloudevents.Event {
	t.Helper()
	e, err := events.New(trace.Start(t.Context(), ""), "/test", typ, "s", events.Topology{})
	require.NoError(t, err)
	events.Sign(&e, signedWith)
	return e
}

func TestDelivery_refusesStrangers(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, nil, function.Spec{Consumes: []string{events.TopologyChanged}},
		reaction(func(context.Context, *store.Tx, cloudevents.Event) error { return errors.New("must not be reached") }))
	for name, row := range map[string]struct {
		typ, key string
		want     int
	}{
		"an unsigned event":             {events.TopologyChanged, "", http.StatusForbidden},
		"a signature of a foreign":      {events.TopologyChanged, "other", http.StatusForbidden},
		"a type not declared, unsigned": {events.JobReady, "", http.StatusForbidden},
		"a tick not declared":           {events.Tick, "", http.StatusForbidden},
		"a type of the version to come": {events.JobReady, key, http.StatusServiceUnavailable}, // delivered again
		"one by the former key":         {events.JobReady, formerKey, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := deliver(t, h, event(t, row.typ, row.key))
			require.Equal(t, row.want, w.Code)
			document(t, w)
		})
	}
	require.Equal(t, http.StatusBadRequest, call(h, "POST", "/", "no event").Code)
	require.Equal(t, http.StatusMethodNotAllowed, call(h, "GET", "/", "").Code)
}

// TestDelivery_isNotedByNamesThatWeKnow: otherwise strangers could create metric series, of any size, with made-up
// event types.
func TestDelivery_isNotedByNamesThatWeKnow(t *testing.T) {
	t.Parallel()
	exporter, spans := traced(t)
	env := function.Platform{
		EventKey: key, Log: slog.New(slog.DiscardHandler), Recorder: exporter.Recorder,
	}.Env("test-function")
	var causes []string
	handler := func(consumes string) http.Handler {
		h, err := function.NewEntry("test-function", function.Spec{Consumes: []string{consumes}},
			func(*function.Env) (sink, error) {
				return func(ctx context.Context, _ cloudevents.Event) error {
					causes = append(causes, trace.Cause(ctx))
					return nil
				}, nil
			}).Handler(env)
		require.NoError(t, err)
		return h
	}
	long := strings.Repeat("x", 100_000)
	invented := event(t, "dev.littoral."+long, "")
	invented.SetID("1" + long)
	invented.SetSource("/" + long)
	invented.SetSubject(long)
	one, every := handler(events.TopologyChanged), handler(events.Any)
	require.Less(t, deliver(t, one, invented).Body.Len(), 1000)
	deliver(t, one, event(t, events.TopologyChanged, "")) // declared, but not signed
	deliver(t, every, invented)
	deliver(t, every, event(t, "dev.littoral.tide.turned.v1", key))
	exporter.Shutdown(t.Context())

	names := []string{}
	for _, s := range *spans {
		names = append(names, s.Name())
		s.Attributes().Range(func(name string, value pcommon.Value) bool {
			require.Less(t, len(value.AsString()), 1000, name)
			return true
		})
	}
	require.Equal(t, []string{
		"process other", "process " + events.TopologyChanged, "process other", "process dev.littoral.tide.turned.v1",
	}, names)
	require.Less(t, len(causes[0]), 1000)
}

func TestDelivery_reactsOnceAndInTheTraceOfTheEvent(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	e := event(t, events.TopologyChanged, key)
	var causes []string
	h, _ := serve(t, db, function.Spec{Consumes: []string{events.TopologyChanged}},
		reaction(func(ctx context.Context, tx *store.Tx, got cloudevents.Event) error {
			require.Equal(t, e.ID(), got.ID())
			causes = append(causes, trace.Cause(ctx))
			return tx.Emit(ctx, events.ApplicationDisplaced, "a", events.Application{})
		}))
	for range 3 {
		require.Equal(t, http.StatusNoContent, deliver(t, h, e).Code)
	}
	require.Equal(t, []string{"event " + e.ID()}, causes)
	published := storetest.Published(db)
	require.Len(t, published, 1)
	require.Equal(t, "/functions/test-function", published[0].Source())
	require.Equal(t, events.TraceParent(e)[:35], events.TraceParent(published[0])[:35], "one trace from end to end")
}

func TestDelivery_tellsTheBrokerWhetherARepeatCanHelp(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	var answer error
	h, _ := serve(t, db, function.Spec{Consumes: []string{events.TopologyChanged}},
		reaction(func(context.Context, *store.Tx, cloudevents.Event) error { return answer }))
	e := event(t, events.TopologyChanged, key)
	for _, row := range []struct {
		err    error
		status int
	}{
		{problem.New(problem.Unavailable, "not visible yet"), 503},
		{errors.New("bug"), 500},
		{problem.New(problem.Invalid, "no repeat mends this"), 422},
		{nil, 204},
	} {
		answer = row.err
		require.Equal(t, row.status, deliver(t, h, e).Code, "%v", row.err)
	}
}

func TestDelivery_ofATickNeedsNoSignature(t *testing.T) {
	t.Parallel()
	runs := 0
	h, _ := serve(t, nil, function.Spec{Consumes: []string{events.Tick}}, task(func(context.Context) error {
		runs++
		return nil
	}))
	require.Equal(t, http.StatusNoContent, deliver(t, h, event(t, events.Tick, "")).Code)
	require.Equal(t, 1, runs)
}

func TestHandler_needsTheMethodThatItsSpecPromises(t *testing.T) {
	t.Parallel()
	for _, spec := range []function.Spec{{Routes: routes(auth.Open, "GET /x")}, {Consumes: []string{events.Tick}}} {
		entry := function.NewEntry("empty", spec, func(*function.Env) (struct{}, error) { return struct{}{}, nil })
		_, err := entry.Handler(function.Platform{}.Env(""))
		require.ErrorContains(t, err, "empty")
	}
	failing := function.NewEntry("failing", function.Spec{}, func(*function.Env) (struct{}, error) {
		return struct{}{}, errors.New("settings")
	})
	_, err := failing.Handler(function.Platform{}.Env(""))
	require.ErrorContains(t, err, "failing: settings")
}

func TestHandler_answersThatItIsAwake(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, nil, function.Spec{Routes: routes(auth.Admin, "GET /things/{id}")},
		operation(func(http.ResponseWriter, *http.Request) error { return errors.New("not asked for") }))
	w := call(h, http.MethodGet, function.HealthPath, "")
	require.Equal(t, http.StatusNoContent, w.Code)
	require.Empty(t, w.Body.String())
}

func TestHandler_answersWhetherItsStoreIsThere(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	h, _ := serve(t, db, function.Spec{Consumes: []string{events.Tick}}, task(func(context.Context) error { return nil }))
	w := call(h, http.MethodGet, function.ReadyPath, "")
	require.Equal(t, http.StatusOK, w.Code)
	var answer map[string]int64
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
	require.Positive(t, answer["schema"])

	away, err := store.Open(t.Context(), store.Config{DatabaseURL: "postgres://nobody@127.0.0.1:1/none"}, nil, nil)
	require.NoError(t, err)
	t.Cleanup(away.Close)
	h, _ = serve(t, away, function.Spec{Consumes: []string{events.Tick}}, task(func(context.Context) error { return nil }))
	require.Equal(t, http.StatusServiceUnavailable, call(h, http.MethodGet, function.ReadyPath, "").Code)
}

// A Broker may hold an event until its consumers have handled it. Neither the caller of the function nor the sender of
// an event to it waits for that.
func TestHandler_answersWhileTheBrokerHoldsItsEvents(t *testing.T) {
	t.Parallel()
	broker := storetest.NewHolding()
	db := storetest.NewWithPublisher(t, broker)
	announce := func(ctx context.Context, tx *store.Tx) error {
		return tx.Emit(ctx, events.ApplicationPlaced, "a", events.Application{})
	}
	op, _ := serve(t, db, function.Spec{Routes: routes(auth.Open, "POST /things")}, operation(func(w http.ResponseWriter, r *http.Request) error {
		if err := db.Tx(r.Context(), announce); err != nil {
			return err
		}
		w.WriteHeader(http.StatusCreated)
		return nil
	}))
	require.Equal(t, http.StatusCreated, call(op, http.MethodPost, "/things", "").Code)
	react, _ := serve(t, db, function.Spec{Consumes: []string{events.Tick}},
		reaction(func(ctx context.Context, tx *store.Tx, _ cloudevents.Event) error { return announce(ctx, tx) }))
	tick, err := events.New(t.Context(), "/test", events.Tick, "", map[string]string{})
	require.NoError(t, err)
	body, err := json.Marshal(tick)
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	r.Header.Set("Content-Type", cloudevents.ApplicationCloudEventsJSON)
	w := httptest.NewRecorder()
	react.ServeHTTP(w, r)
	require.Equal(t, http.StatusNoContent, w.Code)

	broker.Answers <- nil
	broker.Answers <- nil
	require.NoError(t, db.Flush(t.Context()))
	require.Len(t, broker.Arrived, 2)
}

// A function that is woken ahead of its event connects to its store; a plain health check does not use Postgres.
func TestHandler_dialsTheStoreWhenItIsWoken(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	h, _ := serve(t, db, function.Spec{Consumes: []string{events.Tick}}, task(func(context.Context) error { return nil }))
	asLike := func(agent string) {
		r := httptest.NewRequest(http.MethodGet, function.HealthPath, nil)
		r.Header.Set("User-Agent", agent)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, http.StatusNoContent, w.Code)
	}
	asLike("curl")
	require.Zero(t, db.Stat().TotalConns())
	asLike(function.WakeAgent)
	require.Eventually(t, func() bool { return db.Stat().IdleConns() == 1 }, 10*time.Second, time.Millisecond)
}

// TestNewQuery_saysWhatIsKnown, also where that is nothing.
func TestNewQuery_saysWhatIsKnown(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodGet, "/?sort=name", nil)
	require.ErrorContains(t, function.NewQuery(r, "limit", "cursor").Err(), "query.sort: is not known here; known are limit, cursor")
	require.ErrorContains(t, function.NewQuery(r).Err(), "query.sort: is not known here, and neither is any other")
}
