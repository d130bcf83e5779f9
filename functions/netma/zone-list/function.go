// Package zonelist lists zones with the numbers of their access points and users.
package zonelist

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mec"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET " + mec.Root + "/queries/zones", Role: auth.Viewer}},
	Class:  function.Medium,
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers all zones, or those that are named by zoneId.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	found, err := mec.FindZones(r.Context(), f.db, r.URL.Query()["zoneId"])
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, map[string]any{
		"zoneList": map[string]any{"zone": found, "resourceURL": mec.Root + "/queries/zones"},
	})
}
