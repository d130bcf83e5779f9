// Package policydelete deletes a policy, and then its rule.
package policydelete

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
		Pattern: "DELETE /polman/registry/api/v1/policies/{pid}", Role: auth.Operator,
		Aliases: []string{"DELETE /registry/api/v1/policies/{pid}"},
	}},
	Emits: []string{events.PolicyChanged},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers 204; with If-Match, it must be as the caller has seen it.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	seen, err := function.IfMatch(r)
	if err != nil {
		return err
	}
	return function.Act(w, r, f.db, "pid", func(ctx context.Context, tx *store.Tx, id uuid.UUID) error {
		p, err := policies.Lock(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := seen.Check(p); err != nil {
			return err
		}
		return p.Delete(ctx, tx)
	})
}
