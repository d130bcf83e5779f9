// Package put publishes a value under a key.
package put

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/bus/zenohrest"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{
		{Pattern: "PUT " + zenohrest.Root, Role: auth.Operator, Subtree: true},
		{Pattern: "PATCH " + zenohrest.Root, Role: auth.Operator, Subtree: true}, // means the same in Zenoh
	},
	Emits:   []string{events.ValuePublished},
	MaxBody: bus.MaxPayload,
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle publishes the body under the key that the path names, with Content-Type as its encoding.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	key, err := zenohrest.Key(r)
	if err != nil {
		return err
	}
	payload, err := io.ReadAll(r.Body) // an empty one is a value too
	var large *http.MaxBytesError
	if err != nil && !errors.As(err, &large) {
		return problem.Wrap(problem.Malformed, err, "the body cannot be read")
	}
	if err != nil {
		return err
	}
	change := bus.Change{Key: key, Encoding: r.Header.Get("Content-Type"), Payload: payload}
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		if err := bus.Publish(ctx, tx, change); err != nil {
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
