// Package sweep publishes what a crash or an absent Broker left in the outbox.
package sweep

import (
	"context"
	"time"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes: []string{events.Tick},
	Timeout:  60 * time.Second,
}

// Function is the operation with its settings and store.
type Function struct {
	db     *store.DB
	config config
}

type config struct {
	Age   time.Duration `envconfig:"OUTBOX_AGE" default:"10s"` // younger events are still being published by who made them
	Batch int           `envconfig:"OUTBOX_BATCH" default:"500"`
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	return f, env.Config(&f.config)
}

// Run publishes batch after batch, oldest first, until none is left or the Broker refuses.
func (f *Function) Run(ctx context.Context) error {
	for {
		n, err := f.db.Sweep(ctx, f.config.Age, f.config.Batch)
		if err != nil || n < f.config.Batch {
			return err
		}
	}
}
