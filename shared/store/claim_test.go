package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func claim(t *testing.T, db *store.DB, lasts time.Duration) (c *store.Claim, err error) {
	t.Helper()
	err = db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		c, err = tx.Claim(ctx, "work", lasts)
		return err
	})
	return c, err
}

func complete(t *testing.T, db *store.DB, c *store.Claim) (held bool) {
	t.Helper()
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		held, err = tx.Complete(ctx, c)
		return err
	}))
	return held
}

func TestAClaimIsForOneAtATime(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	first, err := claim(t, db, time.Minute)
	require.NoError(t, err)
	_, err = claim(t, db, time.Minute)
	require.ErrorIs(t, err, store.ErrClaimed)
	require.True(t, complete(t, db, first))
	second, err := claim(t, db, time.Minute)
	require.NoError(t, err)
	cause := errors.New("it failed")
	require.Equal(t, cause, db.Release(t.Context(), second, cause))
	_, err = claim(t, db, time.Minute)
	require.NoError(t, err, "the next one need not wait after a failure")
}

// TestAnExpiredClaimCanBeClaimedAgain: whoever had it may be dead. If not, its outcome is too late.
func TestAnExpiredClaimCanBeClaimedAgain(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	late, err := claim(t, db, time.Minute)
	require.NoError(t, err)
	_, err = db.Exec(t.Context(), `update claims set ends_at = now() - interval '1 s'`)
	require.NoError(t, err)
	next, err := claim(t, db, time.Minute)
	require.NoError(t, err)
	require.False(t, complete(t, db, late))
	require.True(t, complete(t, db, next))
}

func TestWorkUnderAClaimEndsBeforeTheClaim(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	c, err := claim(t, db, time.Minute)
	require.NoError(t, err)
	ends := time.Now().Add(time.Minute)
	require.NoError(t, c.Do(t.Context(), func(ctx context.Context) error {
		deadline, ok := ctx.Deadline()
		require.True(t, ok)
		require.True(t, deadline.Before(ends))
		return nil
	}))
}

func TestForgetClaims_keepsThoseThatMayBeInUse(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	_, err := db.Exec(t.Context(), `insert into claims (key, token, ends_at)
select 'claim ' || age, gen_random_uuid(), now() - age from unnest(array[interval '-1 min', '1 min', '2 days']) age`)
	require.NoError(t, err)
	require.NoError(t, db.ForgetClaims(t.Context()))
	var left int
	require.NoError(t, db.QueryRow(t.Context(), `select count(*) from claims`).Scan(&left))
	require.Equal(t, 2, left)
}
