package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestExpect_dialsTheOneConnectionThatIsThenUsed(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	for range 3 {
		db.Expect(t.Context())
		require.Zero(t, outboxSize(t, db))
	}
	require.NoError(t, emit(t.Context(), db, "a"))
	require.Equal(t, int64(1), db.Stat().NewConnsCount())
}

func TestExpect_leavesErrorsToWhoeverAsks(t *testing.T) {
	t.Parallel()
	c := store.Config{DatabaseURL: "postgres://nobody@127.0.0.1:1/none?sslmode=disable"}
	db, err := store.Open(t.Context(), c, &storetest.Recorder{}, nil)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	db.Expect(t.Context())
	_, err = db.Exec(t.Context(), `select 1`)
	require.Equal(t, problem.Unavailable, problem.KindOf(store.Classify(err)))
}

func TestExpect_isOverWhenNobodyComes(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	db.Expect(t.Context())
	require.Eventually(t, func() bool { return db.Stat().IdleConns() == 1 }, time.Minute, time.Millisecond)
}
