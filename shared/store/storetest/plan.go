package storetest

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store"
)

// Plan returns the generic plan of a statement; arguments are its parameters as SQL, empty if it has none. Sequential scans are
// off, since tables are empty in tests, so the plan reads a whole table or index only where no index condition fits.
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
