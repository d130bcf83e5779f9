package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

// two are the consumers of the events that emit makes.
var two = []store.Subscription{
	{Consumer: "one", Type: events.TopologyChanged},
	{Consumer: "two", Type: events.TopologyChanged},
	{Consumer: "three", Type: events.TopologyChanged, Attributes: map[string]string{"orchestrator": "ocm"}},
	{Consumer: "three", Type: events.JobReady},
}

// lost returns a store whose Broker has accepted an event and delivered it to nobody.
func lost(t *testing.T) (db *store.DB, e cloudevents.Event) {
	t.Helper()
	db = storetest.New(t)
	_, err := db.Subscribe(t.Context(), two)
	require.NoError(t, err)
	require.NoError(t, emit(t.Context(), db, "a"))
	require.Equal(t, 1, outboxSize(t, db), "the Broker's word is not enough")
	return db, storetest.Published(db)[0]
}

// late makes the events of the outbox older.
func late(t *testing.T, db *store.DB, by time.Duration) {
	t.Helper()
	_, err := db.Exec(t.Context(), `update outbox set created_at = created_at - $1::interval, tried_at = tried_at - $1::interval`, by)
	require.NoError(t, err)
}

func take(t *testing.T, db *store.DB, consumer string, e cloudevents.Event) (fresh bool) {
	t.Helper()
	fresh, err := db.React(t.Context(), consumer, e, func(context.Context, *store.Tx) error { return nil })
	require.NoError(t, err)
	return fresh
}

func TestAnEventLeavesWithItsLastConsumer(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]func(t *testing.T, db *store.DB, e cloudevents.Event){
		"in a transaction": func(t *testing.T, db *store.DB, e cloudevents.Event) { require.True(t, take(t, db, "two", e)) },
		"without one":      func(t *testing.T, db *store.DB, e cloudevents.Event) { db.Taken(t.Context(), "two", e) },
		"as a dead letter": func(t *testing.T, db *store.DB, e cloudevents.Event) {
			bury(t, db, e, "two")
			n, err := db.Confirm(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, 1, n)
		},
		"as a dead letter of somebody": func(t *testing.T, db *store.DB, e cloudevents.Event) {
			bury(t, db, e, "unknown")
			_, err := db.Confirm(t.Context())
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, e := lost(t)
			require.True(t, take(t, db, "one", e))
			require.False(t, take(t, db, "one", e), "and once more")
			n, err := db.Confirm(t.Context())
			require.NoError(t, err)
			require.Zero(t, n)
			require.Equal(t, 1, outboxSize(t, db), "two has not got it")
			second(t, db, e)
			require.Zero(t, outboxSize(t, db), "three does not take this one")
		})
	}
}

func bury(t *testing.T, db *store.DB, e cloudevents.Event, consumer string) {
	t.Helper()
	_, err := db.Exec(t.Context(), `insert into dead_letters (id, consumer, source, event_id, type, event, code, answer)
values (gen_random_uuid(), $1, $2, $3, $4, '{}', 500, '')`, consumer, e.Source(), e.ID(), e.Type())
	require.NoError(t, err)
}

// TestAReactionThatFailsHasNotTakenItsEvent: the mark goes with the rest of the transaction.
func TestAReactionThatFailsHasNotTakenItsEvent(t *testing.T) {
	t.Parallel()
	db, e := lost(t)
	require.True(t, take(t, db, "one", e))
	failure := errors.New("not now")
	_, err := db.React(t.Context(), "two", e, func(context.Context, *store.Tx) error { return failure })
	require.ErrorIs(t, err, failure)
	require.Equal(t, 1, outboxSize(t, db))
}

// TestWhatTheBrokerLostIsSentAgain, and less and less often, since a consumer may be away for long.
func TestWhatTheBrokerLostIsSentAgain(t *testing.T) {
	t.Parallel()
	db, e := lost(t)
	again := func() int {
		n, err := db.Sweep(t.Context(), store.LeftFor, 10)
		require.NoError(t, err)
		return n
	}
	require.Zero(t, again(), "it may be on its way")
	late(t, db, store.LeftFor)
	require.Equal(t, 1, again())
	late(t, db, store.LeftFor)
	require.Zero(t, again(), "the Broker has accepted it twice")
	late(t, db, store.LeftFor)
	require.Equal(t, 1, again())
	for range 10 {
		late(t, db, 64*store.LeftFor)
		require.Equal(t, 1, again(), "however long that takes")
	}
	for _, sent := range storetest.Published(db) {
		require.Equal(t, e.ID(), sent.ID(), "it is the same event")
	}
	require.True(t, take(t, db, "one", e))
	require.True(t, take(t, db, "two", e))
	require.Zero(t, outboxSize(t, db))
}

