// Package recommend values the nodes for each component of an application by the agent that was chosen.
package recommend

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/pdlc/advice"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "POST /pdlc/recommendations/{application}", Role: auth.Operator}},
	Class:  function.Large,
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers what it recommends. Placement counts it from then on.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "application")
	if err != nil {
		return err
	}
	var list []advice.Recommendation
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		list, err = advice.Recommend(ctx, tx, id)
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, list)
}
