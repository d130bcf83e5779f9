// Package reservationput reserves bandwidth between two nodes: it confirms or refuses.
package reservationput

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/reservations"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "PUT /netma/reservations/{name}", Role: auth.Operator}},
	Class:  function.Medium,
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the reservation with the way that it got; 409 says why there is none.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var asked reservations.Request
	if err := function.DecodeJSON(r, &asked); err != nil {
		return err
	}
	if err := asked.Check(); err != nil {
		return err
	}
	name := r.PathValue("name")
	if len(name) > 253 {
		return problem.New(problem.Malformed, "the name has more than 253 characters")
	}
	var confirmed *reservations.Reservation
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		confirmed, err = reservations.Confirm(ctx, tx, name, asked)
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, confirmed)
}
