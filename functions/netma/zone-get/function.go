// Package zoneget answers a zone with its numbers.
package zoneget

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mec"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET " + mec.Root + "/queries/zones/{zoneId}", Role: auth.Viewer}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the zone.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	found, err := mec.FindZone(r.Context(), f.db, r.PathValue("zoneId"))
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, map[string]any{"zoneInfo": found})
}
