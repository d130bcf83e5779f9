// Package federationround gives a participant the weights of the present round.
package federationround

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/pdlc/federation"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /pdlc/federations/{name}/round", Role: auth.Controller}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers them with the plan.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	found, err := federation.Get(r.Context(), f.db, r.PathValue("name"))
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, found)
}
