package function

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/observe"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/trace"
)

// EventPath is where a function takes events.
const EventPath = "/"

// HealthPath is where a function answers health checks and calls that wake it, without doing anything.
const HealthPath = "/healthz"

// ReadyPath is where a function answers with the schema version of the database, or 503 while that is away.
const ReadyPath = "/readyz"

const selectSchema = `select version_id from goose_db_version order by id desc limit 1`

// statusHungUp is logged for a call whose caller did not wait for the answer, as nginx does.
const statusHungUp = 499

// WakeAgent is the User-Agent of calls that wake a function ahead of its event; they also make it dial the store.
const WakeAgent = "littoral-prewake"

// Handler constructs the function and returns what it serves: its routes, and events at EventPath when it consumes any.
// Tracing, identity, limits and error documents are handled here, so that a function holds its own work only.
func (e Entry) Handler(env *Env) (http.Handler, error) {
	if err := e.Spec.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", e.Name, err)
	}
	f, err := e.New(env)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Name, err)
	}
	router := NewRouter()
	router.Handle("GET "+HealthPath, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if env.DB != nil && !e.Spec.Storeless && r.UserAgent() == WakeAgent {
			env.DB.Expect(r.Context())
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	router.Handle("GET "+ReadyPath, e.ready(env))
	if op, ok := f.(Operation); ok {
		for _, route := range e.Spec.Routes {
			h := e.operation(env, op, route.Role)
			for _, pattern := range route.Patterns() {
				router.Handle(pattern, h)
			}
		}
	} else if len(e.Spec.Routes) > 0 {
		return nil, fmt.Errorf("%s declares routes but has no Handle method", e.Name)
	}
	take := func(work delivered) { router.Handle("POST "+EventPath+"{$}", e.delivery(env, work)) }
	switch f := f.(type) {
	case Reaction:
		take(func(ctx context.Context, ev cloudevents.Event) (bool, error) {
			return env.DB.React(ctx, e.Name, ev, func(ctx context.Context, tx *store.Tx) error { return f.React(ctx, tx, ev) })
		})
	case Task:
		take(e.marked(env, func(ctx context.Context, _ cloudevents.Event) error { return f.Run(ctx) }))
	case Worker:
		take(e.marked(env, f.Work))
	case Sink:
		take(func(ctx context.Context, ev cloudevents.Event) (bool, error) { return true, f.Store(ctx, ev) })
	default:
		if len(e.Spec.Consumes) > 0 {
			return nil, fmt.Errorf("%s consumes events but has none of React, Work, Run and Store", e.Name)
		}
	}
	return router, nil
}

// marked records that the function has done what an event asks for, so that it is not sent again.
func (e Entry) marked(env *Env, work func(context.Context, cloudevents.Event) error) delivered {
	return func(ctx context.Context, ev cloudevents.Event) (bool, error) {
		err := work(ctx, ev)
		if err == nil && !events.Nudge(ev.Type()) && env.DB != nil {
			env.DB.Taken(ctx, e.Name, ev)
		}
		return true, err
	}
}

func (e Entry) ready(env *Env) http.Handler {
	return e.wrap(env, func(w http.ResponseWriter, r *http.Request) error {
		var schema int64
		if err := env.DB.QueryRow(r.Context(), selectSchema).Scan(&schema); err != nil {
			return store.Classify(err)
		}
		return WriteJSON(w, http.StatusOK, map[string]int64{"schema": schema})
	})
}

func (e Entry) operation(env *Env, op Operation, role auth.Role) http.Handler {
	return e.wrap(env, func(w http.ResponseWriter, r *http.Request) error {
		caller, err := e.identify(env, op, role, r)
		if err != nil {
			return err
		}
		ctx := auth.With(r.Context(), caller)
		if caller.Subject != "" {
			ctx = trace.WithCause(ctx, "caller "+caller.Subject)
		}
		r = r.WithContext(ctx)
		if !e.Spec.Streams() {
			r.Body = http.MaxBytesReader(w, r.Body, e.Spec.MaxBody)
		}
		return op.Handle(w, r)
	})
}

// identify returns the caller, or an error if he may not call.
func (e Entry) identify(env *Env, op Operation, role auth.Role, r *http.Request) (auth.Principal, error) {
	if known, ok := op.(Recognizer); ok {
		if caller, ok := known.Recognize(r); ok && caller.Can(role) {
			return caller, nil
		}
	}
	if other, ok := op.(Identifier); ok && role != auth.Open {
		if caller, sent, err := other.Identify(r); sent {
			if err == nil {
				err = caller.Must(role)
			}
			return caller, err
		}
	}
	if env.DB != nil && role != auth.Open && !e.Spec.Storeless && env.Auth.Carries(r) {
		env.DB.Expect(r.Context()) // dial the store while the token is checked
	}
	return env.Auth.Authenticate(r, role)
}

// delivered handles an event; fresh is false when it had been handled before.
type delivered func(ctx context.Context, e cloudevents.Event) (fresh bool, err error)

func (e Entry) delivery(env *Env, work delivered) http.Handler {
	return e.wrap(env, func(w http.ResponseWriter, r *http.Request) error {
		if !e.sink() {
			if err := env.Deliveries.Check(r); err != nil {
				return err
			}
		}
		ev, err := events.FromRequest(r)
		if err != nil {
			return err
		}
		ctx := r.Context()
		// The trace of the emitting call. (The traceparent header may be that of a span of the Broker.)
		if parent := events.TraceParent(ev); parent != "" {
			ctx = env.Observe.Sample(trace.WithState(trace.Start(ctx, parent), events.TraceState(ev)))
		}
		ctx = trace.WithCause(ctx, "event "+events.Brief(ev.ID()))
		out, _ := w.(*response)
		out.ctx, out.call.EventType, out.call.EventID = ctx, e.known(env, ev), events.Brief(ev.ID())
		out.call.EventSource, out.call.EventSubject = events.Brief(ev.Source()), events.Brief(ev.Subject())
		if err := e.accept(env, ev); err != nil {
			env.Log.ErrorContext(ctx, "event refused", "function", e.Name, "event_type", events.Brief(ev.Type()),
				"event_id", out.call.EventID)
			return err
		}
		fresh, err := work(ctx, ev)
		if err != nil {
			return store.Classify(err)
		}
		out.call.Duplicate = !fresh
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
}

// sink reports whether the function keeps dead letters. Anybody may send to it: it keeps only signed events. (Knative
// Eventing 0.50 sends to a sink that Triggers take over from their Broker a token for another audience.)
func (e Entry) sink() bool { return slices.Contains(e.Spec.Consumes, events.Any) }

// known returns the event type for metrics. Types that anybody could make up are "other", since each type is a series
// of its own.
func (e Entry) known(env *Env, ev cloudevents.Event) string {
	if slices.Contains(e.Spec.Consumes, ev.Type()) || (e.sink() && env.Signed(ev)) {
		return ev.Type()
	}
	return "other"
}

// accept returns nil for a declared event type that is signed, or that is a mere tick and carries nothing. The error is
// Forbidden for a forgery. It is Unavailable for a signed event of another type: the next version of this function may
// take it, and its Trigger may exist before it, so the Broker should deliver again. A sink also accepts forgeries:
// Brokers hand it what others refused, and it records them.
func (e Entry) accept(env *Env, ev cloudevents.Event) error {
	declared, signed := slices.Contains(e.Spec.Consumes, ev.Type()), env.Signed(ev)
	switch {
	case e.sink(), declared && (signed || events.Nudge(ev.Type())):
		return nil
	case signed && env.EventKey != "": // without a key, "signed" says nothing
		return problem.New(problem.Unavailable, "this function does not take %s yet", events.Brief(ev.Type()))
	default:
		return problem.New(problem.Forbidden, "this function does not take %s from %s",
			events.Brief(ev.Type()), events.Brief(ev.Source()))
	}
}

// mostOfPath is how much of a request path is reported. A caller can make it any length, and many calls wait for the
// collector.
const mostOfPath = 500

// wrap gives a call its trace, deadline and log line, and turns its error or panic into a problem document.
func (e Entry) wrap(env *Env, serve func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller := r.Context()
		ctx := trace.Start(caller, r.Header.Get("Traceparent"))
		ctx = env.Observe.Sample(trace.WithState(ctx, r.Header.Get("Tracestate")))
		ctx = store.WithSource(ctx, "/functions/"+e.Name)
		ctx, cancel := context.WithTimeout(ctx, e.Spec.Timeout)
		defer cancel()
		if e.Spec.Streams() {
			defer e.last(env, w, cancel)()
		}
		r = r.WithContext(ctx)
		if r.Body != http.NoBody {
			r.Body = bound(ctx, w, r.Body)
		}
		out := &response{ResponseWriter: w, ctx: ctx}
		out.Header().Set("Traceparent", trace.Parent(ctx))
		start := time.Now()

		err := guarded(out, r, serve)
		if err != nil && !out.started {
			err = clarify(err)
			e.refuse(out, err, trace.ID(ctx))
		}
		took := time.Since(start)
		if e.Spec.Streams() && out.started && ctx.Err() != nil {
			err = nil // a stream ends with its time, its caller or its process
		}
		hungUp := err != nil && caller.Err() != nil && out.call.EventType == "" // a Broker that hangs up delivers again
		if hungUp {
			out.started, out.code = true, statusHungUp
		}
		out.call.Route, out.call.Path = r.Pattern, problem.Brief(r.URL.Path, mostOfPath)
		e.log(out.ctx, env, r, out, err, took)
		if hungUp {
			err = nil // it is no fault of ours
		}
		out.call.Status, out.call.Error, out.call.Start, out.call.Took = out.status(), err, start, took
		env.Observe.Note(out.ctx, out.call)
	})
}

// last lets a stream last as long as it may, whatever the limits of the server are for other answers, and cancels it when
// the process is to stop: callers come again, and are sent to another instance. The result must be called at its end.
func (e Entry) last(env *Env, w http.ResponseWriter, cancel func()) (end func()) {
	connection := http.NewResponseController(w)
	_ = connection.SetWriteDeadline(time.Now().Add(e.Spec.Timeout + DefaultTimeout)) // any server can
	_ = connection.SetReadDeadline(time.Time{})
	if env.Stopping == nil {
		return func() {}
	}
	stop := context.AfterFunc(env.Stopping, cancel)
	return func() { stop() }
}

// refuse answers with a problem document, or in the way of gRPC.
func (e Entry) refuse(w http.ResponseWriter, err error, traceID string) {
	if e.Spec.GRPC {
		RefuseGRPC(w, err, traceID)
		return
	}
	problem.Write(w, err, traceID)
}

// bounded is a request body whose reading ends at the deadline of the call. A context does not end a read.
type bounded struct {
	io.ReadCloser
	connection *http.ResponseController
}

func bound(ctx context.Context, w http.ResponseWriter, body io.ReadCloser) *bounded {
	b := &bounded{body, http.NewResponseController(w)}
	deadline, _ := ctx.Deadline()
	b.until(deadline)
	return b
}

// Read removes the deadline at the end of the body. From there on the server reads to notice when the caller hangs up;
// a deadline would look like that, and cancel this call and all later ones on the connection.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF { // a reader returns it as it is
		b.until(time.Time{})
	}
	return n, err
}

