package store_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/localpg"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const count = `select count(*) from outbox`

func outboxSize(t *testing.T, db *store.DB) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRow(t.Context(), count).Scan(&n))
	return n
}

// emit emits one event per subject in one transaction and waits until the transaction has ended.
func emit(ctx context.Context, db *store.DB, subjects ...string) error {
	return errors.Join(commit(ctx, db, subjects...), db.Flush(ctx))
}

// commit emits one event per subject in one transaction.
func commit(ctx context.Context, db *store.DB, subjects ...string) error {
	return db.Tx(store.WithSource(ctx, "/test"), func(ctx context.Context, tx *store.Tx) error {
		for _, s := range subjects {
			if err := tx.Emit(ctx, events.TopologyChanged, s, events.Topology{}); err != nil {
				return err
			}
		}
		return nil
	})
}

func subjects(list []cloudevents.Event) []string {
	var out []string
	for _, e := range list {
		out = append(out, e.Subject())
	}
	return out
}

func TestTx_publishesAfterTheCommitInOrder(t *testing.T) {
	t.Parallel()
	var db *store.DB
	var seen []int // what another connection sees in the outbox while the event is being published
	db = storetest.NewWithPublisher(t, publisherFunc(func(ctx context.Context, _ cloudevents.Event) error {
		var n int
		err := db.QueryRow(ctx, count).Scan(&n)
		seen = append(seen, n)
		return err
	}))
	require.NoError(t, emit(t.Context(), db, "a", "b"))
	require.Equal(t, []int{2, 2}, seen, "both are committed before the first is published")
	require.Zero(t, outboxSize(t, db), "accepted events leave the outbox")
}

type publisherFunc func(context.Context, cloudevents.Event) error

func (f publisherFunc) Publish(ctx context.Context, e cloudevents.Event) error { return f(ctx, e) }

func TestTx_emitsNothingWhenItFails(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	failure := errors.New("changed my mind")
	err := db.Tx(store.WithSource(t.Context(), "/test"), func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Emit(ctx, events.TopologyChanged, "a", events.Topology{}); err != nil {
			return err
		}
		return failure
	})
	require.ErrorIs(t, err, failure)
	require.Empty(t, storetest.Published(db))
	require.Zero(t, outboxSize(t, db))
}

func TestTx_commitsNothingWhenWhatWasAppendedIsRefused(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	err := db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		tx.Append(`insert into history (event) values ('appended')`)
		tx.Append(`insert into history (event) values ($1)`, "a\x00b")
		_, err := tx.Exec(ctx, `insert into history (event) values ('sent')`)
		return err
	})
	require.Equal(t, problem.Invalid, problem.KindOf(store.Classify(err)))
	var n int
	require.NoError(t, db.QueryRow(t.Context(), `select count(*) from history`).Scan(&n))
	require.Zero(t, n)
}

func TestTx_failsWhenAFailureWasIgnored(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	err := db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, _ = tx.Exec(ctx, `select 1/0`)
		return nil
	})
	require.ErrorIs(t, err, pgx.ErrTxCommitRollback)
}

func TestTx_leavesToTheSweepWhatTheBrokerRefused(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	broker := storetest.RecorderOf(db)
	broker.Fail(errors.New("away"))
	require.NoError(t, emit(t.Context(), db, "a", "b", "c"), "the change is committed either way")
	require.Equal(t, 3, outboxSize(t, db))

	_, err := db.Sweep(t.Context(), 0, 10)
	require.Equal(t, problem.Unavailable, problem.KindOf(err))

	broker.Fail(nil)
	n, err := db.Sweep(t.Context(), time.Hour, 10)
	require.NoError(t, err)
	require.Zero(t, n, "young events are left to the call that made them")
	_, err = db.Exec(t.Context(), `update outbox set tried_at = null where event ->> 'subject' = 'a'`) // moves it to the end
	require.NoError(t, err)
	n, err = db.Sweep(t.Context(), 0, 2)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, []string{"a", "b"}, subjects(storetest.Published(db)), "oldest first")
	_, err = db.Sweep(t.Context(), 0, 2)
	require.NoError(t, err)
	require.Zero(t, outboxSize(t, db))
}

