// Package overlayapply takes over what L2S-M says of the links of its overlays in the cluster.
package overlayapply

import (
	"context"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/netma/l2sm"
	"github.com/littoral-project/littoral/shared/netma/links"
	"github.com/littoral-project/littoral/shared/netma/state"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/cluster"
	"github.com/littoral-project/littoral/shared/watched"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:   []string{events.ObjectAdded, events.ObjectUpdated, events.ObjectDeleted, events.Tick},
	Emits:      []string{events.NetworkDegraded, events.NetworkRestored, events.TopologyChanged},
	Class:      function.Remote,
	Kubernetes: true,
	Watches: []function.Watch{{
		APIVersion: l2sm.Group + "/" + l2sm.Version, Kind: l2sm.Overlay, Plural: l2sm.Plural,
		Namespaces: "kubernetes.io/metadata.name", // which every namespace has
	}},
}

// Function is the worker with its store and the overlays.
type Function struct {
	db       *store.DB
	overlays *cluster.Overlays // nil where there are none
}

// New reads the settings and dials nothing.
func New(env *function.Env) (*Function, error) {
	o, err := cluster.OpenOverlays(env)
	return &Function{env.DB, o}, err
}

// Work looks at the overlay as it is now, not as it was at the event. Done again, it stores the same. What one that is gone said
// grows old.
func (f *Function) Work(ctx context.Context, e cloudevents.Event) error {
	if f.overlays == nil {
		return nil
	}
	return watched.Work(ctx, e, func(ctx context.Context, o watched.Object) error {
		all, err := f.overlays.One(ctx, o.Metadata.Namespace, o.Metadata.Name)
		return f.save(ctx, all, err)
	}, func(ctx context.Context) error {
		all, err := f.overlays.All(ctx)
		return f.save(ctx, all, err)
	})
}

// save takes over what was read.
func (f *Function) save(ctx context.Context, all []links.Measurement, err error) error {
	if err != nil {
		return problem.Wrap(problem.Unavailable, err, "%v", err)
	}
	if len(all) == 0 {
		return nil
	}
	return f.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := links.Carries(ctx, tx, all); err != nil {
			return err
		}
		return state.Save(ctx, tx, all)
	})
}