func (b *bounded) until(deadline time.Time) { _ = b.connection.SetReadDeadline(deadline) } // any server can

func guarded(w http.ResponseWriter, r *http.Request, serve func(http.ResponseWriter, *http.Request) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return serve(w, r)
}

// clarify gives their proper kind to errors that any call can end in.
func clarify(err error) error {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return problem.New(problem.TooLarge, "the body has more than %d bytes", large.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded) && problem.KindOf(err) == problem.Malformed:
		return problem.Wrap(problem.Malformed, err, "the body did not come to its end in time")
	case errors.Is(err, context.DeadlineExceeded) && problem.KindOf(err) == problem.Internal:
		return problem.Wrap(problem.Unavailable, err, "the call took too long; try again")
	}
	return store.Classify(err)
}

func (e Entry) log(ctx context.Context, env *Env, r *http.Request, out *response, err error, took time.Duration) {
	args := []any{
		"function", e.Name, "method", r.Method, "path", out.call.Path, "status", out.status(),
		"ms", took.Milliseconds(),
	}
	switch {
	case err == nil:
		env.Log.DebugContext(ctx, "call", args...)
	case r.Context().Err() == context.Canceled:
		env.Log.InfoContext(ctx, "caller hung up", append(args, "error", err.Error())...)
	case problem.KindOf(err) == problem.Internal:
		env.Log.ErrorContext(ctx, "call failed", append(args, "error", err.Error())...)
	case problem.KindOf(err) == problem.Unavailable:
		env.Log.WarnContext(ctx, "call failed", append(args, "error", err.Error())...)
	default:
		env.Log.InfoContext(ctx, "call refused", append(args, "error", err.Error())...)
	}
}

// response remembers whether the answer has begun and with which status.
type response struct {
	http.ResponseWriter
	started bool
	code    int

	ctx  context.Context // of the call, in the span that its event gave it
	call observe.Call
}

func (w *response) WriteHeader(code int) {
	if !w.started {
		w.started, w.code = true, code
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *response) Write(b []byte) (int, error) {
	if !w.started {
		w.started, w.code = true, http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Flush sends what was written. (The server of gRPC asks for it by type.)
func (w *response) Flush() {
	if !w.started {
		w.started, w.code = true, http.StatusOK
	}
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *response) status() int {
	if !w.started {
		return http.StatusOK
	}
	return w.code
}
