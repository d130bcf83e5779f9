package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/trace"
)

// openTo returns a DB that publishes that many events at once.
func openTo(t *testing.T, h events.Publisher, atOnce int) *store.DB {
	t.Helper()
	c := store.Config{DatabaseURL: storetest.URL(t), MaxConns: 4, PublishAtOnce: atOnce}
	db, err := store.Open(t.Context(), c, h, nil)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	return db
}

func TestTx_returnsWhileTheBrokerHoldsTheEvent(t *testing.T) {
	t.Parallel()
	h := storetest.NewHolding()
	var parent string
	db := openTo(t, publisherFunc(func(ctx context.Context, e cloudevents.Event) error {
		parent = trace.Parent(ctx)
		return h.Publish(ctx, e)
	}), 1)
	ctx, hangUp := context.WithCancel(trace.Start(t.Context(), ""))
	require.NoError(t, commit(ctx, db, "a"), "comes back although nobody has answered")
	require.Equal(t, "a", (<-h.Arrived).Subject())
	require.Equal(t, 1, outboxSize(t, db))
	hangUp()

	waiting := make(chan error)
	go func() { waiting <- db.Flush(t.Context()) }()
	select {
	case err := <-waiting:
		require.Fail(t, "settled while an event is on its way", err)
	case h.Answers <- nil: // the publish does not end with its caller
	}
	require.NoError(t, <-waiting)
	require.Zero(t, outboxSize(t, db))
	require.Equal(t, trace.Parent(ctx), parent, "it is a part of its caller's span")
}

func TestFlush_endsWithItsContext(t *testing.T) {
	t.Parallel()
	h := storetest.NewHolding()
	db := openTo(t, h, 1)
	require.NoError(t, db.Flush(t.Context()), "nothing is on its way")
	require.NoError(t, commit(t.Context(), db, "a"))
	<-h.Arrived
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, db.Flush(short), context.DeadlineExceeded)
}

func TestFinish_publishesWhatWasLeft(t *testing.T) {
	t.Parallel()
	away := func(t *testing.T, url, subject string) (*store.DB, *storetest.Recorder) {
		t.Helper()
		db, broker := openRecording(t, url)
		broker.Fail(errors.New("away"))
		require.NoError(t, emit(t.Context(), db, subject))
		return db, broker
	}
	t.Run("by others, long ago", func(t *testing.T) {
		t.Parallel()
		url := storetest.URL(t)
		away(t, url, "old")
		db, broker := openRecording(t, url)
		_, err := db.Exec(t.Context(), `update outbox set created_at = now() - $1::interval`, store.LeftFor)
		require.NoError(t, err)
		away(t, url, "young")
		require.NoError(t, db.Finish(t.Context()))
		require.Equal(t, []string{"old"}, subjects(broker.Events()), "young events are left to the call that made them")
		require.Equal(t, 1, outboxSize(t, db))
	})
	t.Run("by itself", func(t *testing.T) {
		t.Parallel()
		db, broker := away(t, storetest.URL(t), "refused")
		require.NoError(t, db.Finish(t.Context()), "the Broker is still away")
		require.Equal(t, 1, outboxSize(t, db))
		broker.Fail(nil)
		require.NoError(t, db.Finish(t.Context()))
		require.Equal(t, []string{"refused"}, subjects(broker.Events()))
		require.Zero(t, outboxSize(t, db))
	})
	t.Run("as long as there is time", func(t *testing.T) {
		t.Parallel()
		url := storetest.URL(t)
		away(t, url, "old")
		h := storetest.NewHolding()
		db, err := store.Open(t.Context(), store.Config{DatabaseURL: url}, h, nil)
		require.NoError(t, err)
		t.Cleanup(db.Close)
		_, err = db.Exec(t.Context(), `update outbox set created_at = now() - $1::interval`, store.LeftFor)
		require.NoError(t, err)
		short, cancel := context.WithCancel(t.Context())
		finished := make(chan error)
		go func() { finished <- db.Finish(short) }()
		require.Equal(t, "old", (<-h.Arrived).Subject())
		cancel()
		require.ErrorIs(t, <-finished, context.Canceled)
		require.Equal(t, 1, outboxSize(t, db))
	})
	t.Run("which asks nothing of a store that was not used", func(t *testing.T) {
		t.Parallel()
		db, _ := openRecording(t, "postgres://nobody@127.0.0.1:1/none?sslmode=disable")
		require.NoError(t, db.Finish(t.Context()))
	})
}

// openRecording returns a DB and the Broker that it publishes to.
func openRecording(t *testing.T, url string) (*store.DB, *storetest.Recorder) {
	t.Helper()
	broker := &storetest.Recorder{}
	db, err := store.Open(t.Context(), store.Config{DatabaseURL: url}, broker, nil)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	return db, broker
}

func TestClose_givesUpWhatIsOnItsWayAndKeepsIt(t *testing.T) {
	t.Parallel()
	h := storetest.NewHolding()
	url := storetest.URL(t)
	db, err := store.Open(t.Context(), store.Config{DatabaseURL: url, MaxConns: 2, PublishAtOnce: 2}, h, nil)
	require.NoError(t, err)
	require.NoError(t, commit(t.Context(), db, "a", "b", "c"))
	<-h.Arrived
	<-h.Arrived
	db.Close()
	broker := &storetest.Recorder{}
	next, err := store.Open(t.Context(), store.Config{DatabaseURL: url}, broker, nil)
	require.NoError(t, err)
	defer next.Close()
	require.Equal(t, 3, outboxSize(t, next))
	n, err := next.Sweep(t.Context(), 0, 10)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.Equal(t, []string{"a", "b", "c"}, subjects(broker.Events()))
}

