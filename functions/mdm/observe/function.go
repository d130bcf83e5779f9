// Package observe publishes to the metadata graph which clusters and nodes there are.
package observe

import (
	"context"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mdm/connect"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{Consumes: []string{events.Tick}, Class: function.Batch, Concurrency: 1}

// Function is the task with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Run publishes what has changed since it ran last.
func (f *Function) Run(ctx context.Context) error { return connect.Infrastructure(ctx, f.db) }
