package store

import (
	"context"
	"encoding/json"
	"fmt"
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

	leftOutbox = `select event from outbox where created_at < now() - make_interval(secs => $1) order by id limit $2`

	// This alone need not be on disk before anyone goes on: a row that a crash brings back is published twice, which every
	// reaction absorbs. The setting is for this one statement.
	deleteOutbox = `delete from outbox where id = any($1) and set_config('synchronous_commit', 'off', true) = 'off'`
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
// an event twice, which every reaction absorbs. The count is of accepted events.
func (db *DB) Publish(ctx context.Context, batch []cloudevents.Event) (int, error) {
	var accepted []uuid.UUID
	var failure error
	for _, e := range batch {
		events.Sign(&e, db.eventKey)
		if failure = db.publisher.Publish(ctx, e); failure != nil {
			break
		}
		id, err := uuid.Parse(e.ID())
		if err != nil {
			return len(accepted), fmt.Errorf("outbox id: %w", err)
		}
		accepted = append(accepted, id)
	}
	if len(accepted) > 0 {
		if _, err := db.Exec(ctx, deleteOutbox, accepted); err != nil {
			return len(accepted), fmt.Errorf("clear the outbox: %w", err)
		}
	}
	return len(accepted), failure
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
	n, err := db.Publish(ctx, left)
	if err != nil {
		return n, problem.Wrap(problem.Unavailable, err, "the Broker is away")
	}
	return n, nil
}
