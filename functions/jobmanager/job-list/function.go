// Package joblist lists jobs.
package joblist

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icoswire"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/listing"
	"github.com/littoral-project/littoral/shared/paging"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /jobmanager/jobs", Role: auth.Viewer}},
	Class:  function.Medium, // a page's objects are in memory several times
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers a page of jobs, oldest first.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	filter, page, err := listing.Jobs(r)
	if err != nil {
		return err
	}
	jobs, cut, err := job.List(r.Context(), f.db, filter, page)
	if err != nil {
		return err
	}
	return function.WritePage(w, r, page, icoswire.JobsOf(jobs), cut, func(j *icoswire.Job) paging.Cursor {
		return paging.Cursor{At: j.CreatedAt, ID: j.ID}
	})
}
