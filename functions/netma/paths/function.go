// Package paths lists the ways between two nodes that have nothing in common.
package paths

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/netma/serve"
	"github.com/littoral-project/littoral/shared/netma/view"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /all/{a}/{b}", Role: auth.Viewer}},
	Class:  function.Large,
}

// Function is the operation with its store, and the network as it was read last.
type Function struct {
	db   *store.DB
	view view.Cache
}

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers the ways, the fastest first. Nodes have the names of the taxonomy or of a description.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	v, err := f.view.Get(r.Context(), f.db)
	if err != nil {
		return err
	}
	a, b, err := serve.Ends(r, v)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, map[string]any{"source": a, "target": b, "paths": append([]view.Path{}, v.Disjoint(a, b)...)})
}
