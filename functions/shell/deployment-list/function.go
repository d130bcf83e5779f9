// Package deploymentlist lists deployments, which are applications, for the ICOS shell.
package deploymentlist

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icosshell"
	"github.com/littoral-project/littoral/shared/icoswire/jobgroup"
	"github.com/littoral-project/littoral/shared/listing"
	"github.com/littoral-project/littoral/shared/paging"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /api/v3/deployment/{$}", Role: auth.Viewer, Aliases: []string{"GET /api/v3/deployment"}}},
	Needs:  []function.Need{function.SignIn}, // refresh tokens are sent as api_key
	Class:  function.Medium,                  // a page's objects are in memory several times
}

// Function is the operation with its store.
type Function struct {
	icosshell.Callers

	db *store.DB
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	callers, err := icosshell.NewCallers(env)
	return &Function{callers, env.DB}, err
}

// Handle answers a page of JobGroups, oldest first, and 204 when there are none.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	filter, health, page, err := listing.Applications(r, application.Healths...)
	if err != nil {
		return err
	}
	apps, cut, err := application.List(r.Context(), f.db, application.Filter{Filter: filter, Health: application.Health(health)}, page)
	if err != nil {
		return err
	}
	if len(apps) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return function.WritePage(w, r, page, jobgroup.ListOf(apps), cut, func(a *jobgroup.Answer) paging.Cursor {
		return paging.Cursor{At: a.CreatedAt, ID: a.ID}
	})
}
