// Package variabledelete takes a variable from a policy.
package variabledelete

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
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{
		Pattern: "DELETE /polman/registry/api/v1/policies/{pid}/variables/{name}", Role: auth.Operator,
		Aliases: []string{"DELETE /registry/api/v1/policies/{pid}/variables/{name}"},
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

// Handle answers 204; 406 when the policy cannot be rendered without the variable, and nothing is changed then.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	return function.Act(w, r, f.db, "pid", func(ctx context.Context, tx *store.Tx, id uuid.UUID) error {
		p, err := policies.LockHeard(ctx, tx, id, f.config.Descriptor)
		if err != nil {
			return err
		}
		if _, has := p.Variables[name]; !has {
			return problem.New(problem.NotFound, "policy %q has no variable %q", p.Name, name)
		}
		next := p.Policy
		next.Variables = maps.Clone(p.Variables)
		delete(next.Variables, name)
		spec, err := f.config.Render(ctx, &next)
		if problem.KindOf(err) == problem.Invalid {
			return problem.Wrap(problem.NotAcceptable, err, "policy %q cannot be rendered without variable %q", p.Name, name)
		}
		if err != nil {
			return err
		}
		return p.SetVariables(ctx, tx, next.Variables, spec, map[string]any{"name": name, "value": nil})
	})
}
