package storetest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/store"
)

// TestLocksOutOfOrderAreSeen: in statements of their own and in those that are sent together with others.
func TestLocksOutOfOrderAreSeen(t *testing.T) {
	t.Parallel()
	w := &lockWatch{held: map[*pgx.Conn][]string{}, wrong: map[string]bool{}}
	db, err := store.Open(t.Context(), store.Config{DatabaseURL: URL(t)}, events.Publisher(&Recorder{}), w)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	do := func(statements ...string) error {
		clear(w.wrong)
		require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			for _, s := range statements[:len(statements)-1] {
				tx.Append(s)
			}
			if _, err := tx.Exec(ctx, statements[len(statements)-1]); err != nil {
				return err
			}
			return tx.AwaitTurn(ctx, store.TurnActions, "a")
		}))
		return w.outOfOrder()
	}
	require.NoError(t, do(`update policies set name = name`, `select`))
	require.NoError(t, do(`select from archives`, `select from claims for update skip locked`))
	require.ErrorContains(t, do(`update applications set name = name`), "applications, then actions, by: select pg_advisory_xact_lock")
	require.ErrorContains(t, do(`with old as (select from jobs for update) select 1`, `update nodes set agent = agent`),
		"jobs, then nodes, by: update nodes")
	require.ErrorContains(t, do(`select from jobs j where exists (select 1 from nodes) for update of j`), "jobs, then actions")
}
