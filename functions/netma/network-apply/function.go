// Package networkapply has L2S-M carry the channels that were placed on its network.
package networkapply

import (
	"context"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/netma/vlinks"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/cluster"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:    []string{events.ApplicationPlaced, events.Tick},
	NoPrewake:   true,
	Concurrency: 1, // a second one at the same time would find the same
	Class:       function.Remote,
	Kubernetes:  true,
}

// Function is the worker with its store and the networks.
type Function struct {
	db       *store.DB
	overlays *cluster.Overlays // nil where there is no L2S-M
}

// New reads the settings and dials nothing.
func New(env *function.Env) (*Function, error) {
	o, err := cluster.OpenOverlays(env)
	return &Function{env.DB, o}, err
}

// Work compares all networks with all channels, whatever the event is about. That L2S-M cannot be reached is no failure of the event: it
// is asked again when that is due.
func (f *Function) Work(ctx context.Context, _ cloudevents.Event) error {
	if f.overlays == nil {
		return nil
	}
	return vlinks.Reconcile(ctx, f.db, f.overlays, time.Now())
}
