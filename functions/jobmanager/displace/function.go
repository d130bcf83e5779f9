// Package displace moves components away from nodes that are drained or lost.
package displace

import (
	"context"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes: []string{events.Tick, events.TopologyChanged},
	Emits:    []string{events.ApplicationDisplaced, events.JobReady},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Run looks for components on lost nodes, one transaction per application: a component that has already left is not
// found again, so running twice is harmless.
func (f *Function) Run(ctx context.Context) error {
	apps, err := application.Lost(ctx, f.db)
	if err != nil {
		return err
	}
	for _, id := range apps {
		err := f.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error { return application.DisplaceLost(ctx, tx, id) })
		if err != nil {
			return err
		}
	}
	return nil
}
