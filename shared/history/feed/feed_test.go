package feed_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	shared "github.com/littoral-project/littoral/shared/feed"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/history/feed"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var errEnough = errors.New("enough")

// add writes entries about an application.
func add(t *testing.T, db *store.DB, app *uuid.UUID, messages ...string) {
	t.Helper()
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		for _, m := range messages {
			if err := history.Record(ctx, tx, history.Entry{ApplicationID: app, Event: "test", Message: m}); err != nil {
				return err
			}
		}
		return nil
	}))
}

// read returns the messages of the next entries.
func read(t *testing.T, r *shared.Reader[history.Entry], app *uuid.UUID, n int) []string {
	t.Helper()
	var got []string
	err := r.Follow(t.Context(), feed.Wanted(app), time.Minute, func(e history.Entry) error {
		got = append(got, e.Message)
		if len(got) == n {
			return errEnough
		}
		return nil
	}, func() error { return errors.New("nothing came") })
	require.ErrorIs(t, err, errEnough)
	return got
}

func open(t *testing.T, f *shared.Feed[history.Entry], after *int64) *shared.Reader[history.Entry] {
	t.Helper()
	r, err := f.Open(t.Context(), after)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

func TestAReaderGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	f := feed.New(db)
	add(t, db, nil, "before")
	first := open(t, f, nil)
	start := first.After
	add(t, db, nil, "1", "2", "3")
	require.Equal(t, []string{"1", "2"}, read(t, first, nil, 2))
	require.Equal(t, []string{"3"}, read(t, first, nil, 1))
	late := open(t, f, &start)
	require.Equal(t, []string{"1", "2", "3"}, read(t, late, nil, 3))
	zero := int64(0)
	require.Equal(t, []string{"before", "1"}, read(t, open(t, f, &zero), nil, 2))
}

func TestAReaderOfAnotherInstanceMissesNothing(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	r := open(t, feed.New(db), nil)
	add(t, db, nil, "1")
	read(t, r, nil, 1)
	add(t, db, nil, "2")
	again := open(t, feed.New(db), &r.After)
	add(t, db, nil, "3")
	require.Equal(t, []string{"2", "3"}, read(t, again, nil, 2))
}

func TestAnIdAheadOfTheDatabaseBeginsNow(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ahead := int64(1_000_000)
	r := open(t, feed.New(db), &ahead)
	require.Zero(t, r.After)
	add(t, db, nil, "1")
	require.Equal(t, []string{"1"}, read(t, r, nil, 1))
}

func TestOneApplicationIsFollowedWithWhatIsAboutAll(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	r := open(t, feed.New(db), nil)
	mine, other := uuid.New(), uuid.New()
	add(t, db, &other, "not mine")
	add(t, db, nil, "about all")
	add(t, db, &mine, "mine")
	require.Equal(t, []string{"about all", "mine"}, read(t, r, &mine, 2))
}

// TestManyReadersGetEverythingInOrder: far more entries than are kept in memory, and readers of different speed.
func TestManyReadersGetEverythingInOrder(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	f := feed.New(db)
	const readers, batches, each = 20, 30, 100
	var wait sync.WaitGroup
	got := make([][]string, readers)
	for i := range readers {
		r := open(t, f, nil)
		wait.Go(func() {
			got[i] = read(t, r, nil, batches*each)
		})
	}
	var want []string
	for b := range batches {
		var messages []string
		for k := range each {
			messages = append(messages, fmt.Sprintf("%d-%d", b, k))
		}
		add(t, db, nil, messages...)
		want = append(want, messages...)
	}
	wait.Wait()
	for i := range readers {
		require.Equal(t, want, got[i])
	}
}

func TestAReaderGetsAnEmptyAnswerWhenNothingCame(t *testing.T) {
	t.Parallel()
	r := open(t, feed.New(storetest.New(t)), nil)
	err := r.Follow(t.Context(), feed.Wanted(nil), time.Millisecond, func(history.Entry) error { return nil }, func() error { return errEnough })
	require.ErrorIs(t, err, errEnough)
}

func TestAReaderEndsWithItsContext(t *testing.T) {
	t.Parallel()
	r := open(t, feed.New(storetest.New(t)), nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, r.Follow(ctx, feed.Wanted(nil), time.Minute, func(history.Entry) error { return nil }, func() error { return nil }))
}

func TestReadersEndWhenPostgresFails(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	r := open(t, feed.New(db), nil)
	_, err := db.Exec(t.Context(), "drop table history")
	require.NoError(t, err)
	err = r.Follow(t.Context(), feed.Wanted(nil), time.Minute, func(history.Entry) error { return nil }, func() error { return errEnough })
	require.Error(t, err)
	require.NotErrorIs(t, err, errEnough)
}
