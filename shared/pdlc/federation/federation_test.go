package federation_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/pdlc/federated"
	"github.com/littoral-project/littoral/shared/pdlc/federation"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestRounds(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	tx := func(do func(context.Context, *store.Tx) error) error { return db.Tx(t.Context(), do) }
	var f federation.Federation
	begin := func(p federation.Plan) error {
		return tx(func(ctx context.Context, tx *store.Tx) (err error) {
			f, err = federation.Save(ctx, tx, "load", p, "anna")
			return err
		})
	}
	require.Equal(t, problem.Invalid, problem.KindOf(begin(federation.Plan{Fewest: 1})))
	require.NoError(t, begin(federation.Plan{Plan: federated.Plan{Shape: federated.Shape{Lags: 2, Horizon: 1}}, Fewest: 3}))
	require.Equal(t, []float64{0, 0, 0}, f.Weights)
	send := func(who string, round int, change ...float64) error {
		return tx(func(ctx context.Context, tx *store.Tx) error {
			return federation.Take(ctx, tx, "load", who, federation.Sent{Round: round, Change: change, Windows: 10})
		})
	}
	over := func() federation.Federation {
		_, err := db.Exec(t.Context(), `update pdlc_federations set ends_at = now() - interval '1 second'`)
		require.NoError(t, err)
		require.NoError(t, tx(federation.EndRounds))
		now, err := federation.Get(t.Context(), db, "load")
		require.NoError(t, err)
		return now
	}
	require.NoError(t, send("a", f.Round, 0.1, 0, 0))
	require.NoError(t, send("b", f.Round, 0.3, 0, 0))
	require.NoError(t, send("b", f.Round, 0.2, 0, 0), "a repeat replaces it")
	require.Equal(t, problem.Invalid, problem.KindOf(send("c", f.Round, 1)))
	require.Equal(t, problem.NotFound, problem.KindOf(tx(func(ctx context.Context, tx *store.Tx) error {
		return federation.Take(ctx, tx, "none", "a", federation.Sent{})
	})))
	require.Equal(t, f.Round, over().Round, "two are fewer than three")
	require.NoError(t, send("c", f.Round, 0.3, 0, 0))
	require.NoError(t, send("mallory", f.Round, -4, 2, 2))
	next := over()
	require.Equal(t, f.Round+1, next.Round)
	require.Equal(t, 3, next.Heard)
	require.Len(t, next.Refused, 1)
	require.Equal(t, "mallory", next.Refused[0].Participant)
	require.InDelta(t, 0.2, next.Weights[0], 1e-9)
	require.Zero(t, next.Participants)
	require.Equal(t, problem.Conflict, problem.KindOf(send("late", f.Round, 0, 0, 0)), "a straggler begins anew")
}
