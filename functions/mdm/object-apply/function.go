// Package objectapply publishes to the metadata graph which nodes, pods, services and volume claims a cluster of Kubernetes has.
package objectapply

import (
	"context"
	"slices"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mdm/cluster"
	"github.com/littoral-project/littoral/shared/mdm/connect"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/watched"
)

const all = "kubernetes.io/metadata.name" // which every namespace has

// Spec declares the function.
var Spec = function.Spec{
	Consumes:   []string{events.ObjectAdded, events.ObjectUpdated, events.ObjectDeleted, events.Tick},
	Class:      function.Batch,
	Kubernetes: true,
	Watches: []function.Watch{
		{APIVersion: "v1", Kind: "Node", Plural: "nodes", Namespaces: all},
		{APIVersion: "v1", Kind: "PersistentVolumeClaim", Plural: "persistentvolumeclaims", Namespaces: all},
		{APIVersion: "v1", Kind: "Service", Plural: "services", Namespaces: all},
		{APIVersion: "v1", Kind: "Pod", Plural: "pods", Namespaces: all},
	},
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

// Work looks at the object as it is now, not as it was at the event. Done again, it publishes nothing.
func (f *Function) Work(ctx context.Context, e cloudevents.Event) error {
	if f.cluster == nil {
		return nil
	}
	return watched.Work(ctx, e, f.one, f.all)
}

func (f *Function) to() connect.Kubernetes { return connect.Kubernetes{Cluster: f.cluster.Name} }

func (f *Function) one(ctx context.Context, o watched.Object) error {
	if !slices.Contains(cluster.Kinds, o.Kind) {
		return nil
	}
	seen, err := f.cluster.One(ctx, o.Kind, o.Metadata.Namespace, o.Metadata.Name)
	if err != nil {
		return problem.Wrap(problem.Unavailable, err, "%s %s/%s: %v", o.Kind, o.Metadata.Namespace, o.Metadata.Name, err)
	}
	var gone []connect.Gone
	if kind := cluster.Type(o.Kind); len(seen.Objects) == 0 {
		gone = []connect.Gone{{ID: connect.ObjectID(kind, f.cluster.Name, o.Metadata.Namespace, o.Metadata.Name), Type: kind}}
	}
	return f.to().Publish(ctx, f.db, seen.Version, seen.Objects, gone)
}

// all publishes all there is, a page at a time, and what is gone. The registry of connectors is told how that went.
func (f *Function) all(ctx context.Context) error {
	var err error
	for _, kind := range cluster.Kinds {
		if err = f.every(ctx, kind); err != nil {
			err = problem.Wrap(problem.Unavailable, err, "%s: %v", kind, err)
			break
		}
	}
	if told := f.to().Looked(ctx, f.db, err); err == nil {
		return told
	}
	return err
}

func (f *Function) every(ctx context.Context, kind string) error {
	there := []uuid.UUID{}
	var version int64 // of the first page: what came after it may be on none
	err := f.cluster.Each(ctx, kind, func(page cluster.Page) error {
		for _, o := range page.Objects {
			there = append(there, connect.ObjectID(o.Type, f.cluster.Name, o.Namespace, o.Name))
		}
		if version == 0 {
			version = page.Version
		}
		return f.to().Publish(ctx, f.db, page.Version, page.Objects, nil)
	})
	if err != nil {
		return err
	}
	gone, err := f.to().Published(ctx, f.db, cluster.Type(kind), there)
	if err != nil {
		return err
	}
	return f.to().Publish(ctx, f.db, version, nil, gone)
}
