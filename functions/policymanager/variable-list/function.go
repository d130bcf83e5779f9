// Package variablelist shows the variables of a policy.
package variablelist

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{
		Pattern: "GET /polman/registry/api/v1/policies/{pid}/variables", Role: auth.Viewer,
		Aliases: []string{
			"GET /registry/api/v1/policies/{pid}/variables",
			"GET /polman/registry/api/v1/policies/{pid}/variables/{$}",
			"GET /registry/api/v1/policies/{pid}/variables/{$}",
		},
	}},
}

// Function is the operation with its store.
type Function struct{ db *store.DB }

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB}, nil }

// Handle answers the variables by name.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	return function.Show(w, r, f.db, "pid", variables)
}

func variables(ctx context.Context, q store.Querier, id uuid.UUID) (registry.Variables, error) {
	p, err := policies.Get(ctx, q, id)
	if err != nil {
		return nil, err
	}
	return p.Variables, nil
}
