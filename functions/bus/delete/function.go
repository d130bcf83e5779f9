// Package delete publishes that a key has no value any more.
package delete

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/bus/zenohrest"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "DELETE " + zenohrest.Root, Role: auth.Operator, Subtree: true}},
	Emits:  []string{events.ValuePublished},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle deletes the key that the path names; as in Zenoh it need not have a value.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	key, err := zenohrest.Key(r)
	if err != nil {
		return err
	}
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		if err := bus.Publish(ctx, tx, bus.Change{Key: key, Delete: true}); err != nil {
			return err
		}
		return tx.Emit(ctx, events.ValuePublished, string(key), events.Key{Key: string(key)})
	})
	if err != nil {
		return store.Classify(err)
	}
	w.WriteHeader(http.StatusOK)
	return nil
}
