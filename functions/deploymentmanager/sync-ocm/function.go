// Package syncocm compares the jobs in the database with what Open Cluster Management reports.
package syncocm

import (
	"context"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/carry"
	"github.com/littoral-project/littoral/shared/orchestrator/ocm"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:   []string{events.Tick, events.ObjectAdded, events.ObjectUpdated, events.ObjectDeleted},
	Emits:      carry.Emits,
	Timeout:    120 * time.Second,
	Memory:     "128Mi", // pages of all that is there are in memory several times
	Kubernetes: true,
	// A change of status wakes it at once, if the cluster of the functions is the hub. Each managed cluster has a namespace
	// with this label.
	Watches: []function.Watch{{
		APIVersion: "work.open-cluster-management.io/v1", Kind: "ManifestWork", Plural: "manifestworks",
		Labels: map[string]string{"app.kubernetes.io/managed-by": "littoral"}, Namespaces: "open-cluster-management.io/cluster-name",
	}},
}

// Function is the worker with its books.
type Function struct{ carrier *carry.Carrier }

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	carrier, err := carry.Open(env, "ocm", ocm.Open)
	return &Function{carrier}, err
}

// Work looks at every job at a tick, and at one job when the hub's API reports a change of its ManifestWork. It does
// not believe that report but asks the hub itself.
func (f *Function) Work(ctx context.Context, e cloudevents.Event) error {
	if e.Type() == events.Tick {
		return f.carrier.Sync(ctx)
	}
	changed, err := events.Data[struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}](e)
	if err != nil {
		return err
	}
	subject, err := uuid.Parse(changed.Metadata.Labels[orchestrator.LabelJob])
	if err != nil {
		return nil // not one of ours
	}
	return f.carrier.SyncOne(ctx, subject)
}
