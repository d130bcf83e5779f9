// Package positionput takes in where users are.
package positionput

import (
	"context"
	"net/http"
	"time"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mec"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "POST /netma/positions", Role: auth.Operator}},
	Emits:  []string{events.LocationNoticed},
	Class:  function.Medium,
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle stores all positions or none, and answers 204. One that is older than what is known changes nothing.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var given struct {
		Users []mec.Position `json:"users"`
	}
	if err := function.DecodeJSON(r, &given); err != nil {
		return err
	}
	if err := mec.CheckPositions(given.Users, time.Now().UTC()); err != nil {
		return err
	}
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error { return mec.Ingest(ctx, tx, given.Users) })
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
