// Package accesspointlist lists the access points of a zone.
package accesspointlist

import (
	"net/http"
	"net/url"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mec"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET " + mec.Root + "/queries/zones/{zoneId}/accessPoints", Role: auth.Viewer}},
	Class:  function.Medium,
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers those of the realm that interestRealm names, or all.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	zone := r.PathValue("zoneId")
	found, err := mec.FindPoints(r.Context(), f.db, zone, r.URL.Query().Get("interestRealm"))
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, map[string]any{"accessPointList": map[string]any{
		"zoneId": zone, "accessPoint": found, "resourceURL": mec.Root + "/queries/zones/" + url.PathEscape(zone) + "/accessPoints",
	}})
}
