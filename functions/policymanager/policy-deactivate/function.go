// Package policydeactivate stops watching a policy until somebody activates it.
package policydeactivate

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{
		Pattern: "POST /polman/registry/api/v1/policies/{pid}/deactivate", Role: auth.Operator,
		Aliases: []string{"POST /registry/api/v1/policies/{pid}/deactivate"},
	}},
	Emits: []string{events.PolicyChanged},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers 204, also when the policy is not watched.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	return function.Act(w, r, f.db, "pid", func(ctx context.Context, tx *store.Tx, id uuid.UUID) error {
		p, err := policies.Lock(ctx, tx, id)
		if err != nil {
			return err
		}
		return p.Deactivate(ctx, tx, true)
	})
}
