// Package freshness publishes to the metadata graph how fresh telemetry is.
package freshness

import (
	"context"
	"errors"
	"time"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mdm/fresh"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/telemetry"
)

// Spec declares the function.
var Spec = function.Spec{Consumes: []string{events.Tick}, Class: function.Batch, Concurrency: 1, Needs: []function.Need{function.Telemetry}}

type config struct {
	// Query has the times of newest samples, in seconds.
	Query string `envconfig:"MDM_FRESHNESS_QUERY"`
}

// Function is the task with its store and telemetry.
type Function struct {
	db     *store.DB
	client *telemetry.Client
	query  string
}

// New reads the settings and dials nothing.
func New(env *function.Env) (*Function, error) {
	var c config
	var t telemetry.Config
	if err := errors.Join(env.Config(&c), env.Config(&t)); err != nil {
		return nil, err
	}
	if c.Query == "" {
		c.Query = fresh.Query
	}
	client, err := telemetry.New(t, env.HTTP)
	return &Function{env.DB, client, c.Query}, err
}

// Run publishes what has changed since it ran last.
func (f *Function) Run(ctx context.Context) error {
	return fresh.Publish(ctx, f.db, f.client, f.query, time.Now())
}
