// Package bus publishes values under keys, and keeps the last one of each, so that a subscriber who comes late gets the state.
//
// It is the model of Zenoh: keys and what selects them are key expressions (package keyexpr), a value has an encoding, and a
// key that is deleted leaves a tombstone for a while. The values are in Postgres; functions/bus serves them in the form of
// Zenoh's REST plugin, so that a Zenoh router can take its place.
package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/bus/keyexpr"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Encodings of values.
const (
	JSON  = "application/json"
	Bytes = "zenoh/bytes" // of a value about which nothing else was said
)

// MaxPayload is the greatest size of a value, in bytes.
const MaxPayload = 1 << 20

// Value is what was published last under a key.
type Value struct {
	Key      keyexpr.Expr
	Number   int64 // of the change; later ones have greater numbers
	At       time.Time
	Deleted  bool // there is no value any more
	Encoding string
	Payload  []byte
}

// Change is what is to be published: a value, or with Delete that there is none any more.
type Change struct {
	Key      keyexpr.Expr // without wildcards
	Delete   bool
	Encoding string // "" = Bytes
	Payload  []byte
}

const (
	upsert = `insert into bus_values (key, number, at, deleted, encoding, payload)
select key, nextval('bus_numbers'), clock_timestamp(), deleted, encoding, payload
from unnest($1::text[], $2::bool[], $3::text[], $4::bytea[]) as given (key, deleted, encoding, payload)
on conflict (key) do update set number = excluded.number, deleted = excluded.deleted, encoding = excluded.encoding,
	payload = excluded.payload, at = greatest(excluded.at, bus_values.at + interval '1 microsecond')`

	columns = `key, number, at, deleted, encoding, payload`

	// $1 and $2 bound the keys: all that begin with the chunks before the first wildcard.
	selectByKey = `select ` + columns + ` from bus_values
where key > $3 and ($1 = '' or key = $1 or key >= $1 || '/' and key < $1 || '0') and not deleted
order by key limit $2`

	selectByNumber = `select ` + columns + ` from bus_values
where number > $3 and number <= $4 and ($1 = '' or key = $1 or key >= $1 || '/' and key < $1 || '0')
order by number limit $2`

	renumber = `update bus_values set number = nextval('bus_numbers'), at = greatest(clock_timestamp(), at + interval '1 microsecond')
where key = any($1) and not deleted`

	withdraw = `update bus_values set number = nextval('bus_numbers'), at = greatest(clock_timestamp(), at + interval '1 microsecond'),
	deleted = true, payload = ''
where key >= $1 || '/' and key < $1 || '0' and not deleted`

	selectNewest = `select greatest((select max(number) from bus_values), (select max(number) from bus_forgotten), 0)`

	selectForgotten = `select coalesce(max(number), 0) from bus_forgotten`

	// A broker that has not heard of a deletion has to be told of it first.
	forget = `with gone as (delete from bus_values where deleted and at < now() - $1::interval
	and number <= coalesce((select min(number) from bus_sinks), number) returning number)
insert into bus_forgotten (number) select max(number) from gone having count(*) > 0
on conflict (singleton) do update set number = greatest(bus_forgotten.number, excluded.number)`
)

// pageRows is how many values are read at a time.
const pageRows = 200

// Publish stores the changes and gives them their numbers. The lock makes numbers visible in order; it is held until the
// transaction ends, so Publish comes last in it. A key may be changed once only.
func Publish(ctx context.Context, tx *store.Tx, changes ...Change) error {
	if len(changes) == 0 {
		return nil
	}
	keys, deleted := make([]string, len(changes)), make([]bool, len(changes))
	encodings, payloads := make([]string, len(changes)), make([][]byte, len(changes))
	for i, c := range changes {
		if _, err := keyexpr.ParseKey(string(c.Key)); err != nil {
			return err
		}
		if len(c.Payload) > MaxPayload {
			return problem.New(problem.TooLarge, "a value has at most %d bytes", MaxPayload)
		}
		keys[i], deleted[i], encodings[i], payloads[i] = string(c.Key), c.Delete, c.Encoding, c.Payload
		if c.Encoding == "" {
			encodings[i] = Bytes
		}
		if c.Delete || c.Payload == nil {
			payloads[i] = []byte{}
		}
	}
	if err := tx.Lock(ctx, store.LockBus); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, upsert, keys, deleted, encodings, payloads); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	return nil
}

// Repeat publishes again, unchanged, what is published under the keys. It comes last in a transaction, as Publish does.
func Repeat(ctx context.Context, tx *store.Tx, keys []keyexpr.Expr) error {
	if len(keys) == 0 {
		return nil
	}
	if err := tx.Lock(ctx, store.LockBus); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, renumber, keys); err != nil {
		return fmt.Errorf("publish again: %w", err)
	}
	return nil
}

// Withdraw publishes that no key below the prefix has a value any more. It comes last in a transaction, as Publish does.
func Withdraw(ctx context.Context, tx *store.Tx, prefix keyexpr.Expr) error {
	if err := tx.Lock(ctx, store.LockBus); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, withdraw, prefix); err != nil {
		return fmt.Errorf("withdraw: %w", err)
	}
	return nil
}

// Get calls each for every key of the selection that has a value, in their order, until it returns an error.
func Get(ctx context.Context, q store.Querier, selection keyexpr.Expr, each func(Value) error) error {
	last := ""
	for {
		page, more, err := read(ctx, q, selectByKey, selection.Prefix(), pageRows, last)
		if err != nil {
			return err
		}
		for _, v := range page {
			last = string(v.Key)
			if selection.Includes(v.Key) {
				if err := each(v); err != nil {
					return err
				}
			}
		}
		if !more {
			return nil
		}
	}
}

// Changes calls each for every key of the selection whose last change has a number above after and up to upTo, in the
// order of these numbers, until it returns an error.
func Changes(
	ctx context.Context, q store.Querier, selection keyexpr.Expr, after, upTo int64, each func(Value) error,
) error {
	for {
		page, more, err := read(ctx, q, selectByNumber, selection.Prefix(), pageRows, after, upTo)
		if err != nil {
			return err
		}
		for _, v := range page {
			after = v.Number
			if selection.Includes(v.Key) {
				if err := each(v); err != nil {
					return err
				}
			}
		}
		if !more {
			return nil
		}
	}
}

func read(ctx context.Context, q store.Querier, sql, prefix string, limit int, rest ...any) (page []Value, more bool, err error) {
	args := append([]any{prefix, limit}, rest...)
	page, cut, err := store.Page(ctx, q, "read the bus", pgx.RowToStructByPos[Value], Value.size, sql, args...)
	return page, cut || len(page) == limit, err
}

func (v Value) size() int { return len(v.Key) + len(v.Encoding) + len(v.Payload) }

// Forget deletes tombstones of that age, but for those that a broker elsewhere has not got yet.
func Forget(ctx context.Context, q store.Querier, age time.Duration) error {
	if _, err := q.Exec(ctx, forget, age); err != nil {
		return fmt.Errorf("forget tombstones: %w", err)
	}
	return nil
}

// Forgotten returns the number up to which tombstones may be gone: who has seen no more than that cannot go on from there.
func Forgotten(ctx context.Context, q store.Querier) (number int64, err error) {
	if err := q.QueryRow(ctx, selectForgotten).Scan(&number); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("read the bus: %w", err)
	}
	return number, nil
}
