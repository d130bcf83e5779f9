// Package userfind finds users by address, zone and access point.
package userfind

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mec"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET " + mec.Root + "/queries/users", Role: auth.Operator}},
	Class:  function.Medium,
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the users that fit; each parameter may be there several times.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	found, err := mec.FindUsers(r.Context(), f.db, query["address"], query["zoneId"], query["accessPointId"])
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, map[string]any{"userList": found})
}
