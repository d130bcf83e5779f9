// Package overflow hands an application of which some component fits nowhere here over to another controller that takes all of it.
package overflow

import (
	"context"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/handover"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:   []string{events.ApplicationUnplaced},
	Emits:      []string{events.HandoverRequested},
	PrewakeFor: []string{events.HandoverRequested},
}

type config struct {
	Rest time.Duration `envconfig:"CONTROLLER_OVERFLOW" default:"0s"` // from one attempt to the next for the same application; 0 = never
}

// Function is the reaction with its setting.
type Function struct{ rest time.Duration }

// New reads the setting.
func New(env *function.Env) (*Function, error) {
	var c config
	err := env.Config(&c)
	return &Function{c.Rest}, err
}

// React begins a hand-over to whichever controller offers most. An application that may not be handed over now stays, and so does
// one that no controller took a short while ago: matchmaker/retry goes on looking for room here, and each of its attempts comes here.
func (f *Function) React(ctx context.Context, tx *store.Tx, e cloudevents.Event) error {
	about, err := events.Data[events.Application](e)
	if err != nil || f.rest <= 0 {
		return err
	}
	rests, err := handover.Rests(ctx, tx, about.ID, f.rest)
	if err != nil || rests {
		return err
	}
	_, err = handover.Request(ctx, tx, about.ID, "", "nowhere here fits "+strings.Join(about.Components, ", "))
	if kind := problem.KindOf(err); kind == problem.Conflict || kind == problem.NotFound {
		return nil
	}
	return err
}
