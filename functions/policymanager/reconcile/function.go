// Package reconcile compares the rule store with the policies, releases held actions that are due, and deletes what is
// old.
package reconcile

import (
	"context"
	"errors"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/policy/ruleclient"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:    []string{events.Tick},
	Emits:       []string{events.PolicyChanged, events.RemediationRequested},
	Class:       function.Batch,
	Concurrency: 1, // a second one at the same time would only find the same
	Needs:       []function.Need{function.ClientCredentials, function.RulesAPI},
}

// Function is the task with its store and rule store.
type Function struct {
	db    *store.DB
	rules policies.Rules
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	var c ruleclient.Config
	if err := env.Config(&c); err != nil {
		return nil, err
	}
	rules, err := ruleclient.New(c, env.HTTP)
	return &Function{db: env.DB, rules: rules}, err
}

// Run does each of its works even when another fails.
func (f *Function) Run(ctx context.Context) error {
	_, held := policies.Release(ctx, f.db)
	_, rules := policies.Reconcile(ctx, f.db, f.rules)
	return errors.Join(held, rules, policies.Prune(ctx, f.db))
}
