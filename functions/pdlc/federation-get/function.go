// Package federationget shows a model that clusters train together.
package federationget

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/pdlc/federation"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /pdlc/federations/{name}", Role: auth.Viewer}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the weights of the present round, and whose updates counted in the last one.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	found, err := federation.Get(r.Context(), f.db, r.PathValue("name"))
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, found)
}
