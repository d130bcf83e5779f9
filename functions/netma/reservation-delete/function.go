// Package reservationdelete gives reserved bandwidth back.
package reservationdelete

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/reservations"
	"github.com/littoral-project/littoral/shared/swm/topologies"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "DELETE /netma/reservations/{name}", Role: auth.Operator}},
	Emits:  []string{events.TopologyChanged},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers 204. Who waits for a place is looked at again.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		if err := reservations.Delete(ctx, tx, name); err != nil {
			return err
		}
		return topologies.Announce(ctx, tx, "reservations", "bandwidth was given back")
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