func TestPublishing_keepsTheOrderAboutOneSubject(t *testing.T) {
	t.Parallel()
	h := storetest.NewHolding()
	db := openTo(t, h, 4)
	require.NoError(t, commit(t.Context(), db, "a", "b"))
	require.NoError(t, commit(t.Context(), db, "a", "c"))
	first := subjects([]cloudevents.Event{<-h.Arrived, <-h.Arrived, <-h.Arrived})
	slices.Sort(first)
	require.Equal(t, []string{"a", "b", "c"}, first, "subjects go side by side")
	require.Empty(t, h.Arrived, "the second event about a waits for the first, though a publish more is allowed")
	for range first {
		h.Answers <- nil
	}
	require.Equal(t, "a", (<-h.Arrived).Subject())
	h.Answers <- nil
	require.NoError(t, db.Flush(t.Context()))
	require.Zero(t, outboxSize(t, db))
}

func TestPublishing_asManyAtOnceAsAllowed(t *testing.T) {
	t.Parallel()
	h := storetest.NewHolding()
	db := openTo(t, h, 2)
	var all []string
	for i := range 10 {
		all = append(all, fmt.Sprint(i))
	}
	require.NoError(t, commit(t.Context(), db, all...))
	var seen []string
	for range all {
		seen = append(seen, (<-h.Arrived).Subject())
		require.LessOrEqual(t, len(h.Arrived), 1)
		h.Answers <- nil
	}
	require.NoError(t, db.Flush(t.Context()))
	slices.Sort(seen)
	require.Equal(t, all, seen)
	require.Zero(t, outboxSize(t, db))
}

func TestPublishing_leavesWhatIsBehindARefusedEventOfItsSubject(t *testing.T) {
	t.Parallel()
	h := storetest.NewHolding()
	db := openTo(t, h, 1)
	require.NoError(t, commit(t.Context(), db, "a", "b", "a"))
	require.NoError(t, commit(t.Context(), db, "a", "b"))
	require.Equal(t, "a", (<-h.Arrived).Subject())
	h.Answers <- errors.New("away")
	require.Equal(t, "b", (<-h.Arrived).Subject())
	h.Answers <- nil
	require.Equal(t, "b", (<-h.Arrived).Subject())
	h.Answers <- nil
	require.NoError(t, db.Flush(t.Context()))
	require.Equal(t, 3, outboxSize(t, db), "those about a")
	require.Empty(t, h.Arrived)

	swept := make(chan error)
	go func() {
		_, err := db.Sweep(t.Context(), 0, 10)
		swept <- err
	}()
	for range 3 {
		require.Equal(t, "a", (<-h.Arrived).Subject())
		h.Answers <- nil
	}
	require.NoError(t, <-swept)
	require.Zero(t, outboxSize(t, db))
}

// Handlers use the connections as well. Published events are removed later, and not published again.
func TestPublishing_removesLaterWhatCannotBeRemovedNow(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(ctx context.Context, db *store.DB) error{
		"with the next":   func(ctx context.Context, db *store.DB) error { return emit(ctx, db, "b") },
		"before it rests": func(ctx context.Context, db *store.DB) error { return db.Flush(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.New(t)
			// A removal that fails, for instance because it gets no connection in time.
			_, err := db.Exec(t.Context(), `create function refuse() returns trigger language plpgsql as 'begin raise ''not now''; end';
create trigger refuse before delete on outbox execute function refuse()`)
			require.NoError(t, err)
			require.NoError(t, emit(t.Context(), db, "a"))
			require.Equal(t, 1, outboxSize(t, db))
			_, err = db.Exec(t.Context(), `drop trigger refuse on outbox`)
			require.NoError(t, err)
			require.NoError(t, next(t.Context(), db))
			require.Zero(t, outboxSize(t, db))
		})
	}
}

// A Broker that blocks slows its publishers down, which then leave their events in the outbox; no call fails.
func TestPublishing_isBounded(t *testing.T) {
	t.Parallel()
	h := storetest.NewHolding()
	db := openTo(t, h, 1)
	const most = 256
	for i := range most {
		require.NoError(t, commit(t.Context(), db, fmt.Sprint(i)))
	}
	short, cancel := context.WithCancel(t.Context())
	over := make(chan error)
	go func() { over <- commit(short, db, "over") }()
	require.Eventually(t, func() bool { return outboxSize(t, db) == most+1 }, 10*time.Second, time.Millisecond)
	cancel() // a call without time left stops waiting for its turn
	require.NoError(t, <-over, "it is committed")
	require.NoError(t, commit(t.Context(), db, "patient"), "nor does anybody wait for a Broker that takes nothing")
	close(h.Answers) // nil for each
	require.NoError(t, db.Flush(t.Context()))
	require.Len(t, h.Arrived, most)
	require.Equal(t, 2, outboxSize(t, db))
	require.NoError(t, db.Finish(t.Context()), "what had no turn goes out before the process ends")
	require.Len(t, h.Arrived, most+2)
	require.Zero(t, outboxSize(t, db))
}
