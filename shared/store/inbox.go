package store

import (
	"context"
	"fmt"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/events"
)

const (
	insertInbox = `insert into inbox (consumer, source, id) values ($1, $2, $3) on conflict do nothing`

	// Keep the marks of events that are dead letters and may be sent again: those not replayed yet, and those replayed
	// a short time ago, which may still be on their way; and of events in the outbox, which another consumer lacks.
	forgetInbox = `delete from inbox where ctid = any(array(select i.ctid from inbox i where i.at < now() - $1::interval
and not exists (select from dead_letters d where d.event_id = i.id and d.source = i.source
and (d.replayed_at is null or d.replayed_at > now() - interval '1 day'))
and not exists (select from outbox o where o.id::text = i.id)
order by i.at limit $2))`

	forgetAtOnce = 10_000 // rows, in one transaction
)

// React runs fn in a transaction that also records that consumer has seen the event, so that a duplicate has no effect.
// fresh is false for a duplicate. The last of its consumers takes the event out of the outbox with its commit.
func (db *DB) React(ctx context.Context, consumer string, e cloudevents.Event, fn func(context.Context, *Tx) error) (fresh bool, err error) {
	err = db.Tx(ctx, func(ctx context.Context, tx *Tx) error {
		tag, err := tx.Exec(ctx, insertInbox, consumer, e.Source(), e.ID())
		if err != nil {
			return fmt.Errorf("inbox: %w", err)
		}
		if fresh = tag.RowsAffected() == 1; fresh {
			if err := fn(ctx, tx); err != nil {
				return err
			}
		}
		if id, err := uuid.Parse(e.ID()); err == nil && !events.Nudge(e.Type()) {
			tx.Append(takenOutbox, id, consumer)
		}
		return nil
	})
	return fresh, err
}

// ForgetReactions deletes the inbox marks that are older than age and returns how many there were. No Broker delivers
// an event again after so long. Marks of dead letters that a user may send again are kept.
func (db *DB) ForgetReactions(ctx context.Context, age time.Duration) (forgotten int64, err error) {
	for {
		tag, err := db.Exec(ctx, forgetInbox, age, forgetAtOnce)
		if err != nil {
			return forgotten, fmt.Errorf("inbox: %w", err)
		}
		forgotten += tag.RowsAffected()
		if tag.RowsAffected() < forgetAtOnce {
			return forgotten, nil
		}
	}
}
