// Package agenttrain trains the agents that recommend nodes, and chooses one if it beats a greedy rule.
package agenttrain

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/pdlc/advice"
	"github.com/littoral-project/littoral/shared/pdlc/balance"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{Pattern: "POST /pdlc/agents", Role: auth.Operator}},
	Class:  function.Batch, Concurrency: 1,
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New makes the function.
func New(env *function.Env) (*Function, error) { return &Function{env.DB}, nil }

// Handle answers how the agents did beside the greedy rule.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	var o balance.Options
	if err := function.DecodeJSON(r, &o); err != nil {
		return err
	}
	list, err := advice.Train(r.Context(), f.db, o)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, list)
}
