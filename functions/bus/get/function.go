// Package get answers what is published, and what will be: a query and a subscription are one path of Zenoh's REST plugin,
// told apart by Accept.
package get

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/bus/zenohrest"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/sse"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/telemetry/tenant"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{
		{Pattern: "GET " + zenohrest.Root, Role: auth.Viewer, Subtree: true},
		// A query with a payload is answered as one without: no storage looks at it.
		{Pattern: "POST " + zenohrest.Root, Role: auth.Viewer, Subtree: true},
	},
	Stream:      function.Stream{For: 5 * time.Minute},
	Concurrency: 250, // an open subscription costs little: one question to the store serves all
	Class:       function.Medium,
	Needs:       []function.Need{function.BusTokens},
}

// Function is the operation with its feed. Applications are known by their own tokens.
type Function struct {
	bus.Tokens
	db   *store.DB
	feed *bus.Feed
}

// New makes the function.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB, feed: bus.NewFeed(env.DB.As(store.Everybody))}
	return f, env.Config(&f.Tokens)
}

// Handle answers a query, or with Accept: text/event-stream a subscription.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	selector, err := zenohrest.SelectorOf(r)
	if err != nil {
		return err
	}
	if err := bus.Permit(auth.From(r.Context()), selector.Expr); err != nil {
		return err
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'") // a value is no page of ours
	theirs := f.db.As(tenant.OnBus(auth.From(r.Context())))
	switch {
	case zenohrest.First(r) == sse.Type && r.Method == http.MethodGet:
		return f.subscribe(w, r, theirs, selector)
	case selector.Raw:
		return raw(w, r, theirs, selector)
	case zenohrest.First(r) == "text/html":
		return list(w, r, theirs, selector, page)
	}
	return list(w, r, theirs, selector, array)
}

// form is how a list is written.
type form struct {
	media               string
	begin, between, end string
	element             func(bus.Value) ([]byte, error)
}

var (
	array = form{"application/json", "[", ",", "]\n", func(v bus.Value) ([]byte, error) {
		return json.Marshal(zenohrest.ElementOf(v))
	}}
	page = form{"text/html; charset=utf-8", "<dl>\n", "", "</dl>\n", func(v bus.Value) ([]byte, error) {
		return fmt.Appendf(nil, "<dt>%s</dt>\n<dd>%s</dd>\n",
			html.EscapeString(string(v.Key)), html.EscapeString(string(zenohrest.ElementOf(v).Value))), nil
	}}
)

// list writes values as they are read. If Postgres fails on the way, the answer ends early: what is no JSON is no answer.
func list(w http.ResponseWriter, r *http.Request, theirs store.Querier, selector zenohrest.Selector, as form) error {
	begun := false
	begin := func() string {
		if begun {
			return as.between
		}
		begun = true
		w.Header().Set("Content-Type", as.media)
		return as.begin
	}
	err := bus.Get(r.Context(), theirs, selector.Expr, func(v bus.Value) error {
		text, err := as.element(v)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, begin()); err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	})
	if err != nil {
		return store.Classify(err)
	}
	if !begun {
		_, _ = io.WriteString(w, begin())
	}
	_, _ = io.WriteString(w, as.end)
	return nil
}

var errFirst = errors.New("one is enough")

func raw(w http.ResponseWriter, r *http.Request, theirs store.Querier, selector zenohrest.Selector) error {
	var first bus.Value
	err := bus.Get(r.Context(), theirs, selector.Expr, func(v bus.Value) error {
		first = v
		return errFirst
	})
	if err != nil && !errors.Is(err, errFirst) {
		return store.Classify(err)
	}
	if first.Key != "" {
		w.Header().Set("Content-Type", zenohrest.Media(first.Encoding))
	}
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(first.Payload)
	return nil
}

// subscribe answers the state and what follows, or what has changed since Last-Event-ID.
func (f *Function) subscribe(w http.ResponseWriter, r *http.Request, theirs store.Querier, selector zenohrest.Selector) error {
	after, err := sse.LastID(r, "")
	if err != nil {
		return err
	}
	s, err := f.feed.As(theirs).Subscribe(r.Context(), selector.Expr, after)
	if err != nil {
		return store.Classify(err)
	}
	defer s.Close()
	out, err := sse.Start(w, sse.Retry)
	if err != nil {
		return nil // the caller has gone
	}
	if s.Anew {
		if err := out.Send(sse.Event{Name: zenohrest.EventAnew, Data: "{}"}); err != nil {
			return nil
		}
	}
	return sse.Ended(r.Context(), s.Follow(r.Context(), sse.Quiet, func(v bus.Value) error {
		data, err := json.Marshal(zenohrest.ElementOf(v))
		if err != nil {
			return err
		}
		return out.Send(sse.Event{ID: strconv.FormatInt(v.Number, 10), Name: zenohrest.Event(v), Data: string(data)})
	}, out.Alive))
}
