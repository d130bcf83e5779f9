// Package backtest returns when a policy would have been violated in the past.
package backtest

import (
	"net/http"
	"time"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/policy/admit"
	"github.com/littoral-project/littoral/shared/policy/preview"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/telemetry"
)

// Spec declares the function. A day at every scrape takes the telemetry store a while.
var Spec = function.Spec{
	// it asks the telemetry store what the caller wrote
	Routes: []function.Route{{
		Pattern: "POST /polman/registry/api/v1/backtest", Role: auth.Operator,
		Aliases: []string{"POST /registry/api/v1/backtest"},
	}},
	Class: function.Series,
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

// Handle answers 200 with the episodes in order. Nothing is stored.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var q preview.Question
	if err := function.DecodeJSON(r, &q); err != nil {
		return err
	}
	if err := q.Check(time.Now()); err != nil {
		return err
	}
	spec, err := f.config.Policy(r.Context(), f.db, &q.Policy)
	if err != nil {
		return err
	}
	past, err := preview.Backtest(r.Context(), f.telemetry, q, spec)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, past)
}
