// Package profiledelete deletes a profile that was added, with its scores.
package profiledelete

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/pdlc/awareness"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{Routes: []function.Route{{Pattern: "DELETE /pdlc/profiles/{name}", Role: auth.Operator}}}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers 204. One that is always there comes back if it was replaced, and is else not to be deleted (404).
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		return awareness.DeleteProfile(ctx, tx, r.PathValue("name"))
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
