// Package watched is what functions have in common that follow objects of a cluster. A source tells at once what happens to one
// object, but nothing of what happened before it watched, and Knative starts it again with each new namespace; so a clock lets
// the function look at all of them from time to time.
package watched

import (
	"context"
	"errors"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
)

// Object is what a source tells of. The rest of what it says is not believed: it may be old, and its sender is not known.
type Object struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
}

// Work looks at all objects at a tick, else at the one that the event is about.
func Work(ctx context.Context, e cloudevents.Event, one func(context.Context, Object) error, all func(context.Context) error) error {
	if e.Type() == events.Tick {
		return all(ctx)
	}
	about, err := events.Data[Object](e)
	if err != nil {
		return err
	}
	return one(ctx, about)
}

// Each carries over what is there, and then what was known and is not there any more. One that fails holds up none of the others.
func Each[Key comparable](ctx context.Context, there, known []Key, carry func(context.Context, Key) error) error {
	var failed []error
	found := make(map[Key]bool, len(there))
	for _, key := range there {
		found[key] = true
		failed = append(failed, carry(ctx, key))
	}
	for _, key := range known {
		if !found[key] {
			failed = append(failed, carry(ctx, key))
		}
	}
	return errors.Join(failed...)
}
