// Package metrics shows a Prometheus what CODECO's components tell each other: the metrics of tables 13 to 16 of its deliverable.
package metrics

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/acm/export"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/netma/view"
	"github.com/littoral-project/littoral/shared/otlp"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /acm/metrics", Role: auth.Viewer}},
	Class:  function.Medium,
}

// Function is the operation with its store.
type Function struct {
	db    *store.DB
	views view.Cache
}

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers in the text format of Prometheus. Everything is read from the store, so that it does not matter which of many
// instances is asked.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	samples, err := export.Samples(r.Context(), f.db, &f.views)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(otlp.Text(samples))
	return nil
}
