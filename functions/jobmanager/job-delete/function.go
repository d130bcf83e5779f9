// Package jobdelete deletes a job of which nothing runs.
package jobdelete

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "DELETE /jobmanager/jobs/{job_uuid}", Role: auth.Operator}},
	Emits:  []string{events.JobFinished},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers the number of jobs that are gone, as the contract has it: 1.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	return function.Change(w, r, f.db, "job_uuid", func(ctx context.Context, tx *store.Tx, id uuid.UUID) (int, error) {
		return 1, job.Remove(ctx, tx, id)
	})
}
