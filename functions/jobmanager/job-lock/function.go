// Package joblock serves the oldest locking contract, in which an agent puts a lock on a job.
package joblock

import (
	"cmp"
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icoswire"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "PUT /jobmanager/jobs/{job_uuid}", Role: auth.Agent}},
	Emits: []string{
		events.JobFinished, events.JobDegraded, events.JobReady, events.ResourceChanged, events.ApplicationDeleted,
	},
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

// The states of the oldest contract (shared/docs/contracts.md §1.8).
const (
	unlock   = 1
	lock     = 2
	complete = 3
)

type request struct {
	State   int    `json:"state"`
	OwnerID string `json:"owner_id"` // the oldest agents do not send it: the token says who they are
}

// Handle locks (2), completes (3) or unlocks (1) the job for the caller.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "job_uuid")
	if err != nil {
		return err
	}
	var in request
	if err := function.DecodeJSON(r, &in); err != nil {
		return err
	}
	agent := cmp.Or(in.OwnerID, auth.From(r.Context()).AgentID, auth.From(r.Context()).Subject)
	if err := auth.ActAs(r.Context(), agent); err != nil {
		return err
	}
	var j *job.Job
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		if err := f.apply(ctx, tx, id, in.State, agent); err != nil {
			return err
		}
		j, err = job.Get(ctx, tx, id)
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, icoswire.JobOf(j))
}

func (f *Function) apply(ctx context.Context, tx *store.Tx, id uuid.UUID, state int, agent string) error {
	admit := f.settings.AdmitReport
	if state == lock {
		admit = f.settings.Admit
	}
	if err := admit(ctx, tx, agent); err != nil {
		return err
	}
	switch state {
	case lock:
		return job.Claim(ctx, tx, id, agent, f.settings.Lease)
	case complete:
		_, err := application.Report(ctx, tx, job.Report{ID: id, OwnerID: agent, State: job.Finished}, f.settings.Lease)
		return err
	case unlock:
		return job.Release(ctx, tx, id, agent)
	}
	var faults problem.Faults
	faults.Add("state", 0, "is %d; 1 unlocks, 2 locks, 3 completes", state)
	return faults.Err("the request is not valid")
}
