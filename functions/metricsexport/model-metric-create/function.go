// Package modelmetriccreate exports a metric whose values a model foresees from telemetry.
package modelmetriccreate

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/metricsexport"
	"github.com/littoral-project/littoral/shared/objects/open"
	"github.com/littoral-project/littoral/shared/telemetry"
)

// Spec declares the function. The first values are made before it answers.
var Spec = function.Spec{
	Routes: []function.Route{{
		Pattern: "POST /metricsexport/create_model_metric", Role: auth.Operator, Aliases: []string{"POST /create_model_metric"},
	}},
	Class: function.Series,
	Needs: []function.Need{function.Telemetry, function.Objects},
}

// Function is the operation with its store, the models and telemetry.
type Function struct{ computer metricsexport.Computer }

type config struct {
	telemetry.Config
	Objects open.Config
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	var c config
	if err := env.Config(&c); err != nil {
		return nil, err
	}
	client, err := telemetry.New(c.Config, env.HTTP)
	if err != nil {
		return nil, err
	}
	objects, err := open.Store(c.Objects, env.HTTP)
	return &Function{metricsexport.Computer{DB: env.DB, Telemetry: client, Models: metricsexport.NewModels(objects)}}, err
}

// Handle answers 200 with a message, as ICOS does, once the first values are stored.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var o metricsexport.ForecastOrder
	if err := function.DecodeJSON(r, &o); err != nil {
		return err
	}
	if err := f.computer.Create(r.Context(), o, auth.From(r.Context()).Subject); err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, map[string]string{"message": o.Name + " is foreseen"})
}
