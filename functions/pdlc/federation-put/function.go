// Package federationput begins to train a model together with other clusters.
package federationput

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/pdlc/federation"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "PUT /pdlc/federations/{name}", Role: auth.Operator}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the federation in its first round; one that was there begins anew.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var p federation.Plan
	if err := function.DecodeJSON(r, &p); err != nil {
		return err
	}
	var made federation.Federation
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		made, err = federation.Save(ctx, tx, r.PathValue("name"), p, auth.From(ctx).Subject)
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, made)
}