func TestTx_takesAlongWhatOthersHadToLeave(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	broker := storetest.RecorderOf(db)
	broker.Fail(errors.New("away"))
	require.NoError(t, emit(t.Context(), db, "left"))
	broker.Fail(nil)
	require.NoError(t, emit(t.Context(), db, "a"))
	require.Equal(t, []string{"a"}, subjects(storetest.Published(db)), "young events are left to the call that made them")

	_, err := db.Exec(t.Context(), `update outbox set created_at = now() - $1::interval`, store.LeftFor)
	require.NoError(t, err)
	require.NoError(t, emit(t.Context(), db, "b"))
	require.Equal(t, []string{"a", "b", "left"}, subjects(storetest.Published(db)))
	require.Zero(t, outboxSize(t, db))
}

// TestSweep_leavesAloneWhatIsBeingPublished: of many functions that find the Broker back at once, only one sends the
// remaining events.
func TestSweep_leavesAloneWhatIsBeingPublished(t *testing.T) {
	t.Parallel()
	var db *store.DB
	var during int
	away := true
	db = storetest.NewWithPublisher(t, publisherFunc(func(ctx context.Context, _ cloudevents.Event) (err error) {
		if away {
			return errors.New("away")
		}
		during, err = db.Sweep(ctx, 30*time.Second, 10)
		return err
	}))
	require.NoError(t, emit(t.Context(), db, "left"))
	_, err := db.Exec(t.Context(), `update outbox set created_at = now() - $1::interval`, store.LeftFor)
	require.NoError(t, err)
	away = false
	n, err := db.Sweep(t.Context(), 30*time.Second, 10)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Zero(t, during)
}

func TestTx_runsAgainAfterADeadlock(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	_, err := db.Exec(t.Context(), `create table pairs (n int primary key, v int); insert into pairs values (1, 0), (2, 0)`)
	require.NoError(t, err)
	var both, running sync.WaitGroup
	both.Add(2)
	var runs atomic.Int64
	for _, order := range [][2]int{{1, 2}, {2, 1}} {
		var first sync.Once
		running.Go(func() {
			err := db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				runs.Add(1)
				for i, n := range order {
					if _, err := tx.Exec(ctx, `update pairs set v = v + 1 where n = $1`, n); err != nil {
						return err
					}
					if i == 0 {
						first.Do(func() { both.Done(); both.Wait() }) // each locks one row before it locks the other
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("deadlock was not repeated: %v", err)
			}
		})
	}
	running.Wait()
	require.GreaterOrEqual(t, runs.Load(), int64(3), "the victim ran again")
	var v int
	require.NoError(t, db.QueryRow(t.Context(), `select sum(v) from pairs`).Scan(&v))
	require.Equal(t, 4, v)
}

func TestReact_happensOnceUnderConcurrentDuplicates(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	e, err := events.New(t.Context(), "/test", events.TopologyChanged, "s", events.Topology{})
	require.NoError(t, err)
	var work, fresh atomic.Int64
	var running sync.WaitGroup
	for range 20 {
		running.Go(func() {
			isFresh, err := db.React(store.WithSource(t.Context(), "/test"), "consumer", e, func(ctx context.Context, tx *store.Tx) error {
				work.Add(1)
				return tx.Emit(ctx, events.ApplicationPlaced, "a", events.Application{})
			})
			if err != nil {
				t.Errorf("react: %v", err)
			}
			if isFresh {
				fresh.Add(1)
			}
		})
	}
	running.Wait()
	require.Equal(t, int64(1), work.Load())
	require.Equal(t, int64(1), fresh.Load())
	require.Len(t, storetest.Published(db), 1)

	isFresh, err := db.React(t.Context(), "another", e, func(context.Context, *store.Tx) error { return nil })
	require.NoError(t, err)
	require.True(t, isFresh, "each consumer has its own memory")
}

func TestReact_thatFailsMayHappenAgain(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	e, err := events.New(t.Context(), "/test", events.TopologyChanged, "s", events.Topology{})
	require.NoError(t, err)
	_, err = db.React(t.Context(), "c", e, func(context.Context, *store.Tx) error { return errors.New("not yet") })
	require.Error(t, err)
	fresh, err := db.React(t.Context(), "c", e, func(context.Context, *store.Tx) error { return nil })
	require.NoError(t, err)
	require.True(t, fresh)
}

func TestClassify(t *testing.T) {
	t.Parallel()
	conflict := problem.New(problem.Conflict, "busy")
	for name, row := range map[string]struct {
		err  error
		kind problem.Kind
	}{
		"a kind already set is kept":             {fmt.Errorf("x: %w", conflict), problem.Conflict},
		"Postgres shuts down":                    {fmt.Errorf("x: %w", &pgconn.PgError{Code: "57P01"}), problem.Unavailable},
		"Postgres starts up":                     {&pgconn.PgError{Code: "57P03"}, problem.Unavailable},
		"a password is being changed":            {&pgconn.PgError{Code: "28P01"}, problem.Unavailable},
		"PgBouncer has another password":         {&pgconn.PgError{Code: "08P01"}, problem.Unavailable},
		"no connection is left":                  {&pgconn.PgError{Code: "53300"}, problem.Unavailable},
		"a standby has not taken over yet":       {&pgconn.PgError{Code: "25006"}, problem.Unavailable},
		"a machine was asleep for too long":      {&pgconn.PgError{Code: "25P03"}, problem.Unavailable},
		"a statement took too long":              {&pgconn.PgError{Code: "57014"}, problem.Unavailable},
		"a lock took too long":                   {&pgconn.PgError{Code: "55P03"}, problem.Unavailable},
		"a deadlock":                             {&pgconn.PgError{Code: "40P01"}, problem.Unavailable},
		"the network fails":                      {&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, problem.Unavailable},
		"a statement that is wrong is our fault": {&pgconn.PgError{Code: "42601"}, problem.Internal},
		"anything else is our fault":             {errors.New("x"), problem.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, row.kind, problem.KindOf(store.Classify(row.err)))
		})
	}
	require.NoError(t, store.Classify(nil))
}

