// Package publish tells the components of applications where they run, whenever that has changed.
package publish

import (
	"context"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/exporter"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes: []string{
		events.ApplicationPlaced, events.ApplicationStarted, events.ApplicationStopped, events.ApplicationDeleted,
		events.JobFinished, events.ResourceChanged, events.TopologyChanged, events.PodsChanged,
	},
	Emits:     []string{events.TopologyPublished},
	NoPrewake: true,
}

// Function is the reaction.
type Function struct{}

// New makes the function.
func New(*function.Env) (*Function, error) { return &Function{}, nil }

// React looks at the applications that the event is about as they are now, not as they were at the event.
func (*Function) React(ctx context.Context, tx *store.Tx, e cloudevents.Event) error {
	switch e.Type() {
	case events.TopologyChanged, events.PodsChanged:
		news, err := events.Data[events.Topology](e)
		if err != nil {
			return err
		}
		instances, err := exporter.Affected(ctx, tx, news.Changes)
		if err != nil {
			return err
		}
		return exporter.Update(ctx, tx, instances...)
	case events.JobFinished, events.ResourceChanged:
		about, err := events.Data[events.Job](e)
		if err != nil {
			return err
		}
		return exporter.Update(ctx, tx, about.ApplicationID.String())
	}
	about, err := events.Data[events.Application](e)
	if err != nil {
		return err
	}
	return exporter.Update(ctx, tx, about.ID.String())
}
