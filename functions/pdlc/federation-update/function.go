// Package federationupdate takes in how a participant wants the weights of a round changed.
package federationupdate

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
	Routes: []function.Route{{Pattern: "POST /pdlc/federations/{name}/updates", Role: auth.Controller}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers 204; 409 to whoever is late. A participant is the subject of its token, and counts once.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var in federation.Sent
	if err := function.DecodeJSON(r, &in); err != nil {
		return err
	}
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		return federation.Take(ctx, tx, r.PathValue("name"), auth.From(ctx).Subject, in)
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
