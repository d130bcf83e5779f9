// Package subscriptionupdate replaces a subscription to where users are.
package subscriptionupdate

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
	Routes: []function.Route{{Pattern: "PUT " + mec.Root + "/subscriptions/{kind}/{id}", Role: auth.Operator}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the subscription as it is now. Its type stays.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "id")
	if err != nil {
		return err
	}
	var asked mec.Subscription
	if err := function.DecodeJSON(r, &asked); err != nil {
		return err
	}
	var stored *mec.Stored
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		stored, err = mec.Change(ctx, tx, r.PathValue("kind"), id, mec.OwnerOf(ctx), asked)
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, stored)
}