// ownPostgres starts a separate server for the test, with the given lines of pg_hba.conf.
func ownPostgres(t *testing.T, hba string) *localpg.Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "littoral-store-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	file := filepath.Join(dir, "pg_hba.conf")
	require.NoError(t, os.WriteFile(file, []byte(hba), 0o644)) // read by the user Postgres runs as
	server, err := localpg.Start(t.Context(), localpg.Options{
		Dir: filepath.Join(dir, "pg"), Settings: map[string]string{"hba_file": file},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	return server
}

// asker opens the address, and returns the DB and a function that runs a query.
func asker(t *testing.T, address string) (*store.DB, func() error) {
	t.Helper()
	db, err := store.Open(t.Context(), store.Config{DatabaseURL: address}, nil, nil)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	return db, func() error {
		return db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `select 1`)
			return err
		})
	}
}

// TestClassify_ofAChangedPassword: a function that is awake uses the old one until it is restarted.
func TestClassify_ofAChangedPassword(t *testing.T) {
	t.Parallel()
	server := ownPostgres(t, "local all guest scram-sha-256\nlocal all all trust\n")
	owner, _ := asker(t, server.URL("postgres"))
	change := func(statement string) {
		_, err := owner.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	guest := func(password string) (*store.DB, func() error) {
		address, err := url.Parse(server.URL("postgres"))
		require.NoError(t, err)
		address.User = url.UserPassword("guest", password)
		return asker(t, address.String())
	}
	change(`create role guest login password 'former'`)
	db, ask := guest("former")
	require.NoError(t, ask())

	change(`alter role guest password 'present'`)
	require.NoError(t, ask(), "a connection that is there stays")
	db.Reset()
	var pg *pgconn.PgError
	require.ErrorAs(t, ask(), &pg)
	require.Equal(t, "28P01", pg.Code)
	require.Equal(t, problem.Unavailable, problem.KindOf(store.Classify(ask())))
	_, ask = guest("present")
	require.NoError(t, ask())

	change(`alter role guest nologin`)
	_, ask = guest("present")
	require.Equal(t, problem.Unavailable, problem.KindOf(store.Classify(ask())))
}

func TestClassify_ofAStoppedPostgresAndItsReturn(t *testing.T) {
	t.Parallel()
	server := ownPostgres(t, "local all all trust\n")
	_, ask := asker(t, server.URL("postgres"))
	require.NoError(t, ask())
	server.Kill()
	for range 3 { // the first finds a dead connection, the others do not
		require.Equal(t, problem.Unavailable, problem.KindOf(store.Classify(ask())))
	}
	require.NoError(t, server.Restart(t.Context()))
	require.Eventually(t, func() bool { return ask() == nil }, 10*time.Second, 10*time.Millisecond)
}

func TestIsUniqueViolation(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("insert: %w", &pgconn.PgError{Code: "23505", ConstraintName: "jobs_component_idx"})
	require.True(t, store.IsUniqueViolation(err, "jobs_component_idx"))
	require.False(t, store.IsUniqueViolation(err, "other"))
	require.False(t, store.IsUniqueViolation(errors.New("x"), "jobs_component_idx"))
}

func TestOpen(t *testing.T) {
	t.Parallel()
	_, err := store.Open(t.Context(), store.Config{DatabaseURL: "mysql://x"}, nil, nil)
	require.ErrorContains(t, err, "DATABASE_URL")

	db, err := store.Open(t.Context(), store.Config{DatabaseURL: "postgres://127.0.0.1:1/x"}, events.HTTPPublisher{Client: http.DefaultClient}, nil)
	require.NoError(t, err, "opening dials nobody")
	db.Close()
}

// TestForgetReactions_readsNoMoreThanItForgets: new marks lie where former ones have been forgotten.
func TestForgetReactions_readsNoMoreThanItForgets(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	db, _ := openRecording(t, url)
	preparing, _ := openRecording(t, url)
	for _, sql := range []string{
		`insert into inbox (consumer, source, id, at) select 'c', 's', n::text, now() - interval '90 days' from generate_series(1, 30000) n`,
		`vacuum inbox`,
		`delete from inbox where id::int <= 29990`,
		`vacuum inbox`,
		`insert into inbox (consumer, source, id) select 'c', 's', n::text from generate_series(100001, 130000) n`,
		`vacuum analyze inbox`,
	} {
		_, err := preparing.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	const size = `select pg_relation_size('inbox') / current_setting('block_size')::int`
	var pages int
	require.NoError(t, db.QueryRow(t.Context(), size).Scan(&pages))
	require.Less(t, pages, 600, "the new ones have taken the place of the others")

	reads := func() (rows int64) {
		const read = `select coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) from pg_stat_user_tables where relname = 'inbox'`
		require.NoError(t, db.QueryRow(t.Context(), read).Scan(&rows))
		return rows
	}
	preparing.Close() // it has read 30,000 rows to delete them, which Postgres may count as late as now
	require.Eventually(t, func() bool { return reads() >= 30_000 }, time.Minute, 10*time.Millisecond)
	forgetful, _ := openRecording(t, url)
	require.NoError(t, forgetful.Ping(t.Context()))
	before := reads()
	n, err := forgetful.ForgetReactions(t.Context(), 30*24*time.Hour)
	require.NoError(t, err)
	require.Equal(t, int64(10), n)
	forgetful.Close() // Postgres counts what it has read
	require.Eventually(t, func() bool { return reads() > before }, time.Minute, 10*time.Millisecond)
	require.Less(t, reads()-before, int64(1000))
}

// TestForgetReactions: an event that nobody will send again needs no mark.
func TestForgetReactions(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	_, err := db.Exec(t.Context(), `insert into inbox (consumer, source, id, at) values
('a', '/s', 'old', now() - interval '31 days'), ('b', '/s', 'old', now() - interval '31 days'),
('a', '/s', 'dead', now() - interval '31 days'), ('a', '/s', 'replayed', now() - interval '31 days'),
('a', '/s', 'sent', now() - interval '31 days'), ('a', '/s', 'young', now())`)
	require.NoError(t, err)
	_, err = db.Exec(t.Context(), `insert into dead_letters (id, consumer, source, event_id, type, event, code, replayed_at) values
(gen_random_uuid(), 'b', '/s', 'dead', 't', '{}', 500, null),
(gen_random_uuid(), 'b', '/s', 'replayed', 't', '{}', 500, now() - interval '25 hours'),
(gen_random_uuid(), 'b', '/s', 'sent', 't', '{}', 500, now() - interval '1 hour')`)
	require.NoError(t, err)
	n, err := db.ForgetReactions(t.Context(), 30*24*time.Hour)
	require.NoError(t, err)
	require.EqualValues(t, 3, n)
	var left []string
	require.NoError(t, db.QueryRow(t.Context(), `select array_agg(id order by id) from inbox`).Scan(&left))
	require.Equal(t, []string{"dead", "sent", "young"}, left,
		"what can be sent again, or is on its way again, must not be worked off twice")
}
