// Package follow keeps the policies of an application as its descriptor asks for them.
package follow

import (
	"context"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/policy/admit"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes: []string{
		events.ApplicationPlaced, events.ApplicationStarted, events.ApplicationStopped, events.ApplicationUpdated,
		events.ApplicationDeleted,
	},
	Emits:     []string{events.PolicyChanged},
	NoPrewake: true,
	Class:     function.Medium, // it carries the parser of PromQL
}

// Function is the reaction with its settings.
type Function struct{ config admit.Settings }

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{}
	return f, env.Config(&f.config)
}

// React looks at the application as it is now, not as it was at the event: its policies are created with it, watched
// while it is meant to run, and deleted with it.
func (f *Function) React(ctx context.Context, tx *store.Tx, e cloudevents.Event) error {
	about, err := events.Data[events.Application](e)
	if err != nil {
		return err
	}
	return policies.Follow(ctx, tx, about.ID, f.config.Descriptor)
}
