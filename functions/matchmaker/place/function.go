// Package place finds places for the components of an application that its user submitted, updated or started.
package place

import (
	"context"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/match"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes: []string{events.ApplicationSubmitted, events.ApplicationUpdated, events.ApplicationStarted},
	Emits: []string{
		events.ApplicationPlaced, events.ApplicationUnplaced, events.ApplicationWaiting, events.JobReady,
	},
	PrewakeFor: []string{events.JobReady}, // policies are followed while the orchestrator works
	Class:      function.Large,            // for each call ten thousand nodes, and the problem they make
}

// Function is the reaction with its settings and store.
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

// React places the application that the event is about. Only an update may move a component that has a place; what
// others wait for may then be free, so they are tried again by an event of their own.
func (f *Function) React(ctx context.Context, tx *store.Tx, e cloudevents.Event) error {
	about, err := events.Data[events.Application](e)
	if err != nil {
		return err
	}
	switch e.Type() {
	case events.ApplicationUpdated:
		if err := match.PlaceUpdate(ctx, tx, about.ID, f.config.Settings); err != nil {
			return err
		}
		return application.Remind(ctx, tx, "the update of "+about.Name+" may have made room")
	case events.ApplicationStarted:
		return match.Place(ctx, tx, about.ID, f.config.Settings, false, "it was started")
	}
	return match.Place(ctx, tx, about.ID, f.config.Settings, false, "it was submitted")
}
