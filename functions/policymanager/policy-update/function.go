// Package policyupdate changes the content of a policy.
package policyupdate

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
		Pattern: "PUT /polman/registry/api/v1/policies/{pid}", Role: auth.Operator,
		Aliases: []string{"PUT /registry/api/v1/policies/{pid}"},
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

// Handle answers the policy as it is then. With If-Match, it must be as the caller has seen it.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	id, err := function.PathID(r, "pid")
	if err != nil {
		return err
	}
	seen, err := function.IfMatch(r)
	if err != nil {
		return err
	}
	var next registry.Policy
	if err := function.DecodeJSON(r, &next); err != nil {
		return err
	}
	was, err := policies.Get(r.Context(), f.db, id)
	if err != nil {
		return err
	}
	next.Started = was.Started
	spec, err := f.config.Policy(r.Context(), f.db, &next)
	if err != nil {
		return err
	}
	var now *policies.Policy
	err = f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) error {
		p, err := policies.LockHeard(ctx, tx, id, f.config.Descriptor)
		if err != nil {
			return err
		}
		if err := seen.Check(p); err != nil {
			return err
		}
		if err := p.Update(ctx, tx, next, spec); err != nil {
			return err
		}
		now, err = policies.Get(ctx, tx, id)
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, policyread.Of(now))
}
