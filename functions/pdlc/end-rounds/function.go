// Package endrounds ends the rounds of federations, and averages what their participants have sent.
package endrounds

import (
	"context"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/pdlc/federation"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{Consumes: []string{events.Tick}, Emits: []string{events.TrainingRequested}, Class: function.Batch, Concurrency: 1}

// Function is the task with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Run ends those whose time is over. A round in which too few were heard gets more time.
func (f *Function) Run(ctx context.Context) error { return f.db.Tx(ctx, federation.EndRounds) }
