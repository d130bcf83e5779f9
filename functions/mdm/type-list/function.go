// Package typelist lists the types of entities.
package typelist

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /mdm/graph/entity/type", Role: auth.Viewer, Aliases: []string{"GET /graph/entity/type"}}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the names of the types that there are entities of.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	types, err := mdm.Types(r.Context(), f.db)
	if err != nil {
		return err
	}
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.Name
	}
	return function.WriteJSON(w, http.StatusOK, names)
}
