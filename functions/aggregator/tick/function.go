// Package tick keeps the stored topology up to date and announces what changed in it.
//
// Placement and displacement read the stored topology, so they neither wait for telemetry nor fail with it. When
// telemetry is away the stored picture and its time stay as they are: nothing is lost because nobody could look.
package tick

import (
	"context"
	"errors"
	"time"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
	"github.com/littoral-project/littoral/shared/topology/collect"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:    []string{events.Tick, events.ApplicationUnplaced}, // whoever finds no place may know too little
	Emits:       []string{events.TopologyChanged},
	Concurrency: 1, // a second one at the same time would only wait for the first
	Memory:      "128Mi",
}

// Function looks and saves.
type Function struct {
	db        *store.DB
	config    collect.Config
	telemetry *collect.Collector
}

// New makes the function.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	if err := env.Config(&f.config); err != nil {
		return nil, err
	}
	var err error
	f.telemetry, err = collect.New(f.config, env.HTTP)
	return f, err
}

// Run looks once. Twice is harmless: a picture that is not newer than the stored one is dropped.
func (f *Function) Run(ctx context.Context) error {
	picture, err := f.telemetry.Collect(ctx, time.Now())
	if err != nil {
		return err
	}
	before, _, err := topology.Current(ctx, f.db)
	switch {
	case err == nil:
		picture.Complete(before)
	case !errors.Is(err, topology.ErrUnknown):
		return err
	}
	return f.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := topology.Save(ctx, tx, picture.Taxonomy, picture.At, f.config.StaleAfter)
		return err
	})
}
