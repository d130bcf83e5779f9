// Package accesspointget answers an access point of a zone.
package accesspointget

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mec"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET " + mec.Root + "/queries/zones/{zoneId}/accessPoints/{accessPointId}", Role: auth.Viewer}},
	Class:  function.Medium,
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the access point with the number of its users.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	found, err := mec.FindPoints(r.Context(), f.db, r.PathValue("zoneId"), "")
	if err != nil {
		return err
	}
	for _, p := range found {
		if p.ID == r.PathValue("accessPointId") {
			return function.WriteJSON(w, http.StatusOK, map[string]any{"accessPointInfo": p})
		}
	}
	return problem.New(problem.NotFound, "the zone has no access point %q", problem.Brief(r.PathValue("accessPointId"), 60))
}
