// Package tick keeps the stored topology up to date and announces what changed in it.
//
// Placement and displacement read the stored topology, so they neither wait for telemetry nor fail with it. When
// telemetry is away the stored picture and its time stay as they are: nothing is lost because nobody could look.
package tick

import (
	"context"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology/collect"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:    []string{events.Tick, events.ApplicationUnplaced}, // perhaps the topology is outdated
	Emits:       []string{events.TopologyChanged, events.PodsChanged},
	Concurrency: 1, // a second one at the same time would only wait for the first
	Class:       function.Series,
	Needs:       []function.Need{function.Telemetry},
}

// Function looks and saves.
type Function struct {
	db        *store.DB
	telemetry *collect.Collector
}

// New makes the function.
func New(env *function.Env) (*Function, error) {
	telemetry, err := collect.Open(env.Config, env.HTTP)
	return &Function{env.DB, telemetry}, err
}

// Run looks once. Twice is harmless.
func (f *Function) Run(ctx context.Context) error {
	_, err := f.telemetry.Refresh(ctx, f.db)
	return err
}
