package history_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func record(t testing.TB, db *store.DB, event string) {
	t.Helper()
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return history.Record(ctx, tx, history.Entry{Event: event})
	}))
}

// slow inserts a row at once and commits when told to.
func slow(t testing.TB, db *store.DB, event string) (commit func()) {
	t.Helper()
	inserted, end, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- db.Tx(context.WithoutCancel(t.Context()), func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `insert into history (event) values ($1)`, event)
			close(inserted)
			<-end
			return err
		})
	}()
	<-inserted
	return sync.OnceFunc(func() {
		close(end)
		require.NoError(t, <-done)
	})
}

// counting tells when it is asked for a row a second time.
type counting struct {
	store.Querier

	asked  int
	second chan<- struct{}
}

func (c *counting) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if c.asked++; c.asked == 2 {
		c.second <- struct{}{}
	}
	return c.Querier.QueryRow(ctx, sql, args...)
}

func eventsOf(entries []history.Entry) []string {
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Event)
	}
	return names
}

// TestAfter_passesNothingThatIsStillToCome: a reader who goes on after the last id he saw misses no row, though a lower
// id becomes visible after a higher one.
func TestAfter_passesNothingThatIsStillToCome(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	record(t, db, "first")
	commit := slow(t, db, "lower id, later commit")
	defer commit()
	record(t, db, "higher id, earlier commit")
	seen, err := history.After(t.Context(), db, nil, 0, 10)
	require.NoError(t, err)
	var last int64
	if len(seen) > 0 {
		last = seen[len(seen)-1].ID
	}
	commit()
	rest, err := history.After(t.Context(), db, nil, last, 10)
	require.NoError(t, err)
	require.Equal(t, []string{"first", "lower id, later commit", "higher id, earlier commit"},
		eventsOf(append(seen, rest...)))
}

// TestAfter_waitsForAWriter who is about to end, so that a reader sees what was committed before he asked.
func TestAfter_waitsForAWriter(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	commit := slow(t, db, "slow")
	defer commit()
	record(t, db, "quick")
	got := make(chan []string, 2)
	looks := make(chan struct{}, 2)
	for _, read := range []func(q store.Querier) ([]history.Entry, error){
		func(q store.Querier) ([]history.Entry, error) { return history.After(t.Context(), q, nil, 0, 10) },
		func(q store.Querier) ([]history.Entry, error) {
			entries, _, err := history.Before(t.Context(), q, nil, math.MaxInt64, 10)
			return entries, err
		},
	} {
		go func() {
			entries, err := read(&counting{Querier: db, second: looks})
			if err != nil {
				entries = []history.Entry{{Event: err.Error()}}
			}
			got <- eventsOf(entries)
		}()
	}
	for range 2 {
		select {
		case <-looks:
		case early := <-got:
			require.Fail(t, "read without waiting for the writer", "%v", early)
		}
	}
	commit()
	for range 2 {
		require.Equal(t, []string{"slow", "quick"}, <-got)
	}
}

// TestAfter_losesNothingUnderConcurrentCommits: one watches while many write.
func TestAfter_losesNothingUnderConcurrentCommits(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	const authors, each = 4, 50
	var wg sync.WaitGroup
	for a := range authors {
		wg.Go(func() {
			for i := range each {
				record(t, db, fmt.Sprintf("%d-%d", a, i))
			}
		})
	}
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	seen, last := map[string]int{}, int64(0)
	for over := false; !over; {
		select {
		case <-ended:
			over = true // one last look
		default:
		}
		entries, err := history.After(t.Context(), db, nil, last, 1000)
		require.NoError(t, err)
		for _, e := range entries {
			require.Greater(t, e.ID, last)
			last = e.ID
			seen[e.Event]++
		}
	}
	require.Len(t, seen, authors*each)
}

// TestAPageIsNoLargerThanAnAnswerMayBe: entries may be large, and their reader has little memory. Whoever goes on reads all.
func TestAPageIsNoLargerThanAnAnswerMayBe(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	_, err := db.Exec(t.Context(), `insert into history (event, message, cause, data)
select 'e' || i, repeat('m', $1), repeat('c', $1), jsonb_build_object('d', repeat('d', $1)) from generate_series(1, 5) i`,
		store.PageBytes*2/15) // two go into a page
	require.NoError(t, err)

	after := int64(0)
	for _, want := range [][]string{{"e1", "e2"}, {"e3", "e4"}, {"e5"}, {}} {
		entries, err := history.After(t.Context(), db, nil, after, 100)
		require.NoError(t, err)
		require.Equal(t, want, eventsOf(entries))
		if len(entries) > 0 {
			after = entries[len(entries)-1].ID
		}
	}
	before := int64(math.MaxInt64)
	for _, want := range [][]string{{"e4", "e5"}, {"e2", "e3"}, {"e1"}} {
		entries, cut, err := history.Before(t.Context(), db, nil, before, 100)
		require.NoError(t, err)
		require.Equal(t, want, eventsOf(entries))
		require.Equal(t, want[0] != "e1", cut)
		before = entries[0].ID
	}
	entries, cut, err := history.Before(t.Context(), db, nil, before, 100)
	require.NoError(t, err)
	require.Empty(t, entries)
	require.False(t, cut)
}

