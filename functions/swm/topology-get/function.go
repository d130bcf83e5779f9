// Package topologyget answers the description of a network.
package topologyget

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/topologies"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /swm/topologies/{name}", Role: auth.Viewer}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the description.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	stored, err := topologies.Get(r.Context(), f.db, r.PathValue("name"))
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, stored)
}
