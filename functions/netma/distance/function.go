// Package distance answers how far a user is from another one, or from a place.
package distance

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
	Routes: []function.Route{{Pattern: "GET " + mec.Root + "/queries/distance", Role: auth.Operator}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the distance over the ground. The place is location=lat,lon, or latitude and longitude as in version 2.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	addresses, place := query["address"], query.Get("location")
	if place == "" && query.Has("latitude") {
		place = query.Get("latitude") + "," + query.Get("longitude")
	}
	var to *mec.Point
	if place != "" {
		at, ok := mec.ParsePoint(place)
		if !ok {
			return problem.New(problem.Malformed, "location is no latitude and longitude in degrees")
		}
		to = &at
	}
	switch {
	case len(addresses) < 1 || len(addresses) > 2:
		return problem.New(problem.Malformed, "address is to be there once or twice")
	case len(addresses) == 1 && to == nil:
		return problem.New(problem.Malformed, "a second address or a location is missing")
	case len(addresses) == 2:
		to = nil // the distance is between the users
	}
	found, err := mec.FindDistance(r.Context(), f.db, addresses, to)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, map[string]any{"terminalDistance": found})
}
