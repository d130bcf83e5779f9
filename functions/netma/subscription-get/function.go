// Package subscriptionget answers a subscription to where users are.
package subscriptionget

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mec"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET " + mec.Root + "/subscriptions/{kind}/{id}", Role: auth.Operator}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers the subscription, if it is the caller's.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "id")
	if err != nil {
		return err
	}
	found, err := mec.Get(r.Context(), f.db, r.PathValue("kind"), id, mec.OwnerOf(r.Context()))
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, found)
}
