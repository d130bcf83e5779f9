// Package objectapply carries over what is done with kubectl to the objects of SWM in the cluster.
package objectapply

import (
	"context"
	"errors"
	"reflect"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/cluster"
	"github.com/littoral-project/littoral/shared/swm/groups"
	"github.com/littoral-project/littoral/shared/swm/ipam"
	"github.com/littoral-project/littoral/shared/swm/serve"
	"github.com/littoral-project/littoral/shared/swm/topologies"
	"github.com/littoral-project/littoral/shared/watched"
)

const (
	version = groups.Group + "/" + groups.Version
	all     = "kubernetes.io/metadata.name" // which every namespace has
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes: []string{events.ObjectAdded, events.ObjectUpdated, events.ObjectDeleted, events.Tick},
	Emits: []string{
		events.ApplicationSubmitted, events.ApplicationFirst, events.ApplicationUpdated, events.ApplicationStopped,
		events.ApplicationDeleted, events.JobReady, events.TopologyChanged,
	},
	Kubernetes: true,
	Watches: []function.Watch{
		{APIVersion: version, Kind: "ApplicationGroup", Plural: "applicationgroups", Namespaces: all},
		{APIVersion: version, Kind: "Application", Plural: "applications", Namespaces: all},
		{APIVersion: version, Kind: "NetworkTopology", Plural: "networktopologies", Namespaces: all},
		{APIVersion: version, Kind: "NetworkLink", Plural: "networklinks", Namespaces: all},
		{APIVersion: version, Kind: "NetworkPath", Plural: "networkpaths", Namespaces: all},
		{APIVersion: version, Kind: "NetworkEndpoint", Plural: "networkendpoints", Namespaces: all},
		{APIVersion: version, Kind: "Ipam", Plural: "ipams", Namespaces: all},
	},
}

// kinds are those that are watched. A network comes before the applications that need it.
var kinds = []groups.Kind{
	groups.NetworkTopology, groups.NetworkLink, groups.NetworkPath, groups.NetworkEndpoint, groups.Ipam, groups.Application,
	groups.ApplicationGroup,
}

// Function is the worker with its store, settings and cluster.
type Function struct {
	db      *store.DB
	options serve.Options
	cluster *cluster.Cluster // nil where none is set
}

// New reads the settings and dials nothing.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	c, err := cluster.Open(env)
	f.cluster = c
	return f, errors.Join(err, env.Config(&f.options))
}

// Work looks at the object as it is now, not as it was at the event. Done again, it finds nothing to do.
func (f *Function) Work(ctx context.Context, e cloudevents.Event) error {
	if f.cluster == nil {
		return nil
	}
	return watched.Work(ctx, e, func(ctx context.Context, o watched.Object) error {
		return f.carry(ctx, groups.InCluster(groups.Kind(o.Kind), o.Metadata.Namespace, o.Metadata.Name))
	}, f.all)
}

// all takes every object that there is, and forgets those that are gone.
func (f *Function) all(ctx context.Context) error {
	there, err := f.cluster.Keys(ctx, kinds...)
	if err != nil {
		return problem.Wrap(problem.Unavailable, err, "%v", err)
	}
	known, err := groups.Carried(ctx, f.db)
	if err != nil {
		return err
	}
	documents, err := topologies.List(ctx, f.db)
	if err != nil {
		return err
	}
	for i := range documents {
		if key, ours := describedBy(documents[i].Name); ours {
			known = append(known, key)
		}
	}
	return watched.Each(ctx, there, known, f.carry)
}

