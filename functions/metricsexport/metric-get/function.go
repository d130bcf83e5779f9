// Package metricget shows one exported metric with its values.
package metricget

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/metricsexport"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{Routes: []function.Route{{Pattern: "GET /metricsexport/definitions/{metric_name}", Role: auth.Viewer}}}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the metric; of a forecast also what each value comes from, and how good that was on the last day.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	m, err := metricsexport.Get(r.Context(), f.db, r.PathValue("metric_name"))
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, m)
}
