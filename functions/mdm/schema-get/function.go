// Package schemaget answers a JSON schema.
package schemaget

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /mdm/schemas/{organization}/{entity_type}/{version}", Role: auth.Viewer}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the schema with who registered it.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	ref, err := mdm.PathRef(r.PathValue("organization"), r.PathValue("entity_type"), r.PathValue("version"))
	if err != nil {
		return err
	}
	stored, err := mdm.GetSchema(r.Context(), f.db, ref)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, stored)
}
