// Package subscriptionlist lists subscriptions to where users are.
package subscriptionlist

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mec"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "GET " + mec.Root + "/subscriptions/{kind}", Role: auth.Operator}},
	Class:  function.Medium,
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers those of the caller, to an administrator all.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	kind := r.PathValue("kind")
	all, err := mec.Subscriptions(r.Context(), f.db, kind, mec.OwnerOf(r.Context()))
	if err != nil {
		return err
	}
	list := []map[string]string{}
	for _, s := range all {
		list = append(list, map[string]string{"subscriptionType": s.Body.Type, "href": s.Href()})
	}
	return function.WriteJSON(w, http.StatusOK, map[string]any{"notificationSubscriptionList": map[string]any{
		"resourceURL": mec.Root + "/subscriptions/" + kind, "subscription": list,
	}})
}
