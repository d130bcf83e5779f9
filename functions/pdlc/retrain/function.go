// Package retrain asks for the trainings of pipelines that are due.
package retrain

import (
	"context"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/pdlc/pipeline"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes: []string{events.Tick}, Emits: []string{events.TrainingRequested}, Class: function.Medium, Concurrency: 1,
}

// Function is the task with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Run asks for each once; what goes on is not asked for again.
func (f *Function) Run(ctx context.Context) error { return f.db.Tx(ctx, pipeline.Due) }
