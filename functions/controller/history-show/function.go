// Package historyshow shows another controller what happened here to an application that one of the two has handed over to the other.
package historyshow

import (
	"math"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/handover/records"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/peer"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /controller/handovers/{application}/history", Role: auth.Controller}},
	Needs:  []function.Need{function.ClientCredentials, function.Peers},
}

// Function is the operation with its store.
type Function struct {
	db    *store.DB
	peers *peer.Client
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	peers, err := peer.Open(env.Config, env.HTTP)
	return &Function{env.DB, peers}, err
}

// Handle answers entries, oldest first: those after the id ?after=, or the newest ones. It answers 403 to a controller that this one
// does not work with, and 404 of an application that it has nothing to do with.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "application")
	if err != nil {
		return err
	}
	q := function.NewQuery(r, records.Asker, "after", "limit")
	from, after, limit := records.By(q), q.Int("after", -1, 0, math.MaxInt64), int(q.Int("limit", records.UsualEntries, 1, records.MostEntries))
	if err := q.Err(); err != nil {
		return err
	}
	if err := records.May(r.Context(), f.db, f.peers, from, auth.From(r.Context()).Subject, id); err != nil {
		return err
	}
	var entries []history.Entry
	if after >= 0 {
		entries, err = history.After(r.Context(), f.db, &id, after, limit)
	} else {
		entries, _, err = history.Before(r.Context(), f.db, &id, math.MaxInt64, limit)
	}
	if err != nil {
		return store.Classify(err)
	}
	if entries == nil {
		entries = []history.Entry{}
	}
	return function.WriteJSON(w, http.StatusOK, entries)
}
