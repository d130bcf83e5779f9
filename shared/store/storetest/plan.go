package storetest

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store"
)

// Plan returns how Postgres would work a statement off whatever its parameters are, for which arguments stand as SQL; empty
// where it has none. It reads a whole table, or all of an index, only where no condition of an index helps: tables are empty
// in tests.
func Plan(t testing.TB, db *store.DB, sql, arguments string) string {
	t.Helper()
	conn, err := db.Acquire(t.Context())
	require.NoError(t, err)
	pg := conn.Hijack() // its settings are for nobody else
	defer func() { _ = pg.Close(t.Context()) }()
	_, err = pg.Exec(t.Context(), `set enable_seqscan = off; set enable_indexscan = off; set plan_cache_mode = force_generic_plan; prepare it as `+sql)
	require.NoError(t, err)
	if arguments != "" {
		arguments = "(" + arguments + ")"
	}
	lines, err := store.Collect(t.Context(), pg, "explain", pgx.RowTo[string], `explain (costs off) execute it `+arguments)
	require.NoError(t, err)
	return strings.Join(lines, "\n")
}
