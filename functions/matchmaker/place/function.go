// Package place finds places for components that have none.
package place

import (
	"context"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/match"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes: []string{
		events.ApplicationSubmitted, events.ApplicationUpdated, events.ApplicationStarted, events.ApplicationDisplaced,
		events.TopologyChanged,
	},
	Emits:   []string{events.ApplicationPlaced, events.ApplicationUnplaced, events.JobReady},
	Timeout: 30 * time.Second,
}

// Function is the operation with its settings and store.
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

// React places the application that the event is about; a changed topology tries again whatever fitted nowhere. Only an
// update may move a component that has a place.
func (f *Function) React(ctx context.Context, tx *store.Tx, e cloudevents.Event) error {
	if e.Type() == events.TopologyChanged {
		waiting, err := match.Unplaced(ctx, tx)
		if err != nil {
			return err
		}
		for _, id := range waiting {
			if err := match.Place(ctx, tx, id, f.config.Settings, false); err != nil {
				return err
			}
		}
		return nil
	}
	about, err := events.Data[events.Application](e)
	if err != nil {
		return problem.Wrap(problem.Malformed, err, "the event cannot be read")
	}
	return match.Place(ctx, tx, about.ID, f.config.Settings, e.Type() == events.ApplicationUpdated)
}
