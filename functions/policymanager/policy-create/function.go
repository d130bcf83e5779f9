// Package policycreate stores a new policy, renders it and starts watching it.
package policycreate

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icoswire/policyread"
	"github.com/littoral-project/littoral/shared/policy/admit"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{
		Pattern: "POST /polman/registry/api/v1/policies", Role: auth.Operator,
		Aliases: []string{
			"POST /registry/api/v1/policies",
			"POST /polman/registry/api/v1/policies/{$}",
			"POST /registry/api/v1/policies/{$}",
		},
	}},
	Emits: []string{events.PolicyFirst, events.PolicyChanged},
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

// Handle answers 200 with the policy, as its contract has it; the same policy a second time is the first one.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	q := function.NewQuery(r, "do_not_activate")
	asleep := q.Bool("do_not_activate")
	if err := q.Err(); err != nil {
		return err
	}
	var in registry.Policy
	if err := function.DecodeJSON(r, &in); err != nil {
		return err
	}
	in.ID, in.Status = "", registry.Status{}
	spec, err := f.config.Policy(r.Context(), f.db, &in)
	if err != nil {
		return err
	}
	in.Status.RenderedSpec = &spec
	var stored *policies.Policy
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		made := policies.New(in, policies.FromAPI) // inside the transaction, which may run again: Create changes it
		made.Paused = asleep                       // otherwise the next event of its application would activate it
		p, _, err := policies.Create(ctx, tx, made, !asleep && spec.Type == registry.TelemetrySpec)
		if err != nil {
			return err
		}
		stored, err = policies.Get(ctx, tx, p.UUID())
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, policyread.Of(stored))
}
