// Package takeover takes applications back from controllers that are silent for longer than their leases, and goes on with
// hand-overs that a crash has left undone.
package takeover

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/handover"
	"github.com/littoral-project/littoral/shared/store"
)

// Spec declares the function.
var Spec = function.Spec{
	Consumes:    []string{events.Tick},
	Emits:       []string{events.ApplicationStarted, events.ApplicationUpdated, events.HandoverRequested, events.JobReady},
	Class:       function.Remote,
	Concurrency: 1,
}

// Function is the task with its settings and store.
type Function struct {
	db          *store.DB
	handover    handover.Settings
	application application.Settings
}

// New reads the settings.
func New(env *function.Env) (*Function, error) {
	f := &Function{db: env.DB}
	return f, errors.Join(env.Config(&f.handover), env.Config(&f.application), f.handover.Check())
}

// undone is after how long a hand-over that has not got on is woken again; the Broker repeats for some minutes by itself.
const undone = time.Minute

// Run looks after the applications that are, or are to be, with other controllers.
func (f *Function) Run(ctx context.Context) error {
	var silent []uuid.UUID
	err := f.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		silent, err = handover.Silent(ctx, tx, f.handover)
		return err
	})
	if err != nil {
		return err
	}
	for _, id := range silent {
		err := f.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
			return handover.TakeOver(ctx, tx, id, f.application.LostAfter)
		})
		if err != nil {
			return err
		}
	}
	offered, err := handover.Open(ctx, f.db, handover.Giver, handover.Offered)
	if err != nil || len(offered) == 0 {
		return err
	}
	now, err := handover.Now(ctx, f.db)
	if err != nil {
		return err
	}
	for _, h := range offered {
		if now.Sub(h.ChangedAt) < undone {
			continue
		}
		err := f.db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error { return handover.Remind(ctx, tx, h.Application) })
		if err != nil {
			return err
		}
	}
	return nil
}
