// Package evacuate moves components away from nodes that an operator drains.
package evacuate

import (
	"context"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/cordon"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/match"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:   []string{events.NodeDrained},
	Emits:      []string{events.ApplicationPlaced, events.ApplicationUnplaced, events.JobReady},
	PrewakeFor: []string{events.JobReady},
	Class:      function.Batch, // for each call ten thousand nodes, and the problem they make
}

// Function is the worker with its settings and store.
type Function struct {
	db     *store.DB
	config config
}

type config struct {
	match.Settings
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	return f, env.Config(&f.config)
}

// Work moves what runs on any drained node, one transaction for each application. What has moved, or has nowhere to go, is
// not found again, so doing it twice is harmless.
func (f *Function) Work(ctx context.Context, _ cloudevents.Event) error {
	apps, err := cordon.Applications(ctx, f.db)
	if err != nil {
		return err
	}
	for _, id := range apps {
		err := f.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error { return match.Evacuate(ctx, tx, id, f.config.Settings) })
		if err != nil {
			return err
		}
	}
	return nil
}
