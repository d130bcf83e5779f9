// Package stream tells what changes in the metadata graph, as it changes.
package stream

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/sse"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes:      []function.Route{{Pattern: "GET /mdm/events/sse", Role: auth.Viewer, Aliases: []string{"GET /events/sse"}}},
	Stream:      function.Stream{For: 5 * time.Minute},
	Concurrency: 250, // an open stream costs little: one question to the store serves all
	Class:       function.Medium,
}

// Function is the operation with its feed.
type Function struct{ feed *bus.Feed }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{bus.NewFeed(env.DB)}, nil }

// Handle answers events as server-sent events: those to come, or those after the header Last-Event-ID, of which the last about
// each thing is known. After 0, that is the graph as it is.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	wish, err := wishOf(r)
	if err != nil {
		return err
	}
	after, err := sse.LastID(r, "after")
	if err != nil {
		return err
	}
	if after == nil {
		newest, err := f.feed.Newest(r.Context())
		if err != nil {
			return store.Classify(err)
		}
		after = &newest
	}
	if *after == 0 {
		after = nil // the state, without what is gone
	}
	s, err := f.feed.Subscribe(r.Context(), mdm.All, after)
	if err != nil {
		return store.Classify(err)
	}
	defer s.Close()
	out, err := sse.Start(w, sse.Retry)
	if err != nil {
		return nil // the caller has gone
	}
	first := sse.Event{Name: "opened", Data: "{}"}
	if after != nil {
		first.ID = strconv.FormatInt(*after, 10)
	}
	if s.Anew {
		first = sse.Event{Name: "anew", Data: "{}"}
	}
	if err := out.Send(first); err != nil {
		return nil
	}
	return sse.Ended(r.Context(), s.Follow(r.Context(), sse.Quiet, func(v bus.Value) error {
		said, wanted := wish.Read(v)
		if !wanted {
			return nil
		}
		data, err := json.Marshal(said)
		if err != nil {
			return err
		}
		return out.Send(sse.Event{ID: strconv.FormatInt(v.Number, 10), Name: said.Type, Data: string(data)})
	}, out.Alive))
}

// wishOf reads the filters.
func wishOf(r *http.Request) (mdm.Wish, error) {
	q := function.NewQuery(r, "after", "kind", "type", "event_type", "connector", "connector_type", "edf_id")
	wish := mdm.Wish{
		Kind:          q.OneOf("kind", "entity", "relation"),
		EventType:     q.OneOf("event_type", mdm.Upsert, mdm.Delete),
		Connector:     q.ID("connector"),
		ConnectorType: q.Text("connector_type"),
		About:         q.ID("edf_id"),
	}
	if types := q.Text("type"); types != "" {
		wish.Types = strings.Split(types, ",")
	}
	return wish, q.Err()
}
