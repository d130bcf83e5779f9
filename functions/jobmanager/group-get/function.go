// Package groupget answers one application with its jobs.
package groupget

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icoswire/jobgroup"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /jobmanager/groups/{group_uuid}", Role: auth.Viewer}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers the JobGroup.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	return function.Show(w, r, f.db, "group_uuid", function.As(application.Get, jobgroup.Of))
}
