// Package suggestionconfirm has a remediation carried out that waits for a person.
package suggestionconfirm

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
	Routes: []function.Route{{Pattern: "POST /polman/registry/api/v1/suggestions/{sid}/confirm", Role: auth.Operator}},
	Emits:  []string{events.RemediationRequested},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers 204, also when it was confirmed before. The remediation follows, or is held back as any other.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	return function.Act(w, r, f.db, "sid", func(ctx context.Context, tx *store.Tx, id uuid.UUID) error {
		return policies.Confirm(ctx, tx, id, auth.From(ctx).Subject)
	})
}
