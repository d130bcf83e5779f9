// Package apppolicies creates the policies of an application by an older call, which created and activated them at
// once.
package apppolicies

import (
	"context"
	"net/http"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/icoswire/policyread"
	"github.com/littoral-project/littoral/shared/policy/admit"
	"github.com/littoral-project/littoral/shared/policy/lifecycle"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Routes: []function.Route{{
		Pattern: "POST /polman/registry/api/v1/icos", Role: auth.Operator,
		Aliases: []string{
			"POST /registry/api/v1/icos",
			"POST /polman/registry/api/v1/icos/{$}",
			"POST /registry/api/v1/icos/{$}",
		},
	}},
	Emits: []string{events.PolicyFirst, events.PolicyChanged},
	Class: function.Medium, // it carries the parser of PromQL
}

// Function is the operation with its settings and store.
type Function struct {
	db     *store.DB
	config config
}

type config struct {
	lifecycle.Config
	admit.Settings
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	return f, env.Config(&f.config)
}

// Handle answers 200 with the application's policies as they are then.
func (f *Function) Handle(w http.ResponseWriter, r *http.Request) error {
	q := function.NewQuery(r, "do_not_activate")
	asleep := q.Bool("do_not_activate")
	if err := q.Err(); err != nil {
		return err
	}
	var d lifecycle.Deployed
	if err := function.DecodeJSON(r, &d); err != nil {
		return err
	}
	if err := d.Check(); err != nil {
		return err
	}
	var list []*policies.Policy
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		list, err = d.Apply(ctx, tx, f.config.Config, f.config.Descriptor, !asleep)
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, policyread.ListOf(list))
}
