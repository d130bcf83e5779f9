package contracts_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store"
)

// stored returns a fingerprint of every table: its number of rows and a hash of its content.
func (w *world) stored(t testing.TB) map[string]string {
	t.Helper()
	tables, err := store.Collect(t.Context(), w.DB, "list the tables", pgx.RowTo[string],
		`select table_name from information_schema.tables where table_schema = 'public'`)
	require.NoError(t, err)
	require.Contains(t, tables, "jobs")
	prints := make(map[string]string, len(tables))
	for _, table := range tables {
		name := pgx.Identifier{table}.Sanitize()
		var n int
		var hash string
		require.NoError(t, w.DB.QueryRow(t.Context(), fmt.Sprintf(
			`select count(*), coalesce(md5(string_agg(r::text, '|' order by r::text)), '') from %s r`, name)).Scan(&n, &hash))
		prints[table] = fmt.Sprintf("%d rows %s", n, hash)
	}
	return prints
}

// unchanged requires that calls leave every table as it was.
func (w *world) unchanged(t testing.TB, calls func()) {
	t.Helper()
	before := w.stored(t)
	calls()
	after := w.stored(t)
	if !maps.Equal(before, after) {
		require.Equal(t, before, after, "something was stored")
	}
}
