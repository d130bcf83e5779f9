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

	// due: nobody has published the event o for as long as $1, or for twice, four times, ... as long if a Broker has
	// accepted it twice, three times, ... and a consumer still lacks it. That consumer may be away: then the Broker has it
	// already, and each time is one more that it delivers later.
	due = `coalesce(o.tried_at, o.created_at) < now() - make_interval(secs => $1)
and coalesce(o.tried_at, o.created_at) < now() - make_interval(secs => $1 * power(2, least(o.accepted, 7) - 1))`

	// tried_at keeps others from publishing the same rows for as long again. What all have taken meanwhile is removed.
	leftOutbox = `
with due as (
    select o.id, ` + known + ` and not ` + awaited + ` as taken from outbox o where ` + due + ` or o.id = any($3)
    order by o.id limit $2 for update skip locked),
taken as (delete from outbox where id in (select id from due where taken))
update outbox set tried_at = now() where id in (select id from due where not taken)
returning event`

	// What the Broker has accepted leaves the outbox, if no consumer is still to take it: in-memory Brokers answer when
	// all have it. Otherwise the note in accepted says that its consumers take it out from now on. Not waiting for the
	// disk is safe here: a row that a crash brings back is published twice, which every reaction absorbs. The setting is
	// for this one statement.
	deleteOutbox = `
with sent as (select o.id, ` + awaited + ` as waits from outbox o
    where o.id = any($2) and set_config('synchronous_commit', 'off', true) = 'off'),
gone as (delete from outbox where id in (select id from sent where not waits)),
kept as (update outbox set accepted = least(accepted, 30) + 1 where id in (select id from sent where waits))
select exists (select from outbox o where ` + due + `)`
)

// LeftFor is the age at which an event in the outbox counts as left behind by a crash or an absent Broker, or as lost by
// the Broker: the process that committed it has published it by then, or given up.
const LeftFor = publishFor + 2*clearFor + 5*time.Second

// leftMost is how many events left behind are published at once by a process that has just reached the Broker.
const leftMost = 50

// Emit stores an event in the outbox, in this transaction. It is published after the commit.
func (tx *Tx) Emit(ctx context.Context, typ, subject string, data any) error {
	e, err := events.New(ctx, tx.source, typ, subject, data)
	if err != nil {
		return err
	}
	body, err := e.MarshalJSON() // json.Marshal would validate the result once more
	if err != nil {
		return fmt.Errorf("encode %s: %w", typ, err)
	}
	tx.Append(insertOutbox, e.ID(), body)
	tx.emitted = append(tx.emitted, e)
	return nil
}

// Waiting returns how many events are in the outbox, since the Broker has not accepted them or a consumer has not taken
// them, and the age of the oldest.
func (db *DB) Waiting(ctx context.Context) (events int64, lag time.Duration, err error) {
	var seconds float64
	if err := db.QueryRow(ctx, waitingOutbox).Scan(&events, &seconds); err != nil {
		return 0, 0, fmt.Errorf("read the outbox: %w", err)
	}
	return events, time.Duration(seconds * float64(time.Second)), nil
}

// left returns up to limit events, oldest first, that are older than age or named by ids. For as long as age, no other
// caller gets them.
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

// Sweep publishes up to limit events of the outbox that are older than age, oldest first, and returns how many the
// Broker accepted.
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

// Flush waits until each event committed by this process has been published or left to the sweep.
func (db *DB) Flush(ctx context.Context) error { return db.publishing.flush(ctx) }

// Finish is Settle for a process that ends. If it has used the store, it also publishes some events that were left
// behind by others or by itself. The PingSource of outbox/sweep may be suspended, and the event that resumes it may be
// among these.
func (db *DB) Finish(ctx context.Context) error {
	if err := db.Flush(ctx); err != nil || db.Stat().NewConnsCount() == 0 {
		return err
	}
	if err := db.publishing.again(ctx); err != nil {
		return err
	}
	return db.Flush(ctx)
}