// TestWhatAllHaveIsNotSentAgain: of two that take an event at the same moment, neither sees the other.
func TestWhatAllHaveIsNotSentAgain(t *testing.T) {
	t.Parallel()
	db, e := lost(t)
	_, err := db.React(t.Context(), "one", e, func(context.Context, *store.Tx) error {
		require.True(t, take(t, db, "two", e))
		return nil
	})
	require.NoError(t, err)
	_, err = db.Exec(t.Context(), `insert into outbox (id, event) select $1, $2 on conflict do nothing`, e.ID(), e)
	require.NoError(t, err)
	late(t, db, store.LeftFor)
	n, err := db.Sweep(t.Context(), store.LeftFor, 10)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Zero(t, outboxSize(t, db))
	require.Len(t, storetest.Published(db), 1)
}

// TestTriggersComeAndGo: what counts is which there are when somebody looks.
func TestTriggersComeAndGo(t *testing.T) {
	t.Parallel()
	db, e := lost(t)
	require.True(t, take(t, db, "one", e))
	subscribe := func(list []store.Subscription, changes bool) {
		changed, err := db.Subscribe(t.Context(), list)
		require.NoError(t, err)
		require.Equal(t, changes, changed)
	}
	subscribe(two, false)
	subscribe(append(two[:2:2], store.Subscription{Consumer: "four", Type: events.TopologyChanged}), true)
	require.True(t, take(t, db, "two", e))
	require.Equal(t, 1, outboxSize(t, db), "one who came later gets what is still there")
	subscribe(two[:2], true)
	n, err := db.Confirm(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, n, "nobody waits for one who left")

	require.NoError(t, emit(t.Context(), db, "b"))
	subscribe(nil, true)
	late(t, db, store.LeftFor)
	n2, err := db.Sweep(t.Context(), store.LeftFor, 10)
	require.NoError(t, err)
	require.Equal(t, 1, n2, "nobody takes it, so the Broker's word is enough")
	require.Zero(t, outboxSize(t, db))
}

// TestBeforeAnybodyKnowsTheConsumersNothingLeaves: a new deployment knows them a moment after its first event.
func TestBeforeAnybodyKnowsTheConsumersNothingLeaves(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	require.NoError(t, db.ExpectSubscriptions(t.Context()))
	require.NoError(t, emit(t.Context(), db, "a"))
	require.True(t, take(t, db, "one", storetest.Published(db)[0]))
	require.Equal(t, 1, outboxSize(t, db))
	_, err := db.Subscribe(t.Context(), two)
	require.NoError(t, err)
	require.NoError(t, db.ExpectSubscriptions(t.Context()), "they are known: a second deployment changes nothing")
	require.True(t, take(t, db, "two", storetest.Published(db)[0]))
	require.Zero(t, outboxSize(t, db))
}

// TestMarksOfWhatIsStillMissingSomewhereAreKept, or the others would react to it once more.
func TestMarksOfWhatIsStillMissingSomewhereAreKept(t *testing.T) {
	t.Parallel()
	db, e := lost(t)
	require.True(t, take(t, db, "one", e))
	_, err := db.Exec(t.Context(), `update inbox set at = now() - interval '1 year'`)
	require.NoError(t, err)
	n, err := db.ForgetReactions(t.Context(), time.Hour)
	require.NoError(t, err)
	require.Zero(t, n)
	require.True(t, take(t, db, "two", e))
	n, err = db.ForgetReactions(t.Context(), time.Hour)
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
}

// TestAReplayIsAwaitedAgain: the letter says that the Broker had given up, until it is sent again.
func TestAReplayIsAwaitedAgain(t *testing.T) {
	t.Parallel()
	db, e := lost(t)
	require.True(t, take(t, db, "one", e))
	bury(t, db, e, "two")
	_, err := db.Confirm(t.Context())
	require.NoError(t, err)
	require.Zero(t, outboxSize(t, db))
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.Exec(ctx, `update dead_letters set replayed_at = now()`); err != nil {
			return err
		}
		return tx.Replay(ctx, e)
	}))
	require.NoError(t, db.Flush(t.Context()))
	require.Equal(t, 1, outboxSize(t, db))
	require.True(t, take(t, db, "two", e))
	require.Zero(t, outboxSize(t, db))
}
