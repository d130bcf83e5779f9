// Package jobupdate takes an agent's report on its job.
package jobupdate

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
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "PUT /jobmanager/jobs", Role: auth.Agent}},
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

// Handle takes the job as the agent knows it, with its new state and resource, and answers the job after that. A report
// of an agent that no longer owns the job is answered 409 and changes nothing. A report on content that was replaced
// before the agent took the job, or on a place that it had left before, is answered with the job in state Created: the
// agent has to take it again.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	query := function.NewQuery(r, "id", "orchestrator") // newer agents name the job here as well
	id := query.ID("id")
	query.Text("orchestrator")
	if err := query.Err(); err != nil {
		return err
	}
	var sent icoswire.Report
	if err := function.DecodeJSON(r, &sent); err != nil {
		return err
	}
	report := sent.Command()
	if id != nil && report.ID == uuid.Nil {
		report.ID = *id
	}
	if id != nil && *id != report.ID {
		return problem.New(problem.Conflict, "the query names job %s, the report is about %s", id, report.ID)
	}
	if report.OwnerID != "" {
		if err := auth.ActAs(r.Context(), report.OwnerID); err != nil {
			return err
		}
	}
	var j *job.Job
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		if err := f.settings.AdmitReport(ctx, tx, report.OwnerID); err != nil {
			return err
		}
		var err error
		j, err = application.Report(ctx, tx, report, f.settings.Lease)
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, icoswire.JobOf(j))
}
