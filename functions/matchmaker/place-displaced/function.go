// Package placedisplaced finds new places, in one problem, for all components that lost theirs.
package placedisplaced

import (
	"context"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/match"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:   []string{events.ApplicationDisplaced},
	Emits:      []string{events.ApplicationPlaced, events.ApplicationUnplaced, events.JobReady},
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

// React places the application that was displaced, together with all others that were: after a cluster is lost they
// compete for what is left. The events of those then find nothing to do.
func (f *Function) React(ctx context.Context, tx *store.Tx, e cloudevents.Event) error {
	about, err := events.Data[events.Application](e)
	if err != nil {
		return err
	}
	return match.PlaceDisplaced(ctx, tx, about.ID, f.config.Settings, about.Reason)
}