// carry takes an object as it is now.
func (f *Function) carry(ctx context.Context, key groups.Key) error {
	object, err := f.cluster.Get(ctx, key)
	if err != nil {
		return problem.Wrap(problem.Unavailable, err, "%s: %v", key, err)
	}
	if key.Kind == groups.NetworkTopology {
		return f.topology(ctx, key, object)
	}
	if object == nil {
		return f.remove(ctx, key)
	}
	read, err := groups.Read(key, object.Text)
	if err == nil {
		read.UID = object.UID
		settings := f.options.Of(ctx)
		settings.Caller = "swm/" + key.Namespace
		err = f.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error { return groups.Put(ctx, tx, read, settings) })
	}
	if err != nil && !refused(err) {
		return err
	}
	status, err := f.status(ctx, key, err)
	if err != nil || status == nil {
		return err
	}
	return f.cluster.SetStatus(ctx, string(key.Kind), key.Namespace, key.Name, status)
}

// status is what is said of an object that was taken, or refused: a repeat would not help then, and its user is to know. It is nil
// where swm-report says it.
func (f *Function) status(ctx context.Context, key groups.Key, refused error) (any, error) {
	switch {
	case key.Kind == groups.Ipam:
		s, err := ipam.Of(ctx, f.db, key.Namespace, key.Name)
		if refused != nil { // what it has been given it keeps
			s.Code, s.Error = ipam.Unfulfillable, refused.Error()
		}
		return s, err
	case refused != nil:
		return map[string]any{
			"phase": "Failing", "conditions": []map[string]any{{"type": "NotRunning", "entity": key.Name, "reason": refused.Error(), "status": "True"}},
		}, nil
	case key.Kind == groups.Application || key.Kind == groups.ApplicationGroup:
		return nil, nil //nolint:nilnil // none is an answer
	}
	return map[string]any{"phase": nil, "conditions": nil}, nil // it was refused once, perhaps
}

// refused reports whether an error is about what was handed in.
func refused(err error) bool {
	var p *problem.Error
	return errors.As(err, &p) && p.Kind != problem.Unavailable
}

// remove forgets an object that is gone; one that came over HTTP stays.
func (f *Function) remove(ctx context.Context, key groups.Key) error {
	err := f.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		s, err := groups.Get(ctx, tx, key)
		if err != nil || s.UID == "" {
			return err
		}
		return groups.Delete(ctx, tx, key, f.options.Of(ctx))
	})
	if problem.KindOf(err) == problem.NotFound {
		return nil
	}
	return err
}

// described is what the network of an object is called here.
func described(key groups.Key) string {
	return groups.Group + "/" + key.Namespace + "/topology/" + key.Name
}

// describedBy is the object of a network; false of one that was not described by an object.
func describedBy(name string) (key groups.Key, ours bool) {
	key.Kind = groups.NetworkTopology
	rest, ours := strings.CutPrefix(name, groups.Group+"/")
	if ours {
		key.Namespace, key.Name, ours = strings.Cut(rest, "/topology/")
	}
	return key, ours
}

// topology takes the description of a network.
func (f *Function) topology(ctx context.Context, key groups.Key, object *cluster.Object) error {
	name := described(key)
	if object == nil {
		err := f.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error { return topologies.Delete(ctx, tx, name) })
		if problem.KindOf(err) == problem.NotFound || problem.KindOf(err) == problem.Conflict {
			return nil // another network still lies on it: it stays until that goes too
		}
		return err
	}
	document, err := topologies.Parse(object.Text)
	if err == nil {
		err = f.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
			before, err := topologies.Get(ctx, tx, name)
			if err == nil && reflect.DeepEqual(before.Document, *document) || err != nil && problem.KindOf(err) != problem.NotFound {
				return err // our own writing of the status wakes us too
			}
			if err := topologies.Save(ctx, tx, name, document); err != nil {
				return err
			}
			return topologies.Announce(ctx, tx, name, "network "+document.NetworkImplementation)
		})
	}
	status := map[string]any{"status": "IMPLEMENTED", "reason": ""}
	switch {
	case refused(err):
		status = map[string]any{"status": "REJECTED", "reason": err.Error()}
	case err != nil:
		return err
	}
	return f.cluster.SetStatus(ctx, string(key.Kind), key.Namespace, key.Name, status)
}
