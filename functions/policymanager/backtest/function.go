// Package backtest tells when a policy would have been violated in the past.
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
	Routes: []string{
		"POST /polman/registry/api/v1/backtest",
		"POST /registry/api/v1/backtest",
	},
	Role:    auth.Operator, // it asks the telemetry store what the caller wrote
	Memory:  "256Mi",
	Timeout: 60 * time.Second,
}

// Function is the operation with what it asks.
type Function struct {
	db        *store.DB
	telemetry *telemetry.Client
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	var c telemetry.Config
	if err := env.Config(&c); err != nil {
		return nil, err
	}
	client, err := telemetry.New(c, env.HTTP)
	return &Function{db: env.DB, telemetry: client}, err
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
	spec, err := admit.Policy(r.Context(), f.db, &q.Policy)
	if err != nil {
		return err
	}
	past, err := preview.Backtest(r.Context(), f.telemetry, q, spec)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, past)
}
