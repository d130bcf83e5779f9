// Package trainingget shows how a training fares, and what came of it.
package trainingget

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/metricsexport"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{Routes: []function.Route{{Pattern: "GET /metricsexport/trainings/{training_id}", Role: auth.Viewer}}}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the training; when it has finished also as ICOS' train does.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	return function.Show(w, r, f.db, "training_id", metricsexport.GetTraining)
}
