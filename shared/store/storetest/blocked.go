package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store"
)

// AwaitBlocked returns when a transaction of the database waits for another.
func AwaitBlocked(t testing.TB, db *store.DB) {
	t.Helper()
	const blocked = `select exists (select from pg_stat_activity
where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0)`
	require.Eventually(t, func() (yes bool) {
		return db.QueryRow(t.Context(), blocked).Scan(&yes) == nil && yes
	}, time.Minute, 5*time.Millisecond, "nobody waits")
}
