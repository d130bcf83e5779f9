package broker

import (
	"context"
	"encoding/json"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/littoral-project/littoral/shared/store"
)

// schema has two tables: the pending deliveries, and the dead letters. The lock prevents two hosts from creating them
// at the same time. A delivery with dead_letter set goes to the dead letter sink instead of the subscriber.
const schema = `
select pg_advisory_xact_lock(hashtext('littoral broker schema'));
create schema if not exists broker;
create table if not exists broker.dead_letters (
    id          bigint generated always as identity primary key,
    at          timestamptz not null default now(),
    trigger     text        not null,
    event       json        not null,
    attempts    int         not null,
    destination text        not null,
    code        int         not null,
    answer      text        not null,
    sink        text        not null default '',
    sink_state  text        not null default 'none' check (sink_state in ('none', 'pending', 'delivered', 'failed'))
);
create table if not exists broker.deliveries (
    id          bigint generated always as identity primary key,
    trigger     text        not null,
    event       json        not null,
    attempt     int         not null default 0,
    due         timestamptz not null default now(),
    dead_letter bigint references broker.dead_letters (id) on delete cascade
);`

const (
	insertDelivery = `insert into broker.deliveries (trigger, event, dead_letter)
select trigger, $2::json, $3::bigint from unnest($1::text[]) with ordinality as t (trigger, n) order by n returning id`
	selectDeliveries = `select id, trigger, event, attempt, due, dead_letter from broker.deliveries order by id`
	deleteDelivery   = `delete from broker.deliveries where id = $1`
	postponeDelivery = `update broker.deliveries set attempt = $2, due = $3 where id = $1`
	insertDeadLetter = `insert into broker.dead_letters
(trigger, event, attempts, destination, code, answer, sink, sink_state) values ($1, $2, $3, $4, $5, $6, $7, $8) returning id`
	updateDeadLetter  = `update broker.dead_letters set sink_state = $2 where id = $1`
	selectDeadLetters = `select id, at, trigger, event, attempts, destination, code, answer, sink, sink_state
from broker.dead_letters order by id desc limit $1`
)

func createSchema(ctx context.Context, p *pgxpool.Pool) error {
	return pgx.BeginFunc(ctx, p, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, schema)
		return err
	})
}

// insertDeliveries stores rows, all for one event, in one statement and sets their ids.
func insertDeliveries(ctx context.Context, q store.Querier, rows []*delivery) error {
	if len(rows) == 0 {
		return nil
	}
	names := make([]string, len(rows))
	for i, d := range rows {
		names[i] = d.trigger.name
	}
	body, err := encode(rows[0].event)
	if err != nil {
		return err
	}
	ids, err := store.Collect(ctx, q, "store the event", pgx.RowTo[int64], insertDelivery, names, body, rows[0].deadLetter)
	if err != nil {
		return err
	}
	for i, id := range ids {
		rows[i].id = id
	}
	return nil
}

// encode keeps the data byte for byte: as JSON it would be reformatted, which would break a signature.
func encode(e cloudevents.Event) ([]byte, error) {
	e.DataBase64 = true
	return json.Marshal(e)
}

func decode(body []byte) (cloudevents.Event, error) {
	e := cloudevents.New()
	err := json.Unmarshal(body, &e)
	return e, err
}
