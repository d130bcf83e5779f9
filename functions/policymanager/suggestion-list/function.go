// Package suggestionlist lists remediations that wait for a person.
package suggestionlist

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /polman/registry/api/v1/suggestions", Role: auth.Viewer}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers the suggestions, oldest first.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	q := function.NewQuery(r, "app")
	app := q.ID("app")
	if err := q.Err(); err != nil {
		return err
	}
	list, err := policies.Suggestions(r.Context(), f.db, app)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, list)
}
