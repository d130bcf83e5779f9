// Package function defines how a function is written: what it declares (Spec), what it is given (Env), and the one
// method it has.
//
// A function folder holds a Spec (the declaration), New (its constructor) and one of five methods:
//
//	Handle  answers an HTTP operation
//	React   handles an event exactly once, in the transaction that records it
//	Work    handles an event with effects outside Postgres
//	Run     does a scheduled piece of work
//	Store   stores dead letters: events that no consumer took
//
// The main, the registry entry, the Knative Service and the route are generated from the Spec.
package function

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/events/identity"
	"github.com/littoral-project/littoral/shared/observe"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
)

// Operation answers HTTP. A returned error becomes a problem document; after it nothing may have been written.
type Operation interface {
	Handle(w http.ResponseWriter, r *http.Request) error
}

// Recognizer is an Operation that also accepts callers without an access token. A caller it does not recognize needs a
// token; one that it does still needs the role of the routes.
type Recognizer interface {
	Recognize(r *http.Request) (caller auth.Principal, ok bool)
}

// Identifier is an Operation that knows callers by something else than an access token, if they send it. The error says
// why what they sent is not accepted.
type Identifier interface {
	Identify(r *http.Request) (caller auth.Principal, sent bool, err error)
}

// Reaction handles one event inside the transaction that also records the event as seen, so its effects happen once
// however often the event is delivered. An error of kind Unavailable (or of no kind) asks the Broker to deliver again.
// Any other kind means that a repeat cannot help, and the event becomes a dead letter.
type Reaction interface {
	React(ctx context.Context, tx *store.Tx, e cloudevents.Event) error
}

// Sink stores events that others did not take. It is no Reaction: the same event may come from several consumers, and
// again after a replay, so it has to recognize by itself what it has already.
type Sink interface {
	Store(ctx context.Context, e cloudevents.Event) error
}

// Worker handles an event with effects outside Postgres, using transactions of its own before and after them. It may
// get the same event several times, even in parallel; doing it again must be harmless.
type Worker interface {
	Work(ctx context.Context, e cloudevents.Event) error
}

// Task does scheduled work with transactions of its own; doing it twice must be harmless.
type Task interface {
	Run(ctx context.Context) error
}

// Platform is what a process gives to all of its functions. Nothing in it has been dialled yet.
type Platform struct {
	DB       *store.DB
	Auth     *auth.Verifier
	Log      *slog.Logger
	Settings settings.Lookup // nil = every setting has its default

	Transport http.RoundTripper                       // to other services; nil = http.DefaultTransport
	Recorder  func(function string) *observe.Recorder // reports a function's calls to a collector; nil = there is none

	Deliveries *identity.Deliveries // checks who delivers events; nil where Knative does not say
	EventKey   string               // checks the signature of delivered events; empty where the Broker is the trust boundary
	FormerKey  string               // another that they may be signed with, while EventKey is being changed; empty = none

	// Stopping ends when the process is to stop, and every stream with it; nil = never.
	Stopping context.Context // of the process
}

// Env is what a function is given when it is made.
type Env struct {
	Platform

	Name    string
	HTTP    *http.Client
	Observe *observe.Recorder // nil if there is no collector
}

// Outbound bounds any call that a function makes to another service.
const Outbound = 10 * time.Second

// Env is made here alone: by a function's own process, by the laptop host and by tests.
func (p Platform) Env(name string) *Env {
	if p.Log == nil {
		p.Log = slog.New(slog.DiscardHandler)
	}
	e := &Env{Platform: p, Name: name}
	if p.Recorder != nil {
		e.Observe = p.Recorder(name)
	}
	e.HTTP = &http.Client{Timeout: Outbound, Transport: e.Observe.Transport(cmp.Or[http.RoundTripper](p.Transport, http.DefaultTransport))}
	return e
}

// Signed reports whether the event is signed with the present or the former key. Without a key every event counts as
// signed.
func (e *Env) Signed(ev cloudevents.Event) bool {
	return events.Signed(ev, e.EventKey) || e.FormerKey != "" && events.Signed(ev, e.FormerKey)
}

// Config fills the tagged fields of into from the settings: JOBMANAGER_JOB_PROMOTE_KEY for this function alone, else the
// bare KEY for all.
func (e *Env) Config(into any) error {
	if err := settings.Read(e.Settings, strings.ReplaceAll(e.Name, "-", "_"), into); err != nil {
		return fmt.Errorf("settings of %s: %w", e.Name, err)
	}
	return nil
}

// Entry is a function as the registry and the runner know it.
type Entry struct {
	Name string
	Spec Spec
	New  func(*Env) (any, error)
}

// NewEntry makes a registry entry; the generic parameter lets each folder's New return its own type.
func NewEntry[F any](name string, spec Spec, construct func(*Env) (F, error)) Entry {
	return Entry{Name: name, Spec: spec.WithDefaults(), New: func(e *Env) (any, error) { return construct(e) }}
}
