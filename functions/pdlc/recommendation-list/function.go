// Package recommendationlist lists what was recommended for an application.
package recommendationlist

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/pdlc/advice"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /pdlc/recommendations/{application}", Role: auth.Viewer}},
	Class:  function.Medium,
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the value of each node for each component, and 404 for an application that there is not.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "application")
	if err != nil {
		return err
	}
	if _, err := application.Get(r.Context(), f.db, id); err != nil {
		return err
	}
	list, err := advice.Recommendations(r.Context(), f.db, id)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, list)
}
