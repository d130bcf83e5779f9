// Package status writes to the CodecoApps of the cluster how their applications fare.
package status

import (
	"context"
	"errors"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/acm"
	"github.com/littoral-project/littoral/shared/acm/objects"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes: []string{
		events.ApplicationSubmitted, events.ApplicationPlaced, events.ApplicationUnplaced, events.ApplicationUpdated,
		events.ApplicationDeleted, events.Tick,
	},
	NoPrewake:  true,
	Class:      function.Remote, // it may wait for acm.Pause
	Kubernetes: true,
}

// Function is the worker with its store and cluster.
type Function struct {
	db      *store.DB
	objects *objects.Objects // nil where no cluster is set
}

// New reads the settings and dials nothing.
func New(env *function.Env) (*Function, error) {
	o, err := objects.Open(env)
	return &Function{env.DB, o}, err
}

// Work writes the status of the CodecoApp that the event is about, and at a tick that of all, whose readings change
// without an event. What is as it was is not written.
func (f *Function) Work(ctx context.Context, e cloudevents.Event) error {
	if f.objects == nil {
		return nil
	}
	ids, err := f.concerned(ctx, e)
	if err != nil {
		return err
	}
	var failed []error
	for _, id := range ids {
		failed = append(failed, acm.Report(ctx, f.db, id, f.objects))
	}
	return errors.Join(failed...)
}

func (f *Function) concerned(ctx context.Context, e cloudevents.Event) ([]uuid.UUID, error) {
	if e.Type() == events.Tick {
		return acm.WithObjects(ctx, f.db)
	}
	about, err := events.Data[events.Application](e)
	return []uuid.UUID{about.ID}, err
}
