// Package metrics shows a Prometheus the exported metrics.
package metrics

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/metricsexport"
	"github.com/littoral-project/littoral/shared/otlp"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{Routes: []function.Route{{Pattern: "GET /metricsexport/metrics", Role: auth.Viewer}}, Class: function.Medium}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers in the text format of Prometheus. Everything is read from the store, so that it does not matter which
// of many instances is asked.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	samples, err := metricsexport.Samples(r.Context(), f.db)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(otlp.Text(samples))
	return nil
}
