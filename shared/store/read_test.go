package store_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

// sqlNumbers returns 1 to $1, and fails at numbers above $2.
const sqlNumbers = `select n / (case when n > $2 then 0 else 1 end) from generate_series(1, $1::int) n`

// The pool has one connection: if it is not released, all following queries block.
func TestReading(t *testing.T) {
	t.Parallel()
	db, _ := openRecording(t, storetest.URL(t))
	for name, in := range map[string]func(func(store.Querier)){
		"the pool": func(read func(store.Querier)) { read(db) },
		"a transaction": func(read func(store.Querier)) {
			require.NoError(t, db.Tx(t.Context(), func(_ context.Context, tx *store.Tx) error {
				read(tx)
				return nil
			}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			number := pgx.RowTo[int]
			in(func(q store.Querier) {
				list, err := store.Collect(t.Context(), q, "count", number, sqlNumbers, 3, 3)
				require.NoError(t, err)
				require.Equal(t, []int{1, 2, 3}, list)
				list, err = store.Collect(t.Context(), q, "count", number, sqlNumbers, 0, 0)
				require.NoError(t, err)
				require.Equal(t, []int{}, list, "none is an empty list")

				n, err := store.One(t.Context(), q, "count", number, sqlNumbers, 1, 1)
				require.NoError(t, err)
				require.Equal(t, 1, n)
				_, err = store.One(t.Context(), q, "count", number, sqlNumbers, 0, 0)
				require.ErrorIs(t, err, pgx.ErrNoRows)
				_, err = store.One(t.Context(), q, "count", number, sqlNumbers, 2, 2)
				require.ErrorIs(t, err, pgx.ErrTooManyRows)

				size := func(int) int { return store.PageBytes / 2 }
				list, cut, err := store.Page(t.Context(), q, "count", number, size, sqlNumbers, 2, 2)
				require.NoError(t, err)
				require.Equal(t, []int{1, 2}, list)
				require.False(t, cut)
				list, cut, err = store.Page(t.Context(), q, "count", number, size, sqlNumbers, 9, 9)
				require.NoError(t, err)
				require.Equal(t, []int{1, 2}, list)
				require.True(t, cut)
				list, cut, err = store.Page(t.Context(), q, "count", number, func(int) int { return 2 * store.PageBytes }, sqlNumbers, 2, 2)
				require.NoError(t, err)
				require.Equal(t, []int{1}, list, "the first however large it is")
				require.True(t, cut)
				list, cut, err = store.Page(t.Context(), q, "count", number, size, sqlNumbers, 0, 0)
				require.NoError(t, err)
				require.Equal(t, []int{}, list)
				require.False(t, cut)
			})
		})
	}
}

func TestReading_saysWhatFailed(t *testing.T) {
	t.Parallel()
	db, _ := openRecording(t, storetest.URL(t))
	ended, end := context.WithCancel(t.Context())
	end()
	type call struct {
		ctx  context.Context
		read pgx.RowToFunc[int]
		sql  string
		args []any
	}
	ways := map[string]func(store.Querier, call) error{
		"collect": func(q store.Querier, c call) error {
			list, err := store.Collect(c.ctx, q, "count", c.read, c.sql, c.args...)
			require.Nil(t, list)
			return err
		},
		"one": func(q store.Querier, c call) error {
			n, err := store.One(c.ctx, q, "count", c.read, c.sql, c.args...)
			require.Zero(t, n)
			return err
		},
		"page": func(q store.Querier, c call) error {
			list, cut, err := store.Page(c.ctx, q, "count", c.read, func(int) int { return 1 }, c.sql, c.args...)
			require.Nil(t, list)
			require.False(t, cut)
			return err
		},
	}
	for name, c := range map[string]call{
		"what Postgres refuses":           {t.Context(), pgx.RowTo[int], `select nothing`, nil},
		"an argument that cannot be sent": {t.Context(), pgx.RowTo[int], `select $1::int`, []any{struct{ secret func() }{}}},
		"a first row that fails":          {t.Context(), pgx.RowTo[int], sqlNumbers, []any{1, 0}},
		"a later row that fails":          {t.Context(), pgx.RowTo[int], sqlNumbers, []any{2, 1}},
		"a row that cannot be read":       {t.Context(), pgx.RowTo[int], `select 'x'`, nil},
		"no time left":                    {ended, pgx.RowTo[int], `select 1`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for way, read := range ways {
				err := read(db, c)
				require.Error(t, err, way)
				require.True(t, strings.HasPrefix(err.Error(), "count: "), "%s: %v", way, err)
				require.Error(t, db.Tx(t.Context(), func(_ context.Context, tx *store.Tx) error {
					err := read(tx, c)
					require.Error(t, err, way)
					require.True(t, strings.HasPrefix(err.Error(), "count: "), "%s: %v", way, err)
					return err
				}), way)
			}
			require.Empty(t, notes(t, db), "the connection serves on")
		})
	}
}
