// Package metricspredict foresees the next values of series for the ICOS shell.
package metricspredict

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icosshell"
	"github.com/littoral-project/littoral/shared/metricsexport"
	"github.com/littoral-project/littoral/shared/objects/open"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "POST /api/v3/metrics/predict", Role: auth.Operator}},
	Class:  function.Medium,
	Needs:  []function.Need{function.SignIn, function.Objects}, // refresh tokens are sent as api_key
}

// Function is the operation with its store, and where models are kept.
type Function struct {
	icosshell.Callers

	db     *store.DB
	models metricsexport.Models
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	callers, err := icosshell.NewCallers(env)
	if err != nil {
		return nil, err
	}
	var c open.Config
	if err := env.Config(&c); err != nil {
		return nil, err
	}
	objects, err := open.Store(c, env.HTTP)
	return &Function{callers, env.DB, metricsexport.NewModels(objects)}, err
}

// Handle answers [[value], ...] where the series is an array, and an object where it is one.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var q metricsexport.Question
	if err := function.DecodeJSON(r, &q); err != nil {
		return err
	}
	answer, err := f.models.Predict(r.Context(), f.db, q)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, answer)
}
