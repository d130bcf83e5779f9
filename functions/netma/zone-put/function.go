// Package zoneput takes in the access points of a zone.
package zoneput

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mec"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "PUT /netma/zones/{zoneId}", Role: auth.Operator}},
	Class:  function.Medium,
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle stores them in place of those that the zone had, and answers 204; a zone without any is gone.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var given struct {
		AccessPoints []mec.AccessPoint `json:"accessPoints"`
	}
	if err := function.DecodeJSON(r, &given); err != nil {
		return err
	}
	zone := r.PathValue("zoneId")
	if len(zone) > 253 {
		return problem.New(problem.Malformed, "the zone has more than 253 characters")
	}
	if err := mec.CheckAccessPoints(given.AccessPoints); err != nil {
		return err
	}
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		return mec.SetZone(ctx, tx, zone, given.AccessPoints)
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
