// Package judge decides what an alert means for its policy.
package judge

import (
	"context"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes: []string{events.AlertReceived},
	Emits: []string{
		events.PolicyViolated, events.PolicyResolved, events.RemediationRequested, events.WebhookRequested,
	},
}

// Function is the reaction.
type Function struct{}

// New returns the function.
func New(*function.Env) (*Function, error) { return &Function{}, nil }

// React announces each violation once. A component that had nowhere else to go may stay where it is when its own
// violation has ended.
func (f *Function) React(ctx context.Context, tx *store.Tx, e cloudevents.Event) error {
	about, err := events.Data[events.Alert](e)
	if err != nil {
		return err
	}
	return policies.Judge(ctx, tx, about)
}
