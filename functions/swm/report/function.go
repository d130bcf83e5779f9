// Package report writes to the cluster what becomes of groups and CodecoApps: AssignmentPlans, Channels, and the status of what was
// handed in.
package report

import (
	"context"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/cluster"
	"github.com/littoral-project/littoral/shared/swm/report"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes: []string{
		events.ApplicationSubmitted, events.ApplicationPlaced, events.ApplicationUnplaced, events.ApplicationUpdated, events.Tick,
	},
	NoPrewake:  true,
	Class:      function.Remote,
	Kubernetes: true,
}

// Function is the worker with its store and cluster.
type Function struct {
	db      *store.DB
	cluster *cluster.Cluster // nil where none is set
}

// New reads the settings and dials nothing.
func New(env *function.Env) (*Function, error) {
	c, err := cluster.Open(env)
	return &Function{env.DB, c}, err
}

// Work writes what the event is about, and at a tick everything, since links change without an event about an application. What is as
// it was changes nothing in the cluster.
func (f *Function) Work(ctx context.Context, e cloudevents.Event) error {
	if f.cluster == nil {
		return nil
	}
	if e.Type() == events.Tick {
		return report.All(ctx, f.db, f.cluster)
	}
	about, err := events.Data[events.Application](e)
	if err != nil {
		return err
	}
	return report.One(ctx, f.db, f.cluster, about.ID)
}
