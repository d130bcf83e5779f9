// Package stream tells what happens, as it happens.
package stream

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/auth"
	shared "github.com/littoral-project/littoral/shared/feed"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/history/feed"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/sse"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:      []function.Route{{Pattern: "GET /events/stream", Role: auth.Viewer}},
	Stream:      function.Stream{For: 5 * time.Minute},
	Concurrency: 250, // an open stream costs little: one of them asks for all
}

// Function is the operation with its feed.
type Function struct{ feed *shared.Feed[history.Entry] }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{feed.New(env.DB)}, nil }

// Handle answers history as server-sent events: those after ?after=, or the header Last-Event-ID, else those to come. An
// event's id is that of the entry, its name the event of the entry, its data the entry. "opened" comes first, with the id
// after which the stream begins. ?app= leaves out other applications.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	after, err := sse.LastID(r, "after")
	if err != nil {
		return err
	}
	var app *uuid.UUID
	if text := r.URL.Query().Get("app"); text != "" {
		id, err := uuid.Parse(text)
		if err != nil {
			return problem.New(problem.Malformed, "app must be the id of an application")
		}
		app = &id
	}
	reader, err := f.feed.Open(r.Context(), after)
	if err != nil {
		return store.Classify(err)
	}
	defer reader.Close()
	out, err := sse.Start(w, sse.Retry)
	if err != nil {
		return nil // the caller has gone
	}
	if err := out.Send(sse.Event{ID: strconv.FormatInt(reader.After, 10), Name: "opened", Data: "{}"}); err != nil {
		return nil
	}
	return reader.Follow(r.Context(), feed.Wanted(app), sse.Quiet, func(e history.Entry) error {
		data, err := json.Marshal(e)
		if err != nil {
			return err
		}
		return out.Send(sse.Event{ID: strconv.FormatInt(e.ID, 10), Name: e.Event, Data: string(data)})
	}, out.Alive)
}
