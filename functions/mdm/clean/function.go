// Package clean deletes the metadata graph.
package clean

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "DELETE /mdm/clean", Role: auth.Admin}},
	Class:  function.Batch,
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Confirmation is the header without which nothing is deleted, and its value.
const (
	Confirmation = "X-Confirm"
	confirmed    = "clean"
)

// Handle answers how much was deleted.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	if r.Header.Get(Confirmation) != confirmed {
		return problem.New(problem.PreconditionFailed, "this deletes all entities and relations: confirm it by the header %s: %s", Confirmation, confirmed)
	}
	var cleaned mdm.Cleaned
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		cleaned, err = mdm.Clean(ctx, tx)
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, cleaned)
}
