// Package attributelist lists the attributes that entities of a type have.
package attributelist

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /mdm/graph/entity/attributes/{entity_type}", Role: auth.Viewer, Aliases: []string{"GET /graph/entity/attributes/{entity_type}"}}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers each attribute with the types of its values.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	kind, err := mdm.PathName(r.PathValue("entity_type"))
	if err != nil {
		return err
	}
	attributes, err := mdm.Attributes(r.Context(), f.db, kind)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, attributes)
}
