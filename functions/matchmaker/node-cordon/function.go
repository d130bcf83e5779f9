// Package nodecordon closes a node to new components; what runs there stays.
package nodecordon

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/cordon"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "PUT /matchmaker/nodes/{cluster}/{node}/cordon", Role: auth.Operator}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers the cordon. A node that was drained is only cordoned from then on.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	if err := function.NewQuery(r).Err(); err != nil {
		return err
	}
	var set *cordon.Cordon
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		set, err = cordon.Set(ctx, tx, cordon.Cordon{
			Cluster: r.PathValue("cluster"), Node: r.PathValue("node"), Author: auth.From(ctx).Subject,
		})
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, set)
}
