// Package jobexecutable lists the jobs that an agent may take now.
package jobexecutable

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icoswire"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{
		{Pattern: "GET /jobmanager/jobs/executable/{orchestrator}/{agent_id}", Role: auth.Agent},
		{
			Pattern: "GET /jobmanager/jobs/executable/{orchestrator}", Role: auth.Agent,
			Aliases: []string{"GET /jobmanager/jobs/executable/orchestrator/{orchestrator}"},
		},
	},
	Class: function.Medium, // the objects of an answer are in memory several times
}

// Function is the operation with its settings and store.
type Function struct {
	db       *store.DB
	settings job.Settings
	bound    job.BoundAgents
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	return f, env.Config(&f.settings)
}

// Handle answers a list of jobs, which may be empty. The agent is named in the path, or as ?icos_agent_id=.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	orchestrator, err := job.ParseOrchestrator(r.PathValue("orchestrator"))
	if err != nil {
		return err
	}
	query := function.NewQuery(r, "icos_agent_id")
	agent := query.Text("icos_agent_id")
	if err := query.Err(); err != nil {
		return err
	}
	if named := r.PathValue("agent_id"); named != "" {
		agent = named
	}
	if agent != "" {
		if err := auth.ActAs(r.Context(), agent); err != nil {
			return err
		}
	}
	if err := f.settings.Admit(r.Context(), f.db, agent); err != nil {
		return err
	}
	if err := f.bound.Note(r.Context(), f.db); err != nil {
		return err
	}
	jobs, err := job.Executable(r.Context(), f.db, orchestrator, agent)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, icoswire.JobsOf(jobs))
}
