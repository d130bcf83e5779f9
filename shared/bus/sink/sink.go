// Package sink sends what is published on the bus to brokers elsewhere, so that subscribers there need not know of us.
//
// A cursor for each of them says how far it has everything. Whoever forwards has claimed that broker, sends what is behind the
// cursor in the order of the changes, and moves the cursor once the broker has confirmed it. If it dies in between, the same is
// sent again: of each key the broker gets the last value last, whatever happened before.
package sink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/bus/keyexpr"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Sink is a broker elsewhere.
type Sink interface {
	Name() string // without secrets
	// Selection says which keys it is sent.
	Selection() keyexpr.Expr
	// Open connects as the client, which ends a former connection as the same one.
	Open(ctx context.Context, client uuid.UUID) (Session, error)
}

// Session is a connection to a broker.
type Session interface {
	// Send returns once the broker has confirmed the values, in which no key occurs twice. Of those that it cannot take it
	// calls refused with the reason, and goes on.
	Send(ctx context.Context, values []bus.Value, refused func(bus.Value, error)) error
	Close()
}

// claimed is how long a broker is claimed for: longer than one call of a function may take.
const claimed = 40 * time.Second

// Forward sends the sink what has been published and it has not got yet. While somebody else is doing so, it leaves that to
// them: they look once more before they end.
func Forward(ctx context.Context, db *store.DB, log *slog.Logger, s Sink) error {
	for more := true; more; {
		var err error
		if more, err = forwardOnce(ctx, db, log, s); err != nil {
			return err
		}
	}
	return nil
}

func forwardOnce(ctx context.Context, db *store.DB, log *slog.Logger, s Sink) (more bool, err error) {
	var claim *store.Claim
	var cursor bus.Cursor
	behind := false
	err = db.Tx(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		claim, behind = nil, false
		if claim, err = tx.Claim(ctx, "bus sink "+s.Name(), claimed); err != nil {
			return err
		}
		if cursor, err = bus.CursorOf(ctx, tx, s.Name()); err != nil {
			return err
		}
		if behind, err = bus.Behind(ctx, tx, cursor.After); err != nil || behind {
			return err
		}
		_, err = tx.Complete(ctx, claim)
		return err
	})
	switch {
	case errors.Is(err, store.ErrClaimed):
		return false, nil
	case err != nil || !behind:
		return false, err
	}
	err = claim.Do(ctx, func(ctx context.Context) error { return send(ctx, db, log, s, &cursor) })
	if err != nil {
		return false, db.Release(ctx, claim, fmt.Errorf("%s: %w", s.Name(), err))
	}
	err = db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		held, err := tx.Complete(ctx, claim)
		if err != nil || !held {
			more = false // whoever has it now looks by itself
			return err
		}
		more, err = bus.Behind(ctx, tx, cursor.After)
		return err
	})
	return more, err
}

// send sends everything behind the cursor, and moves it after each page.
func send(ctx context.Context, db *store.DB, log *slog.Logger, s Sink, cursor *bus.Cursor) error {
	session, err := s.Open(ctx, cursor.Client)
	if err != nil {
		return problem.Wrap(problem.Unavailable, err, "it cannot be reached: %v", err)
	}
	defer session.Close()
	refused := func(v bus.Value, why error) {
		log.WarnContext(ctx, "a value cannot be forwarded", "sink", s.Name(), "key", v.Key, "error", why.Error())
	}
	for more := true; more; {
		var page []bus.Value
		var upTo int64
		if page, upTo, more, err = bus.Next(ctx, db, s.Selection(), cursor.After); err != nil {
			return err
		}
		if len(page) > 0 {
			if err := session.Send(ctx, page, refused); err != nil {
				return problem.Wrap(problem.Unavailable, err, "it did not take what was sent: %v", err)
			}
		}
		if err := bus.Advance(ctx, db, s.Name(), upTo); err != nil {
			return err
		}
		cursor.After = upTo
	}
	return nil
}
