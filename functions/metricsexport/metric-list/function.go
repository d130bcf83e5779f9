// Package metriclist lists the exported metrics, with how those of models fare.
package metriclist

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/metricsexport"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{Routes: []function.Route{{Pattern: "GET /metricsexport/definitions", Role: auth.Viewer}}}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers all of them without their values; there are at most a thousand.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	list, err := metricsexport.List(r.Context(), f.db)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, list)
}
