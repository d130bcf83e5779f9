// Package profileput adds a profile that nodes are scored by, or replaces one.
package profileput

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/pdlc/awareness"
	"github.com/littoral-project/littoral/shared/pdlc/profile"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{Routes: []function.Route{{Pattern: "PUT /pdlc/profiles/{name}", Role: auth.Operator}}}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the profile. Its scores are there after the next observation.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var p profile.Profile
	if err := function.DecodeJSON(r, &p); err != nil {
		return err
	}
	p.Name, p.Builtin = r.PathValue("name"), false
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		return awareness.SaveProfile(ctx, tx, p, auth.From(ctx).Subject)
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, p)
}
