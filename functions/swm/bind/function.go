// Package bind binds pods of a cluster, made by somebody else, to the nodes that the plan of their group has for them.
package bind

import (
	"context"
	"errors"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/swm/bind"
	"github.com/littoral-project/littoral/shared/swm/cluster"
)

// Spec declares the function. It sees the pods of namespaces that ask for it by a label, so that not every pod of a cluster wakes it.
var Spec = function.Spec{
	Consumes:    []string{events.ObjectAdded, events.ObjectUpdated, events.ObjectDeleted, events.JobReady, events.Tick},
	Emits:       []string{events.JobFinished, events.JobDegraded, events.ResourceChanged, events.ApplicationDeleted},
	NoPrewake:   true,
	Class:       function.Remote,
	Concurrency: 1, // a second one at the same time would find the same
	Kubernetes:  true,
	Watches:     []function.Watch{{APIVersion: "v1", Kind: "Pod", Plural: "pods", Namespaces: "littoral.dev/bind"}},
}

// Function is the worker.
type Function struct{ binder *bind.Binder }

// New reads the settings and dials nothing.
func New(env *function.Env) (*Function, error) {
	b := &bind.Binder{DB: env.DB, Log: env.Log}
	c, err := cluster.Open(env)
	if c != nil {
		b.Cluster = c
	}
	return &Function{b}, errors.Join(err, env.Config(&b.Settings))
}

// Work looks at all pods that wait, whatever the event is about.
func (f *Function) Work(ctx context.Context, _ cloudevents.Event) error {
	if f.binder.Cluster == nil || f.binder.Settings.Cluster == "" {
		return nil
	}
	return f.binder.Run(ctx)
}
