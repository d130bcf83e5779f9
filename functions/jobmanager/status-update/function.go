// Package statusupdate takes the conditions that an orchestrator shows for a job.
package statusupdate

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icoswire"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{
		{
			Pattern: "PUT /jobmanager/status", Role: auth.Agent,
			Aliases: []string{"PUT /jobmanager/status/{$}", "PUT /jobmanager/resources/status"},
		},
		{Pattern: "PUT /jobmanager/resources/status/{id}", Role: auth.Agent},
	},
	Emits: []string{events.ResourceChanged, events.JobFinished, events.JobDegraded},
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

// Handle takes a Resource that names the copy it is about by epoch, owner_id or resource_uuid, and answers the resource
// after that. A copy that the job has left is answered 409 and changes nothing. If the body names no job (ICOS agents
// do not), the job is found by the resource_uuid, or by the id in its place. The short form {"job_id", "owner_id",
// "status": "Available"} sets one condition; with "job_group_id" instead of "job_id" it does so for all jobs of the
// group that the agent owns, and the answer is their list.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var in icoswire.Status
	if err := function.DecodeJSON(r, &in); err != nil {
		return err
	}
	if r.PathValue("id") != "" {
		id, err := function.PathID(r, "id")
		if err != nil {
			return err
		}
		if in.ID == (icoswire.ID{}) {
			in.ID.UUID = id
		}
	}
	if in.OwnerID != "" {
		if err := auth.ActAs(r.Context(), in.OwnerID); err != nil {
			return err
		}
	}
	if group, ok := in.Group(); ok {
		return f.observeAll(w, r, group, in.Command())
	}
	var seen *job.Job
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		if seen, err = job.Observe(ctx, tx, in.Command(), f.settings.Lease); err != nil {
			return err
		}
		return f.settings.AdmitReport(ctx, tx, seen.OwnerID) // it may be named by its resource alone
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, icoswire.ResourceOf(seen))
}

func (f *Function) observeAll(w http.ResponseWriter, r *http.Request, group uuid.UUID, seen job.Observation) error {
	var jobs []*job.Job
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		if jobs, err = application.ObserveAll(ctx, tx, group, seen, f.settings.Lease); err != nil {
			return err
		}
		return f.settings.AdmitReport(ctx, tx, jobs[0].OwnerID) // they have one owner
	})
	if err != nil {
		return err
	}
	resources := make([]icoswire.Resource, len(jobs))
	for i, j := range jobs {
		resources[i] = icoswire.ResourceOf(j)
	}
	return function.WriteJSON(w, http.StatusOK, resources)
}
