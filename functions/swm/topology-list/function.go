// Package topologylist lists the descriptions of networks.
package topologylist

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/topologies"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /swm/topologies", Role: auth.Viewer}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers all descriptions, by name.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	all, err := topologies.List(r.Context(), f.db)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, all)
}
