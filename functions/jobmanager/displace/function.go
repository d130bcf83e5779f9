// Package displace moves components away from drained and lost nodes, and records of which components nobody knows whether
// they run, since their nodes have become silent. It also gives the jobs of a former agent to the
// one that serves its node now, and from time to time wakes the matchmaker for what still waits for a place or was
// overlooked after an update.
package displace

import (
	"context"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/cordon"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes: []string{events.Tick, events.TopologyChanged},
	Emits:    []string{events.ApplicationDisplaced, events.ApplicationWaiting, events.JobReady, events.NodeDrained},
}

// Function is the worker with its settings and store.
type Function struct {
	db       *store.DB
	settings topology.Freshness
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	return f, env.Config(&f.settings)
}

// Work looks for nodes with another agent, and for components on lost nodes, with one transaction per node or
// application. What was handed over or has left is not found again, so doing it twice is harmless.
func (f *Function) Work(ctx context.Context, e cloudevents.Event) error {
	handovers, err := application.Handovers(ctx, f.db)
	if err != nil {
		return err
	}
	for _, h := range handovers {
		if err := f.db.Tx(ctx, h.Do); err != nil {
			return err
		}
	}
	apps, err := application.Lost(ctx, f.db)
	if err != nil {
		return err
	}
	for _, id := range apps {
		err := f.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error { return application.DisplaceLost(ctx, tx, id) })
		if err != nil {
			return err
		}
	}
	unheard, err := application.Unheard(ctx, f.db, f.settings.StaleAfter)
	if err != nil {
		return err
	}
	for _, id := range unheard {
		err := f.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
			return application.RecordSilence(ctx, tx, id, f.settings.StaleAfter)
		})
		if err != nil {
			return err
		}
	}
	if e.Type() != events.Tick {
		return nil // what the topology's news mean to them, the matchmaker finds out by himself
	}
	return f.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := cordon.Remind(ctx, tx); err != nil {
			return err
		}
		return application.Remind(ctx, tx, "it waited for some time")
	})
}
