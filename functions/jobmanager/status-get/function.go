// Package statusget answers what the orchestrator reports for a job.
package statusget

import (
	"net/http"
	"strings"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icoswire"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{
		Pattern: "GET /jobmanager/status/{job_uuid}", Role: auth.Viewer,
		Aliases: []string{"GET /jobmanager/resources/status/{job_uuid}"},
	}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers the resource; under the older path its list of conditions only, as v1.4.1 does.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "job_uuid")
	if err != nil {
		return err
	}
	j, err := job.Get(r.Context(), f.db, id)
	if err != nil {
		return err
	}
	if strings.HasPrefix(r.URL.Path, "/jobmanager/resources/") {
		return function.WriteJSON(w, http.StatusOK, j.ShownConditions())
	}
	return function.WriteJSON(w, http.StatusOK, icoswire.ResourceOf(j))
}
