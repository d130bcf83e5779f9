package bus

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/bus/keyexpr"
	"github.com/littoral-project/littoral/shared/store"
)

// Cursor says how far a broker elsewhere has what is published.
type Cursor struct {
	After  int64     // it has every change up to this number
	Client uuid.UUID // we are known there by it, and nobody else is
}

const (
	insertSink = `insert into bus_sinks (name) values ($1) on conflict do nothing`

	selectSink = `select number, client from bus_sinks where name = $1`

	advanceSink = `update bus_sinks set number = $2 where name = $1 and number < $2`

	deleteSinks = `delete from bus_sinks where name <> all($1)`
)

// CursorOf returns the cursor of the broker of that name; of one that was not known, it is at the beginning.
func CursorOf(ctx context.Context, q store.Querier, name string) (c Cursor, err error) {
	if _, err := q.Exec(ctx, insertSink, name); err != nil {
		return c, fmt.Errorf("note the sink %s: %w", name, err)
	}
	if err := q.QueryRow(ctx, selectSink, name).Scan(&c.After, &c.Client); err != nil {
		return c, fmt.Errorf("read the cursor of %s: %w", name, err)
	}
	return c, nil
}

// Advance stores that the broker has every change up to the number.
func Advance(ctx context.Context, q store.Querier, name string, number int64) error {
	if _, err := q.Exec(ctx, advanceSink, name, number); err != nil {
		return fmt.Errorf("store the cursor of %s: %w", name, err)
	}
	return nil
}

// ForgetSinks deletes the cursors of all brokers but these: what they have not seen is not kept for them any more.
func ForgetSinks(ctx context.Context, q store.Querier, except []string) error {
	if _, err := q.Exec(ctx, deleteSinks, append([]string{}, except...)); err != nil {
		return fmt.Errorf("forget sinks: %w", err)
	}
	return nil
}

// Next returns the first changes of the selection with numbers above after, in their order, and the number up to which these
// are all; more is false if there were none behind it.
func Next(ctx context.Context, q store.Querier, selection keyexpr.Expr, after int64) (page []Value, upTo int64, more bool, err error) {
	all, more, err := source{q}.After(ctx, after, pageRows)
	upTo = after
	for _, v := range all {
		upTo = v.Number
		if selection.Includes(v.Key) {
			page = append(page, v)
		}
	}
	return page, upTo, more, err
}

// Behind reports whether anything was published after the number.
func Behind(ctx context.Context, q store.Querier, number int64) (bool, error) {
	newest, err := source{q}.Newest(ctx)
	return newest > number, err
}
