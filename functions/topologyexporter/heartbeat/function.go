// Package heartbeat repeats what was published and has not changed for long, and lets go of what has ended.
package heartbeat

import (
	"context"
	"time"

	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/exporter"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{Consumes: []string{events.Tick}, Concurrency: 1}

// Function is the task with its settings.
type Function struct {
	db     *store.DB
	config config
}

type config struct {
	Every time.Duration `envconfig:"BUS_REPEAT" default:"1h"`   // a value that has not changed is published again
	Kept  time.Duration `envconfig:"BUS_DELETED" default:"24h"` // how long the last value of what has ended stays, and then its tombstone
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	return f, env.Config(&f.config)
}

// Run repeats and deletes.
func (f *Function) Run(ctx context.Context) error {
	if err := exporter.Repeat(ctx, f.db, f.config.Every, f.config.Kept); err != nil {
		return err
	}
	return bus.Forget(ctx, f.db, f.config.Kept)
}