// TestLast_readsNoFurtherThanItIsAsked: an application that has run for a year has a long history, and whoever decides about
// it waits.
func TestLast_readsNoFurtherThanItIsAsked(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	app := uuid.New()
	_, err := db.Exec(t.Context(), `insert into history (application_id, component, event, at)
select $1, case when n % 2 = 0 then 'web' else 'db' end, case when n < 10 or n = 9995 then 'placed' else 'observed' end,
  now() - (10000 - n) * interval '1 minute' from generate_series(1, 10000) n`, app)
	require.NoError(t, err)
	_, err = db.Exec(t.Context(), `analyze history`)
	require.NoError(t, err)
	for _, row := range []struct {
		component string
		since     time.Duration
		ago       time.Duration // 0 = not since
	}{
		{"db", time.Hour, 5 * time.Minute},
		{"", time.Hour, 5 * time.Minute},
		{"web", time.Hour, 0},
		{"db", 3 * time.Minute, 0},
		{"nothing", time.Hour, 0},
	} {
		var at time.Time
		read := storetest.Reads(t, db, "history", func(ctx context.Context, tx *store.Tx) (err error) {
			at, err = history.Last(ctx, tx, app, row.component, "placed", time.Now().Add(-row.since))
			return err
		})
		require.Less(t, read, int64(200), "%+v", row)
		require.Equal(t, row.ago == 0, at.IsZero(), "%+v", row)
		if row.ago > 0 {
			require.WithinDuration(t, time.Now().Add(-row.ago), at, time.Minute)
		}
	}
	at, err := history.Last(t.Context(), db, uuid.New(), "", "placed", time.Time{})
	require.NoError(t, err)
	require.Zero(t, at)
}

// TestLists_readOnlyWhatTheyShow: Postgres soon keeps one plan for all that is asked by a statement, as by whoever follows an
// application, and the histories of others are long.
func TestLists_readOnlyWhatTheyShow(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	app := uuid.New()
	_, err := db.Exec(t.Context(), `insert into history (application_id, component, event)
select case when n % 500 = 0 then $1::uuid else gen_random_uuid() end, 'web', case when n % 2 = 0 then 'placed' else 'observed' end
from generate_series(1, 20000) n`, app)
	require.NoError(t, err)
	_, err = db.Exec(t.Context(), `analyze history`)
	require.NoError(t, err)
	for name, look := range map[string]func(context.Context, store.Querier) (int, error){
		"after": func(ctx context.Context, q store.Querier) (int, error) {
			entries, err := history.After(ctx, q, &app, 0, 50)
			return len(entries), err
		},
		"after, of an event": func(ctx context.Context, q store.Querier) (int, error) {
			entries, err := history.After(ctx, q, &app, 0, 50, "placed", "unplaced")
			return len(entries), err
		},
		"before": func(ctx context.Context, q store.Querier) (int, error) {
			entries, _, err := history.Before(ctx, q, &app, math.MaxInt64, 50)
			return len(entries), err
		},
		"before, of an event": func(ctx context.Context, q store.Querier) (int, error) {
			entries, _, err := history.Before(ctx, q, &app, math.MaxInt64, 50, "placed", "unplaced")
			return len(entries), err
		},
	} {
		found := 0
		read := storetest.Reads(t, db, "history", func(ctx context.Context, tx *store.Tx) (err error) {
			found, err = look(ctx, tx)
			return err
		})
		require.Equal(t, 40, found, name)
		require.Less(t, read, int64(500), name)
	}
}

func TestWhatIsMeasured(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	oldest, err := history.Oldest(t.Context(), db)
	require.NoError(t, err)
	require.True(t, oldest.IsZero())
	for _, event := range []string{"job.takenover", "job.placed", "job.takenover", "job.takenover"} {
		record(t, db, event)
	}
	_, err = db.Exec(t.Context(), `update history set at = at - interval '1 hour' where id = (select min(id) from history)`)
	require.NoError(t, err)
	oldest, err = history.Oldest(t.Context(), db)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(-time.Hour), oldest, time.Minute)
	n, err := history.Count(t.Context(), db, "job.takenover", 10*time.Minute)
	require.NoError(t, err)
	require.Equal(t, 2, n)
}
