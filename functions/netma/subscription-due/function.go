// Package subscriptiondue sends periodic reports of where users are, and ends subscriptions whose time has passed.
package subscriptiondue

import (
	"context"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mec"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:    []string{events.Tick},
	Emits:       []string{events.LocationNoticed},
	Concurrency: 1, // a second one at the same time would find nothing left to do
	Class:       function.Batch,
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Run looks once. Twice is harmless: what was reported is due later.
func (f *Function) Run(ctx context.Context) error { return f.db.Tx(ctx, mec.Due) }
