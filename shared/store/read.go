package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Collect, One and Page run a statement with rows. purpose begins their errors, such as "read jobs". They ignore the error of
// Query, since pgx also returns it with the rows.

// Collect returns all rows, or an empty list.
func Collect[T any](
	ctx context.Context, q Querier, purpose string, read pgx.RowToFunc[T], sql string, args ...any,
) ([]T, error) {
	rows, _ := q.Query(ctx, sql, args...)
	list, err := pgx.CollectRows(rows, read)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", purpose, err)
	}
	return list, nil
}

// One returns the only row. The error wraps pgx.ErrNoRows or pgx.ErrTooManyRows if there is not exactly one.
func One[T any](
	ctx context.Context, q Querier, purpose string, read pgx.RowToFunc[T], sql string, args ...any,
) (T, error) {
	rows, _ := q.Query(ctx, sql, args...)
	one, err := pgx.CollectExactlyOneRow(rows, read)
	if err != nil {
		var none T
		return none, fmt.Errorf("%s: %w", purpose, err)
	}
	return one, nil
}

// PageBytes bounds the size of one answer, which is in memory several times while it is encoded.
const PageBytes = 2 << 20

// Page returns the first rows that fit into PageBytes together, at least one; cut says that there are more.
func Page[T any](
	ctx context.Context, q Querier, purpose string, read pgx.RowToFunc[T], size func(T) int, sql string, args ...any,
) (list []T, cut bool, err error) {
	rows, _ := q.Query(ctx, sql, args...)
	defer rows.Close()
	list = []T{} // none is an empty list
	for sum := 0; !cut && rows.Next(); {
		one, err := read(rows)
		if err != nil {
			return nil, false, fmt.Errorf("%s: %w", purpose, err)
		}
		sum += size(one)
		if cut = sum > PageBytes && len(list) > 0; !cut {
			list = append(list, one)
		}
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return nil, false, fmt.Errorf("%s: %w", purpose, err)
	}
	return list, cut, nil
}
