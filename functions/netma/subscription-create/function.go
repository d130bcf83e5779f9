// Package subscriptioncreate takes a subscription to where users are.
package subscriptioncreate

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mec"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "POST " + mec.Root + "/subscriptions/{kind}", Role: auth.Operator}},
	Emits:  []string{events.LocationNoticed, events.ClockWanted},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers 201 with the subscription; a test notification follows if it is asked for.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var asked mec.Subscription
	if err := function.DecodeJSON(r, &asked); err != nil {
		return err
	}
	var stored *mec.Stored
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		stored, err = mec.Subscribe(ctx, tx, r.PathValue("kind"), auth.From(ctx).Subject, asked)
		return err
	})
	if err != nil {
		return err
	}
	w.Header().Set("Location", stored.Href())
	return function.WriteJSON(w, http.StatusCreated, stored)
}
