// Package sync compares the links in the database with what is in the clusters.
package sync

import (
	"context"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/linking"
	"github.com/littoral-project/littoral/shared/linking/carry"
	"github.com/littoral-project/littoral/shared/linking/serve"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes: []string{events.Tick, events.ObjectAdded, events.ObjectUpdated, events.ObjectDeleted},
	Class:    function.Batch, Kubernetes: true,
	// A change of status wakes it at once, if the cluster of the functions is the hub.
	Watches: []function.Watch{{
		APIVersion: "work.open-cluster-management.io/v1", Kind: "ManifestWork", Plural: "manifestworks",
		Labels: map[string]string{orchestrator.LabelManager: orchestrator.Manager}, Namespaces: "open-cluster-management.io/cluster-name",
	}},
}

// Function is the worker with its store and carrier.
type Function struct {
	db      *store.DB
	carrier *carry.Carrier
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	c, err := serve.Open(env)
	return &Function{env.DB, c}, err
}

// Work looks at all links at a tick, and at one when a watched object of it changes. It does not believe the event about that
// but asks the orchestrator itself.
func (f *Function) Work(ctx context.Context, e cloudevents.Event) error {
	if !f.carrier.Reaches() {
		return nil
	}
	if e.Type() == events.Tick {
		return f.carrier.Sync(ctx)
	}
	label, err := events.ObjectLabel(e, orchestrator.LabelJob)
	if err != nil {
		return err
	}
	id, err := uuid.Parse(label)
	if err != nil {
		return nil // not one of ours
	}
	side, err := linking.ByCopy(ctx, f.db, id)
	if err != nil || side == nil {
		return err
	}
	return f.carrier.Compare(ctx, side)
}
