package store

import (
	"context"
	"fmt"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
)

const insertInbox = `insert into inbox (consumer, source, id) values ($1, $2, $3) on conflict do nothing`

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
