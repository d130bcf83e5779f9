// Package overflow hands applications that fit nowhere here over to another controller, where the setting allows it.
package overflow

import (
	"context"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/handover"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:   []string{events.ApplicationUnplaced, events.ApplicationWaiting},
	Emits:      []string{events.HandoverRequested},
	PrewakeFor: []string{events.HandoverRequested},
	NoPrewake:  true, // what fits nowhere waits in any case
}

type config struct {
	Rest time.Duration `envconfig:"CONTROLLER_OVERFLOW" default:"0s"` // from one attempt to the next for the same application; 0 = never
}

// Function is the worker with its setting and store.
type Function struct {
	db   *store.DB
	rest time.Duration
}

// New reads the setting.
func New(env *function.Env) (*Function, error) {
	var c config
	err := env.Config(&c)
	return &Function{env.DB, c.Rest}, err
}

const (
	page = 500 // applications that are looked at together
	most = 50  // hand-overs that one reminder begins; the next one goes on with the others
)

// Work begins to hand over an application that fits nowhere now, and, whenever the matchmaker is reminded of what waits, those that no
// controller took when they were last offered: the others may have room by now. Each is a transaction of its own, and doing it
// twice is harmless.
func (f *Function) Work(ctx context.Context, e cloudevents.Event) error {
	about, err := events.Data[events.Application](e)
	if err != nil || f.rest <= 0 {
		return err
	}
	if e.Type() == events.ApplicationUnplaced {
		return f.begin(ctx, about.ID, "nowhere here fits "+strings.Join(about.Components, ", "))
	}
	begun := 0
	for from := about.ID; ; {
		stuck, err := application.Stuck(ctx, f.db, from, page)
		if err != nil || len(stuck) == 0 {
			return err
		}
		rested, err := handover.Rested(ctx, f.db, stuck, f.rest)
		if err != nil {
			return err
		}
		for _, id := range rested {
			if err := f.begin(ctx, id, "it still fits nowhere here"); err != nil {
				return err
			}
			if begun++; begun == most {
				return nil
			}
		}
		from = after(stuck[len(stuck)-1])
	}
}

// after is the next id in the order of Postgres.
func after(id uuid.UUID) uuid.UUID {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			break
		}
	}
	return id
}

// begin begins a hand-over to whichever controller offers most. An application that may not be handed over now stays, and so does
// one that no controller took a short while ago.
func (f *Function) begin(ctx context.Context, id uuid.UUID, why string) error {
	return f.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		rested, err := handover.Rested(ctx, tx, []uuid.UUID{id}, f.rest)
		if err != nil || len(rested) == 0 {
			return err
		}
		_, err = handover.Overflow(ctx, tx, id, why)
		if kind := problem.KindOf(err); kind == problem.Conflict || kind == problem.NotFound {
			return nil
		}
		return err
	})
}
