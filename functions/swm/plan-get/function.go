// Package planget answers the AssignmentPlan of a group of SWM, or of a CodecoApp.
package planget

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/acm"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/groups"
	"github.com/littoral-project/littoral/shared/swm/plan"
	"github.com/littoral-project/littoral/shared/swm/serve"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /swm/plans/{namespace}/{group}", Role: auth.Viewer}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the plan as it is now, with what is done of it.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	namespace, group := r.PathValue("namespace"), r.PathValue("group")
	id, err := f.runs(r, namespace, group)
	if err != nil {
		return err
	}
	p, err := plan.Of(r.Context(), f.db, id)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, serve.Plan(namespace, group, p))
}

// runs finds the application of a group, or else of the CodecoApp of that name.
func (f *Function) runs(r *http.Request, namespace, group string) (uuid.UUID, error) {
	key := groups.Key{Kind: groups.ApplicationGroup, Namespace: namespace, Name: group}
	s, err := groups.Get(r.Context(), f.db, key)
	if problem.KindOf(err) == problem.NotFound {
		app, err := acm.Get(r.Context(), f.db, acm.Key{Namespace: namespace, Name: group})
		if err != nil {
			if problem.KindOf(err) == problem.NotFound {
				err = problem.New(problem.NotFound, "there is no group and no CodecoApp %s/%s", namespace, group)
			}
			return uuid.Nil, err
		}
		return app.Application.ID, nil
	}
	if err != nil {
		return uuid.Nil, err
	}
	if s.Application == nil {
		return uuid.Nil, serve.Missing(key)
	}
	return *s.Application, nil
}
