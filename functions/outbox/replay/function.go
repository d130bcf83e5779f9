// Package replay sends a dead letter again.
package replay

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/deadletter"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function. It declares no event types: the function that first published an event declares its type.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "POST /events/{id}/replay", Role: auth.Operator}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle publishes the event under the id that it has always had and answers its dead letters as they are then.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	if err := function.NewQuery(r).Err(); err != nil {
		return err
	}
	id, err := function.PathID(r, "id")
	if err != nil {
		return err
	}
	var letters []deadletter.Letter
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		letters, err = deadletter.Replay(ctx, tx, id)
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, letters)
}
