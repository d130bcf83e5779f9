package storetest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestEachTestHasADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	for range 5 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			db := storetest.New(t)
			var n int
			require.NoError(t, db.QueryRow(t.Context(), `select count(*) from history`).Scan(&n))
			require.Zero(t, n)
			_, err := db.Exec(t.Context(), `insert into history (event) values ('x')`)
			require.NoError(t, err)
		})
	}
}

func TestPublishedListsWhatWasEmitted(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	require.NoError(t, db.Tx(store.WithSource(t.Context(), "/test"), func(ctx context.Context, tx *store.Tx) error {
		return tx.Emit(ctx, events.TopologyChanged, "s", events.Topology{})
	}))
	require.Len(t, storetest.Published(db), 1)
	require.Equal(t, events.TopologyChanged, storetest.Published(db)[0].Type())
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		storetest.URL(b)
	}
}
