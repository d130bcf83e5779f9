// Package topologydelete forgets the description of a network.
package topologydelete

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/topologies"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "DELETE /swm/topologies/{name}", Role: auth.Operator}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers 204. Channels that took a way through the network stay where they are until they are placed anew.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		return topologies.Delete(ctx, tx, r.PathValue("name"))
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
