// Package variableset changes the value of a policy's variable.
package variableset

import (
	"context"
	"maps"
	"net/http"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/policy/admit"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{
		Pattern: "POST /polman/registry/api/v1/policies/{pid}/variables/{name}/{value}", Role: auth.Operator,
		Aliases: []string{"POST /registry/api/v1/policies/{pid}/variables/{name}/{value}"},
	}},
	Emits: []string{events.PolicyChanged},
	Class: function.Medium, // it carries the parser of PromQL
}

// Function is the operation with its settings and store.
type Function struct {
	db     *store.DB
	config admit.Settings
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	return f, env.Config(&f.config)
}

// Handle answers 204. A value with which the policy cannot be rendered is refused and changes nothing.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	name, value := r.PathValue("name"), r.PathValue("value")
	return function.Act(w, r, f.db, "pid", func(ctx context.Context, tx *store.Tx, id uuid.UUID) error {
		p, err := policies.LockHeard(ctx, tx, id, f.config.Descriptor)
		if err != nil {
			return err
		}
		next := p.Policy
		next.Variables = maps.Clone(p.Variables)
		if err := next.Variables.Set(name, value); err != nil {
			return err
		}
		spec, err := f.config.Render(ctx, &next)
		if err != nil {
			return err
		}
		return p.SetVariables(ctx, tx, next.Variables, spec, map[string]any{"name": name, "value": next.Variables[name]})
	})
}
