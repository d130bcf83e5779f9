// Package appevent follows an application that another job manager runs.
package appevent

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
		Pattern: "POST /polman/registry/api/v1/icos/app", Role: auth.Operator,
		Aliases: []string{
			"POST /registry/api/v1/icos/app",
			"POST /polman/registry/api/v1/icos/app/{$}",
			"POST /registry/api/v1/icos/app/{$}",
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
	var e lifecycle.Event
	if err := function.DecodeJSON(r, &e); err != nil {
		return err
	}
	if err := e.Check(); err != nil {
		return err
	}
	var list []*policies.Policy
	err := f.db.Tx(r.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		list, err = e.Apply(ctx, tx, f.config.Config, f.config.Descriptor)
		return err
	})
	if err != nil {
		return err
	}
	return function.WriteJSON(w, http.StatusOK, policyread.ListOf(list))
}
