// Package measure takes over what was measured between nodes, as telemetry has it, and tells which links keep the channels of
// applications no longer, or again.
package measure

import (
	"context"
	"time"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/netma/gather"
	"github.com/littoral-project/littoral/shared/netma/state"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:    []string{events.Tick},
	Emits:       []string{events.NetworkDegraded, events.NetworkRestored, events.TopologyChanged},
	Concurrency: 1, // a second one at the same time would find the same
	Class:       function.Batch,
	Needs:       []function.Need{function.Telemetry},
}

// Function is the task with its store and its telemetry.
type Function struct {
	db        *store.DB
	telemetry *gather.Gatherer
}

// New makes the function.
func New(env *function.Env) (*Function, error) {
	telemetry, err := gather.Open(env.Config, env.HTTP)
	return &Function{env.DB, telemetry}, err
}

// Run looks once. Twice is harmless.
func (f *Function) Run(ctx context.Context) error {
	all, err := f.telemetry.Gather(ctx, time.Now().UTC())
	if err != nil {
		return err
	}
	return f.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error { return state.Save(ctx, tx, all) })
}
