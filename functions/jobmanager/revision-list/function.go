// Package revisionlist lists the descriptors that an application was given.
package revisionlist

import (
	"math"
	"net/http"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET /jobmanager/groups/{group_uuid}/revisions", Role: auth.Viewer}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers the revisions, newest first and without their descriptors; with ?before=N those before that number.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "group_uuid")
	if err != nil {
		return err
	}
	query := function.NewQuery(r, "before")
	before := query.Int("before", 0, 1, math.MaxInt64)
	if err := query.Err(); err != nil {
		return err
	}
	list, err := application.Revisions(r.Context(), f.db, id, before)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, list)
}
