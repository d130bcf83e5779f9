// Package pipelinelist lists the pipelines that train models again and again.
package pipelinelist

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/pdlc/pipeline"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /pdlc/pipelines", Role: auth.Viewer}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers each with the version in use and why it is.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	list, err := pipeline.List(r.Context(), f.db)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, list)
}
