// Package sweep publishes what a crash or an absent Broker left in the outbox, and what the Broker lost: events that a
// consumer should have and has not (shared/docs/delivery.md). It also measures what to watch of the store.
package sweep

import (
	"context"
	"errors"
	"time"

	"github.com/littoral-project/littoral/shared/deadletter"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/observe"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes: []string{events.Tick},
	Class:    function.Batch,
}

// Function is the task with its settings and store.
type Function struct {
	db      *store.DB
	observe *observe.Recorder
	config  config
}

type config struct {
	Age   time.Duration `envconfig:"OUTBOX_AGE"` // store.LeftFor unless set
	Batch int           `envconfig:"OUTBOX_BATCH" default:"500"`
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB, observe: env.Observe, config: config{Age: store.LeftFor}}
	if err := env.Config(&f.config); err != nil {
		return nil, err
	}
	if f.config.Batch < 1 {
		return nil, errors.New("OUTBOX_BATCH must be positive: a batch that is not full is the last")
	}
	return f, nil
}

// recently is twice as long as the time between two ticks, so that a late one misses nothing.
const recently = 10 * time.Minute

// Run removes what all consumers have, and publishes batch after batch of the rest, oldest first, until none is left or
// the Broker refuses.
func (f *Function) Run(ctx context.Context) error {
	if _, err := f.db.Confirm(ctx); err != nil {
		return err
	}
	waiting, lag, err := f.db.Waiting(ctx)
	if err != nil {
		return err
	}
	f.observe.Gauge("littoral.outbox.waiting", "{event}", "Events that the Broker has not accepted, or a consumer not taken", float64(waiting))
	dead, err := deadletter.Waiting(ctx, f.db)
	if err != nil {
		return err
	}
	f.observe.Gauge("littoral.outbox.dead", "{event}", "Dead letters that nobody has sent again", float64(dead))
	f.observe.Gauge("littoral.outbox.lag", "s", "Age of the oldest of them", lag.Seconds())
	taken, err := history.Count(ctx, f.db, job.TakeOver.Event(), recently)
	if err != nil {
		return err
	}
	f.observe.Gauge("littoral.jobs.takenover", "{job}", "Jobs that went to another agent within ten minutes because a lease had ended", float64(taken))
	for {
		n, err := f.db.Sweep(ctx, f.config.Age, f.config.Batch)
		if err != nil || n < f.config.Batch {
			return err
		}
	}
}
