// Package link makes, renews and removes the links of an application when its components have found, changed or left their places.
package link

import (
	"context"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/linking/carry"
	"github.com/littoral-project/littoral/shared/linking/serve"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes: []string{
		events.ApplicationPlaced, events.ApplicationUpdated, events.ApplicationStopped, events.ApplicationDisplaced,
		events.ApplicationDeleted,
	},
	NoPrewake: true, // most installations have no links
	Class:     function.Remote, Kubernetes: true,
}

// Function is the worker with its carrier.
type Function struct{ carrier *carry.Carrier }

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	c, err := serve.Open(env)
	return &Function{c}, err
}

// Work looks at the application as it is now, not as it was at the event. Where nothing is linked it does nothing: what was
// linked before that was set is removed by the synchronisation.
func (f *Function) Work(ctx context.Context, e cloudevents.Event) error {
	if !f.carrier.Links.On() {
		return nil
	}
	about, err := events.Data[events.Application](e)
	if err != nil {
		return err
	}
	return f.carrier.Application(ctx, about.ID)
}
