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
		for _, typ := range []string{events.TopologyChanged, events.JobReady, events.JobFinished} {
			if err := tx.Emit(ctx, typ, "s", events.Topology{}); err != nil {
				return err
			}
		}
		return nil
	}))
	for _, row := range []struct{ asked, want []string }{
		{nil, []string{events.TopologyChanged, events.JobReady, events.JobFinished}},
		{[]string{events.JobReady}, []string{events.JobReady}},
		{[]string{events.JobFinished, events.TopologyChanged}, []string{events.TopologyChanged, events.JobFinished}},
		{[]string{events.JobDegraded}, nil},
	} {
		var types []string
		for _, e := range storetest.Published(db, row.asked...) {
			types = append(types, e.Type())
		}
		require.Equal(t, row.want, types)
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		storetest.URL(b)
	}
}
