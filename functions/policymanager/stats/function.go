// Package stats counts policies by phase.
package stats

import (
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function. It is open in the contract, since the answer has only numbers.
var Spec = function.Spec{
	Routes: []function.Route{{
		Pattern: "GET /polman/registry/api/v1/stats", Role: auth.Open,
		Aliases: []string{
			"GET /registry/api/v1/stats",
			"GET /polman/registry/api/v1/stats/{$}",
			"GET /registry/api/v1/stats/{$}",
		},
	}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers the counts.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	counts, err := policies.Count(r.Context(), f.db)
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, counts)
}
