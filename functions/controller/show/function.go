// Package show shows another controller what was recorded here of an application that one of the two has handed over to the other.
package show

import (
	"context"
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/handover"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/logs"
	"github.com/littoral-project/littoral/shared/logs/moves"
	"github.com/littoral-project/littoral/shared/logs/open"
	"github.com/littoral-project/littoral/shared/peer"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /controller/handovers/{application}/{records}", Role: auth.Controller}},
	Class:  function.Series,
	Needs:  []function.Need{function.Logs, function.ClientCredentials, function.Peers},
}

// Function is the operation with its stores.
type Function struct {
	db    *store.DB
	logs  logs.Store
	peers *peer.Client
}

// New reads the settings, and opens the store of logs that they choose.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	var c peer.Config
	var l open.Config
	if err := errors.Join(env.Config(&c), env.Config(&l)); err != nil {
		return nil, err
	}
	var err, err2 error
	f.peers, err = peer.New(c, env.HTTP)
	f.logs, err2 = open.Store(l, env.HTTP)
	return f, errors.Join(err, err2)
}

const usual, usually, most = time.Hour, 200, 1000

// Handle answers the history or the logs of the application. It answers 403 to a controller that this one does not work with, and
// 404 of an application that it has nothing to do with.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "application")
	if err != nil {
		return err
	}
	q := function.NewQuery(r, "controller", "after", "component", "since", "until", "tail", "text")
	after, tail := q.Int("after", -1, 0, math.MaxInt64), int(q.Int("tail", usually, 1, most))
	ask := logs.Query{
		Application: id.String(), Component: q.Text("component"), Text: q.Text("text"), Newest: true, Limit: tail, From: time.Now().Add(-usual),
	}
	if at, given := q.Instant("since", time.Now()); given {
		ask.From = at
	}
	ask.To, _ = q.Instant("until", time.Now())
	if q.Text("controller") == "" {
		q.Fault("controller", "is missing: the name of the controller that asks")
	}
	if err := q.Err(); err != nil {
		return err
	}
	from, err := f.peers.Caller(q.Text("controller"), auth.From(r.Context()).Subject)
	if err != nil {
		return err
	}
	h, err := handover.Get(r.Context(), f.db, id)
	if err != nil {
		return err
	}
	if h.Peer != from.Name {
		return problem.New(problem.NotFound, "controller %s has nothing to do with application %s", from.Name, id)
	}
	switch r.PathValue("records") {
	case "history":
		entries, err := f.history(r.Context(), id, after, tail)
		if err != nil {
			return err
		}
		return function.WriteJSON(w, http.StatusOK, entries)
	case "logs":
		answer, err := moves.Read(r.Context(), f.db, f.logs, id, ask)
		if err != nil {
			return err
		}
		return function.WriteJSON(w, http.StatusOK, answer)
	}
	return problem.New(problem.NotFound, "of an application there are history and logs, not %q", problem.Brief(r.PathValue("records"), 50))
}

func (f *Function) history(ctx context.Context, id uuid.UUID, after int64, limit int) (entries []history.Entry, err error) {
	if after >= 0 {
		entries, err = history.After(ctx, f.db, &id, after, limit)
	} else {
		entries, _, err = history.Before(ctx, f.db, &id, math.MaxInt64, limit)
	}
	if entries == nil {
		entries = []history.Entry{}
	}
	return entries, store.Classify(err)
}
