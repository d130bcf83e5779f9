package boot

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// published opens a store on the database, commits an event and waits until the Broker holds it.
func published(t *testing.T, url string) (*store.DB, *storetest.Holding) {
	t.Helper()
	broker := storetest.NewHolding()
	db, err := store.Open(t.Context(), store.Config{DatabaseURL: url}, broker, nil)
	require.NoError(t, err)
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.Emit(ctx, events.ApplicationPlaced, "a", events.Application{})
	}))
	<-broker.Arrived
	return db, broker
}

func left(t *testing.T, url string) (n int64) {
	t.Helper()
	db, err := store.Open(t.Context(), store.Config{DatabaseURL: url}, nil, nil)
	require.NoError(t, err)
	defer db.Close()
	n, _, err = db.Waiting(t.Context())
	require.NoError(t, err)
	return n
}

func TestCloseStore_waitsForEventsOnTheirWay(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	db, broker := published(t, url)
	closed := make(chan struct{})
	go func() {
		closeStore(db, time.Minute, slog.New(slog.DiscardHandler))
		close(closed)
	}()
	select {
	case <-closed:
		t.Fatal("closed while an event was on its way")
	case broker.Answers <- nil:
	}
	<-closed
	require.Zero(t, left(t, url))
}

func TestCloseStore_leavesInTheOutboxWhatTakesTooLong(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	db, _ := published(t, url)
	closeStore(db, time.Millisecond, slog.New(slog.DiscardHandler))
	require.Equal(t, int64(1), left(t, url))
}
