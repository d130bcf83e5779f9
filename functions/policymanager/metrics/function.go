// Package metrics shows a Prometheus the phases of the policies and the durations of reactions.
package metrics

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	// the names of applications are nobody else's business
	Routes: []function.Route{{Pattern: "GET /polman/metrics", Role: auth.Viewer}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers in the text format of Prometheus. Everything is read from the store, so that it does not matter which
// of many instances is asked, and nothing is lost while all of them sleep.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	text, err := policies.Metrics(r.Context(), f.db)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(text)
	return nil
}
