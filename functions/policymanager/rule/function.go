// Package rule makes the rule store follow a policy.
package rule

import (
	"context"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/policy/ruleclient"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:  []string{events.PolicyChanged},
	NoPrewake: true,
	Class:     function.Remote,
	Needs:     []function.Need{function.ClientCredentials, function.RulesAPI},
}

// Function is the worker with its store and rule store.
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

// Work carries the rule over as the policy is now. Done again, it finds nothing to do.
func (f *Function) Work(ctx context.Context, e cloudevents.Event) error {
	about, err := events.Data[events.Policy](e)
	if err != nil {
		return err
	}
	return policies.Sync(ctx, f.db, f.rules, about.ID)
}
