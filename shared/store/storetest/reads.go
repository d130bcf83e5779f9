package storetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store"
)

// Reads returns how many rows of the table are read by what run does in its transaction, with generic plans.
func Reads(t testing.TB, db *store.DB, table string, run func(context.Context, *store.Tx) error) (rows int64) {
	t.Helper()
	const read = `select coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) from pg_stat_xact_user_tables where relname = $1`
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.Exec(ctx, `set local plan_cache_mode = force_generic_plan`); err != nil {
			return err
		}
		if err := run(ctx, tx); err != nil {
			return err
		}
		return tx.QueryRow(ctx, read, table).Scan(&rows)
	}))
	return rows
}
