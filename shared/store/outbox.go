package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/problem"
)

const (
	insertOutbox  = `insert into outbox (id, event) values ($1, $2)`
	waitingOutbox = `select count(*), coalesce(extract(epoch from clock_timestamp() - min(created_at)), 0)::float8 from outbox`

	// A row that is being published again is left alone by others for as long again.
	leftOutbox = `
update outbox set tried_at = now() where id in (
    select id from outbox where coalesce(tried_at, created_at) < now() - make_interval(secs => $1) or id = any($3)
    order by id limit $2 for update skip locked)
returning event`

	// This alone need not be on disk before anyone goes on: a row that a crash brings back is published twice, which every
	// reaction absorbs. The setting is for this one statement.
	deleteOutbox = `
with sent as (delete from outbox where id = any($1) and set_config('synchronous_commit', 'off', true) = 'off')
select exists (select from outbox where coalesce(tried_at, created_at) < now() - make_interval(secs => $2))`
)

// LeftFor is the age from which an event in the outbox was left there, by a crash or by a Broker that did not take it:
// whoever committed it has published it by then, or given up.
const LeftFor = publishFor + 2*clearFor + 5*time.Second

// leftMost is how many of those are taken along by whoever reaches the Broker.
const leftMost = 50

// Emit stores an event in the outbox, in this transaction. It is published after the commit.
func (tx *Tx) Emit(ctx context.Context, typ, subject string, data any) error {
	e, err := events.New(ctx, tx.source, typ, subject, data)
	if err != nil {
		return err
	}
	body, err := e.MarshalJSON() // json.Marshal would look through the result once more
	if err != nil {
		return fmt.Errorf("encode %s: %w", typ, err)
	}
	tx.Append(insertOutbox, e.ID(), body)
	tx.emitted = append(tx.emitted, e)
	return nil
}

// Waiting returns how many events are in the outbox and how long the oldest has been.
func (db *DB) Waiting(ctx context.Context) (events int64, lag time.Duration, err error) {
	var seconds float64
	if err := db.QueryRow(ctx, waitingOutbox).Scan(&events, &seconds); err != nil {
		return 0, 0, fmt.Errorf("read the outbox: %w", err)
	}
	return events, time.Duration(seconds * float64(time.Second)), nil
}

// left returns up to limit events, oldest first, that are in the outbox for longer than age or named by ids, and for as
// long again only to this caller.
func (db *DB) left(ctx context.Context, age time.Duration, limit int, ids []uuid.UUID) ([]cloudevents.Event, error) {
	read := func(row pgx.CollectableRow) (cloudevents.Event, error) {
		var body []byte
		e := cloudevents.New()
		if err := row.Scan(&body); err != nil {
			return e, err
		}
		return e, json.Unmarshal(body, &e)
	}
	left, err := Collect(ctx, db, "read the outbox", read, leftOutbox, age.Seconds(), limit, ids)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(left, func(a, b cloudevents.Event) int { return strings.Compare(a.ID(), b.ID()) }) // in order of time
	return left, nil
}

// Sweep publishes up to limit events that are older than age and still in the outbox, oldest first, and returns how many
// the Broker accepted.
func (db *DB) Sweep(ctx context.Context, age time.Duration, limit int) (int, error) {
	b, err := db.publishing.resend(ctx, age, limit, nil)
	if err != nil {
		return 0, err
	}
	select {
	case <-b.ended:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if b.err != nil {
		return len(b.sent), problem.Wrap(problem.Unavailable, b.err, "the Broker is away")
	}
	return len(b.sent), nil
}

// Settle waits until everything that was committed here before has been published, or left to the sweep.
func (db *DB) Settle(ctx context.Context) error { return db.publishing.settle(ctx) }

// Finish is Settle for a process that ends, which then looks, if it has used the store, whether events were left in the
// outbox by others or itself, and publishes some of them. The clock of outbox/sweep may rest, and what has it tick again
// may be among them.
func (db *DB) Finish(ctx context.Context) error {
	if err := db.Settle(ctx); err != nil || db.Stat().NewConnsCount() == 0 {
		return err
	}
	if err := db.publishing.again(ctx); err != nil {
		return err
	}
	return db.Settle(ctx)
}
