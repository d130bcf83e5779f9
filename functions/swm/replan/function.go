// Package replan plans applications anew whose channels get no longer what they were promised, and where forecasts are used those whose
// node will be full.
package replan

import (
	"context"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/replan"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes: []string{events.NetworkDegraded, events.TopologyChanged, events.Tick},
	Emits:    []string{events.ApplicationPlaced, events.ApplicationUnplaced, events.JobReady},
	Class:    function.Large, // as all that place
}

// Function is the worker with its store and settings.
type Function struct {
	db       *store.DB
	settings replan.Settings
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	return f, env.Config(&f.settings)
}

// Work looks at all channels and nodes, whatever the event is about: what is out of QoS or will be full is seen from what is stored, and
// what was planned anew lately is left alone. So a repeat does nothing.
func (f *Function) Work(ctx context.Context, _ cloudevents.Event) error {
	return replan.All(ctx, f.db, f.settings)
}
