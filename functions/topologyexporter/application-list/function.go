// Package applicationlist lists the applications whose components are told where they run.
package applicationlist

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/exporter"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /applications", Role: auth.Viewer}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the applications by instance.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	list, err := exporter.List(r.Context(), f.db)
	if err != nil {
		return store.Classify(err)
	}
	return function.WriteJSON(w, http.StatusOK, list)
}
