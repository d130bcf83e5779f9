// Package follow publishes to the metadata graph what becomes of applications.
package follow

import (
	"context"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mdm/connect"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes: []string{
		events.ApplicationSubmitted, events.ApplicationUpdated, events.ApplicationPlaced, events.ApplicationDisplaced,
		events.ApplicationStarted, events.ApplicationStopped, events.ApplicationDeleted,
	},
	NoPrewake: true,
}

// Function is the reaction.
type Function struct{}

// New makes the function.
func New(*function.Env) (*Function, error) { return &Function{}, nil }

// React looks at the application as it is now, not as it was at the event.
func (*Function) React(ctx context.Context, tx *store.Tx, e cloudevents.Event) error {
	about, err := events.Data[events.Application](e)
	if err != nil {
		return err
	}
	return connect.Application(ctx, tx, about.ID)
}
