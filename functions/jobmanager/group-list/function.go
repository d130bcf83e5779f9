// Package grouplist lists applications with their jobs.
package grouplist

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icoswire/jobgroup"
	"github.com/littoral-project/littoral/shared/listing"
	"github.com/littoral-project/littoral/shared/paging"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /jobmanager/groups", Role: auth.Viewer}},
	Class:  function.Medium, // a page's objects are in memory several times
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers a page of JobGroups, oldest first.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	filter, health, page, err := listing.Applications(r, application.Healths...)
	if err != nil {
		return err
	}
	apps, cut, err := application.List(r.Context(), f.db, application.Filter{Filter: filter, Health: application.Health(health)}, page)
	if err != nil {
		return err
	}
	return function.WritePage(w, r, page, jobgroup.ListOf(apps), cut, func(a *jobgroup.Answer) paging.Cursor {
		return paging.Cursor{At: a.CreatedAt, ID: a.ID}
	})
}
