// Package historylist lists what happened, with causes.
package historylist

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/listing"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /jobmanager/history", Role: auth.Viewer}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers entries, oldest first: those after the id ?after=, or the newest ones, with ?before= the newest of
// those before that id.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	want, err := listing.History(r)
	if err != nil {
		return err
	}
	entries, cut, err := history.Read(r.Context(), f.db, &want)
	if err != nil {
		return err
	}
	return listing.WriteHistory(w, r, &want, entries, cut)
}
