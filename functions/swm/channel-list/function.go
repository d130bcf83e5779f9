// Package channellist lists the channels of applications and the ways that they take.
package channellist

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/plan"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /swm/channels", Role: auth.Viewer}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the channels of the application in ?app=, or of all.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	query := function.NewQuery(r, "app")
	app := query.ID("app")
	if err := query.Err(); err != nil {
		return err
	}
	if app == nil {
		all, err := plan.All(r.Context(), f.db)
		if err != nil {
			return err
		}
		return function.WriteJSON(w, http.StatusOK, all)
	}
	planned, err := plan.Of(r.Context(), f.db, *app)
	switch {
	case problem.KindOf(err) == problem.NotFound:
		return function.WriteJSON(w, http.StatusOK, []plan.Channel{})
	case err != nil:
		return err
	}
	return function.WriteJSON(w, http.StatusOK, append([]plan.Channel{}, planned.Channels...))
}
