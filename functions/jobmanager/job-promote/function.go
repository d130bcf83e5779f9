// Package jobpromote gives an agent a job to work on, to one agent only.
package jobpromote

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "PATCH /jobmanager/jobs/promote/{job_uuid}", Role: auth.Agent}},
}

// Function is the operation with its settings and store.
type Function struct {
	db       *store.DB
	settings job.Settings
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	return f, env.Config(&f.settings)
}

type request struct {
	OwnerID string `json:"owner_id"`
	Epoch   *int64 `json:"epoch"` // of what the agent was listed; not given by agents of ICOS
}

// Handle answers 204 to the winner, and to the winner again, whose lease it renews; 409 to everyone else, and to an agent
// that names another epoch than the job's, since the job has moved since it was listed.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "job_uuid")
	if err != nil {
		return err
	}
	var in request
	if err := function.DecodeJSON(r, &in); err != nil {
		return err
	}
	if in.OwnerID != "" {
		if err := auth.ActAs(r.Context(), in.OwnerID); err != nil {
			return err
		}
	}
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		if err := f.settings.Admit(ctx, tx, in.OwnerID); err != nil {
			return err
		}
		if in.Epoch != nil {
			now, err := job.Lock(ctx, tx, id)
			if err != nil {
				return err
			}
			if now.Epoch != *in.Epoch {
				return problem.New(problem.Conflict, "job %s is of epoch %d by now, not of %d", id, now.Epoch, *in.Epoch)
			}
		}
		return job.Claim(ctx, tx, id, in.OwnerID, f.settings.Lease)
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
