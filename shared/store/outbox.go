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
    select id from outbox where coalesce(tried_at, created_at) < now() - make_interval(secs => $1)
    order by id limit $2 for update skip locked)
returning event`

	// This alone need not be on disk before anyone goes on: a row that a crash brings back is published twice, which every
	// reaction absorbs. The setting is for this one statement.
	deleteOutbox = `
with sent as (delete from outbox where id = any($1) and set_config('synchronous_commit', 'off', true) = 'off')
select exists (select from outbox where coalesce(tried_at, created_at) < now() - make_interval(secs => $2))`
)

// After a Broker was away, whoever reaches it first takes along what others had to leave: the clock of outbox/sweep may be
// slow, so that functions can sleep.
const (
	leftFor  = 30 * time.Second // longer than any publish takes
	leftMost = 50               // events taken along by one call
)

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

// Publish hands events to the Broker and removes from the outbox those it accepted. A crash between the two publishes
// an event twice, which every reaction absorbs. The count is of accepted events; left tells that others lie there since
// a while.
func (db *DB) Publish(ctx context.Context, batch []cloudevents.Event) (n int, left bool, err error) {
	var accepted []uuid.UUID
	var failure error
	for _, e := range batch {
		events.Sign(&e, db.eventKey)
		if failure = db.publisher.Publish(ctx, e); failure != nil {
			break
		}
		id, err := uuid.Parse(e.ID())
		if err != nil {
			return len(accepted), false, fmt.Errorf("outbox id: %w", err)
		}
		accepted = append(accepted, id)
	}
	if len(accepted) > 0 {
		if err := db.QueryRow(ctx, deleteOutbox, accepted, leftFor.Seconds()).Scan(&left); err != nil {
			return len(accepted), false, fmt.Errorf("clear the outbox: %w", err)
		}
	}
	return len(accepted), left, failure
}

// Waiting returns how many events are in the outbox and how long the oldest has been.
func (db *DB) Waiting(ctx context.Context) (events int64, lag time.Duration, err error) {
	var seconds float64
	if err := db.QueryRow(ctx, waitingOutbox).Scan(&events, &seconds); err != nil {
		return 0, 0, fmt.Errorf("read the outbox: %w", err)
	}
	return events, time.Duration(seconds * float64(time.Second)), nil
}

// Sweep publishes up to limit events that are older than age and still in the outbox, oldest first.
func (db *DB) Sweep(ctx context.Context, age time.Duration, limit int) (int, error) {
	rows, err := db.Query(ctx, leftOutbox, age.Seconds(), limit)
	if err != nil {
		return 0, fmt.Errorf("read the outbox: %w", err)
	}
	left, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (cloudevents.Event, error) {
		var body []byte
		e := cloudevents.New()
		if err := row.Scan(&body); err != nil {
			return e, err
		}
		return e, json.Unmarshal(body, &e)
	})
	if err != nil {
		return 0, fmt.Errorf("read the outbox: %w", err)
	}
	slices.SortFunc(left, func(a, b cloudevents.Event) int { return strings.Compare(a.ID(), b.ID()) }) // in order of time
	n, _, err := db.Publish(ctx, left)
	if err != nil {
		return n, problem.Wrap(problem.Unavailable, err, "the Broker is away")
	}
	return n, nil
}
