// Package deadletter keeps the events that the Broker gave up, and says so in history. The Broker names it as its dead
// letter sink (triggers/broker.yaml).
package deadletter

import (
	"context"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/deadletter"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{Consumes: []string{events.Any}}

// Function is the sink with its store, and the check that an event is ours.
type Function struct {
	db     *store.DB
	signed func(cloudevents.Event) bool
}

// New returns the function.
func New(env *function.Env) (*Function, error) { return &Function{db: env.DB, signed: env.Signed}, nil }

// Store stores the event with who did not take it and why; of a forged event it only records that it came.
func (f *Function) Store(ctx context.Context, e cloudevents.Event) error {
	if !f.signed(e) {
		return deadletter.Forged(ctx, f.db, e)
	}
	return deadletter.Record(ctx, f.db, e)
}
