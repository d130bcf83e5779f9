// Package subscriptiondelete ends a subscription to where users are.
package subscriptiondelete

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mec"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "DELETE " + mec.Root + "/subscriptions/{kind}/{id}", Role: auth.Operator}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers 204. Notifications that are on their way are not sent any more.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "id")
	if err != nil {
		return err
	}
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		return mec.Unsubscribe(ctx, tx, r.PathValue("kind"), id, mec.OwnerOf(ctx))
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
