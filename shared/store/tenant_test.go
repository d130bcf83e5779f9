package store_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

// TestPostgresKnowsForWhomItIsAsked in a statement, and not any more in the next on the same connection.
func TestPostgresKnowsForWhomItIsAsked(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), store.Config{DatabaseURL: storetest.URL(t), MaxConns: 1}, events.Publisher(&storetest.Recorder{}), nil)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	const asked = `select coalesce(current_setting('littoral.tenant', true), '')`
	for _, tenant := range []store.Tenant{store.Application("a"), store.Person("person:'b'"), store.Everybody} {
		told, err := store.One(t.Context(), db.As(tenant), "ask", pgx.RowTo[string], asked)
		require.NoError(t, err)
		require.Equal(t, string(tenant), told)
		require.NoError(t, db.As(tenant).QueryRow(t.Context(), asked).Scan(&told))
		require.Equal(t, string(tenant), told)
		require.NoError(t, db.QueryRow(t.Context(), asked).Scan(&told))
		require.Empty(t, told)
	}

	q := db.As(store.Everybody)
	_, err = q.Exec(t.Context(), `create table kept as select current_setting('littoral.tenant', true) as for_whom`)
	require.NoError(t, err)
	tag, err := q.Exec(t.Context(), `update kept set for_whom = for_whom || '!'`)
	require.NoError(t, err)
	require.Equal(t, int64(1), tag.RowsAffected())
	var told string
	require.NoError(t, q.QueryRow(t.Context(), `select for_whom from kept`).Scan(&told))
	require.Equal(t, "all!", told)
	require.ErrorIs(t, q.QueryRow(t.Context(), `select for_whom from kept where false`).Scan(&told), pgx.ErrNoRows)

	_, err = q.Exec(t.Context(), `select 1/0`)
	require.ErrorContains(t, err, "division by zero")
	_, err = store.Collect(t.Context(), q, "divide", pgx.RowTo[int], `select 1/(n-1) from generate_series(5, 1, -1) n`)
	require.ErrorContains(t, err, "division by zero")
	require.NoError(t, q.QueryRow(t.Context(), asked).Scan(&told), "the connection is there for others")
	db.Close()
	require.Error(t, q.QueryRow(t.Context(), asked).Scan(&told))
}
