// Package nodeuncordon opens a node again that was cordoned or drained.
package nodeuncordon

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/cordon"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "PUT /matchmaker/nodes/{cluster}/{node}/uncordon", Role: auth.Operator}},
	Emits:  []string{events.ApplicationWaiting},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers whether the node was closed before. What waits for a place is tried again; what has left does not come
// back by itself.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	if err := function.NewQuery(r).Err(); err != nil {
		return err
	}
	cluster, node := r.PathValue("cluster"), r.PathValue("node")
	var was bool
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		if was, err = cordon.Lift(ctx, tx, cluster, node); err != nil || !was {
			return err
		}
		return application.Remind(ctx, tx, "the node "+cluster+"/"+node+" takes components again")
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, map[string]any{"cluster": cluster, "node": node, "changed": was})
}
