// Package render shows what a policy would watch: its final expression, and what that yields now.
package render

import (
	"net/http"
	"time"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/policy/admit"
	"github.com/littoral-project/littoral/shared/policy/preview"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/telemetry"
)

// Spec declares the function.
var Spec = function.Spec{
	// it asks the telemetry store what the caller wrote
	Routes: []function.Route{{
		Pattern: "POST /polman/registry/api/v1/render", Role: auth.Operator,
		Aliases: []string{"POST /registry/api/v1/render"},
	}},
	Class: function.Medium, // it carries the parser of PromQL
	Needs: []function.Need{function.Telemetry},
}

// Function is the operation with its settings and what it asks.
type Function struct {
	db        *store.DB
	telemetry *telemetry.Client
	config    config
}

type config struct {
	telemetry.Config
	admit.Settings
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	if err := env.Config(&f.config); err != nil {
		return nil, err
	}
	var err error
	f.telemetry, err = telemetry.New(f.config.Config, env.HTTP)
	return f, err
}

// Handle answers 200 with the expression also while telemetry is away, and says so then. Nothing is stored.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var p registry.Policy
	if err := function.DecodeJSON(r, &p); err != nil {
		return err
	}
	if p.Name == "" {
		p.Name = "preview"
	}
	spec, err := f.config.Policy(r.Context(), f.db, &p)
	if err != nil {
		return err
	}
	shown, err := preview.Evaluate(r.Context(), f.telemetry, spec, time.Now())
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, shown)
}
