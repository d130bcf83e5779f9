package contracts_test

import (
	"fmt"
	"maps"
	"strings"
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
	parts := make([]string, len(tables))
	for i, table := range tables {
		parts[i] = fmt.Sprintf(`select '%s', count(*) || ' rows ' || coalesce(md5(string_agg(r::text, '|' order by r::text)), '') from %s r`,
			table, pgx.Identifier{table}.Sanitize())
	}
	rows, err := w.DB.Query(t.Context(), strings.Join(parts, " union all ")) // at once: this is asked twice for each route
	require.NoError(t, err)
	prints := make(map[string]string, len(tables))
	var table, print string
	_, err = pgx.ForEachRow(rows, []any{&table, &print}, func() error {
		prints[table] = print
		return nil
	})
	require.NoError(t, err)
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
