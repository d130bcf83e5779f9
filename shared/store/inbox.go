package store

import (
	"context"
	"fmt"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
)

const (
	insertInbox = `insert into inbox (consumer, source, id) values ($1, $2, $3) on conflict do nothing`

	// A dead letter that was not sent again can be, at any time, to all who take such events; one that was may be on its way
	// to them.
	forgetInbox = `delete from inbox where ctid = any(array(select i.ctid from inbox i where i.at < now() - $1::interval
and not exists (select from dead_letters d where d.event_id = i.id and d.source = i.source
and (d.replayed_at is null or d.replayed_at > now() - interval '1 day'))
limit $2))`

	forgetAtOnce = 10_000 // rows, in one transaction
)

// React runs fn in the transaction that records that consumer has seen the event, so a duplicate does nothing more.
// fresh is false for a duplicate.
func (db *DB) React(ctx context.Context, consumer string, e cloudevents.Event, fn func(context.Context, *Tx) error) (fresh bool, err error) {
	err = db.Tx(ctx, func(ctx context.Context, tx *Tx) error {
		tag, err := tx.Exec(ctx, insertInbox, consumer, e.Source(), e.ID())
		if err != nil {
			return fmt.Errorf("inbox: %w", err)
		}
		if fresh = tag.RowsAffected() == 1; !fresh {
			return nil
		}
		return fn(ctx, tx)
	})
	return fresh, err
}

// ForgetReactions forgets which events were worked off longer than age ago, and returns how many marks that were. No
// Broker delivers an event again after so long, and those that a user may send again are kept in mind.
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
