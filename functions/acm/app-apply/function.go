// Package appapply carries over what is done with kubectl to the CodecoApps of the cluster.
package appapply

import (
	"context"
	"errors"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/acm"
	"github.com/littoral-project/littoral/shared/acm/intake"
	"github.com/littoral-project/littoral/shared/acm/objects"
	"github.com/littoral-project/littoral/shared/codecoapp"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/watched"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes: []string{events.ObjectAdded, events.ObjectUpdated, events.ObjectDeleted, events.Tick},
	Emits: []string{
		events.ApplicationSubmitted, events.ApplicationFirst, events.ApplicationUpdated, events.ApplicationStopped,
		events.ApplicationDeleted, events.JobReady,
	},
	Kubernetes: true,
	Watches: []function.Watch{{
		APIVersion: codecoapp.Group + "/" + codecoapp.Version, Kind: codecoapp.Kind, Plural: "codecoapps",
		Namespaces: "kubernetes.io/metadata.name", // which every namespace has
	}},
}

// Function is the worker with its store, settings and cluster.
type Function struct {
	db      *store.DB
	intake  intake.Intake
	objects *objects.Objects // nil where no cluster is set
}

// New reads the settings and dials nothing.
func New(env *function.Env) (*Function, error) {
	in, failed := intake.New(env)
	o, err := objects.Open(env)
	return &Function{env.DB, in, o}, errors.Join(failed, err)
}

// Work looks at the object as it is now, not as it was at the event. Done again, it finds nothing to do.
func (f *Function) Work(ctx context.Context, e cloudevents.Event) error {
	if f.objects == nil {
		return nil
	}
	return watched.Work(ctx, e, func(ctx context.Context, o watched.Object) error {
		return f.carry(ctx, acm.Key{Namespace: o.Metadata.Namespace, Name: o.Metadata.Name})
	}, f.all)
}

// all carries over every object that there is, and removes what ran for those that are gone.
func (f *Function) all(ctx context.Context) error {
	there, err := f.objects.Keys(ctx)
	if err != nil {
		return problem.Wrap(problem.Unavailable, err, "%v", err)
	}
	known, err := acm.Carried(ctx, f.db)
	if err != nil {
		return err
	}
	return watched.Each(ctx, there, known, f.carry)
}

// carry does with an object's application what was done with the object.
func (f *Function) carry(ctx context.Context, key acm.Key) error {
	object, err := f.objects.Get(ctx, key)
	switch {
	case err != nil:
		return problem.Wrap(problem.Unavailable, err, "CodecoApp %s: %v", key, err)
	case object == nil || object.Deleting:
		return f.remove(ctx, key)
	}
	if err := f.objects.Hold(ctx, object); err != nil {
		return problem.Wrap(problem.Unavailable, err, "CodecoApp %s: %v", key, err)
	}
	document, err := f.intake.Read(object.Text)
	if err == nil {
		document.Key, document.UID = key, object.UID
		settings := f.intake.Settings(ctx)
		settings.Caller = "codeco/" + key.Namespace
		err = f.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
			_, err := acm.Apply(ctx, tx, document, settings)
			return err
		})
	}
	var refused *problem.Error
	if errors.As(err, &refused) && refused.Kind != problem.Unavailable { // a repeat would not help, and its user is to know
		return f.objects.SetStatus(ctx, key, acm.Status{Status: acm.Error, ErrorMsg: refused.Error()})
	}
	return err
}

// remove removes what ran for an object that is gone or is to go; the object goes when nothing is left.
func (f *Function) remove(ctx context.Context, key acm.Key) error {
	gone := false
	err := f.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		gone, err = acm.DeleteObject(ctx, tx, key)
		return err
	})
	if err != nil || !gone {
		return err
	}
	return f.objects.Release(ctx, key)
}
