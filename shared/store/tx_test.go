package store_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

const (
	sqlNote  = `insert into history (event) values ($1)`
	sqlNotes = `select event from history order by id`
)

func notes(t *testing.T, q store.Querier) []string {
	t.Helper()
	list, err := store.Collect(t.Context(), q, "read notes", pgx.RowTo[string], sqlNotes)
	require.NoError(t, err)
	return list
}

func TestTx_readsWhatItHasAppended(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		tx.Append(sqlNote, "a")
		require.Equal(t, []string{"a"}, notes(t, tx))
		tx.Append(sqlNote, "b")
		var n int
		require.NoError(t, tx.QueryRow(ctx, `select count(*) from history`).Scan(&n))
		require.Equal(t, 2, n)
		require.ErrorIs(t, tx.QueryRow(ctx, `select event from history where event = 'c'`).Scan(new(string)), pgx.ErrNoRows)
		tx.Append(sqlNote, "c")
		tag, err := tx.Exec(ctx, `update history set event = event || '!'`)
		require.Equal(t, int64(3), tag.RowsAffected())
		return err
	}))
	require.Equal(t, []string{"a!", "b!", "c!"}, notes(t, db))
}

// A refused statement aborts the whole transaction, including the first one, in whose batch "begin" is sent: nothing
// may reach Postgres outside of a transaction, however the caller handles the error.
func TestTx_endsWithAStatementThatIsRefused(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]func(context.Context, *store.Tx) error{
		"cannot be prepared": func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `insert into nothing`)
			return err
		},
		"fails": func(ctx context.Context, tx *store.Tx) error { _, err := tx.Exec(ctx, `select 1/0`); return err },
		"fails with rows": func(ctx context.Context, tx *store.Tx) error {
			_, err := store.Collect(ctx, tx, "divide", pgx.RowTo[int], `select 1/0`)
			return err
		},
		"fails as a row": func(ctx context.Context, tx *store.Tx) error {
			return tx.QueryRow(ctx, `select 1/$1::int`, 0).Scan(new(int))
		},
		"fails before it": func(ctx context.Context, tx *store.Tx) error {
			tx.Append(`select 1/0`)
			_, err := tx.Exec(ctx, sqlNote, "after")
			return err
		},
		"cannot be sent": func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, sqlNote, struct{ secret func() }{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.New(t)
			require.Error(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				require.Error(t, first(ctx, tx))
				_, err := tx.Exec(ctx, sqlNote, "later")
				require.Error(t, err)
				tx.Append(sqlNote, "with the commit")
				return nil
			}))
			require.Empty(t, notes(t, db), "and the connection serves on")
			require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Exec(ctx, sqlNote, "next")
				return err
			}))
			require.Equal(t, []string{"next"}, notes(t, db))
		})
	}
}

func TestTx_inWhichNothingIsSaid(t *testing.T) {
	t.Parallel()
	require.NoError(t, storetest.New(t).Tx(t.Context(), func(context.Context, *store.Tx) error { return nil }))
}

// Postgres ends a transaction whose client is gone. It must not affect rows that a call may still be working on.
func TestTx_isEndedByPostgresAfterItsCall(t *testing.T) {
	t.Parallel()
	db, _ := openRecording(t, storetest.URL(t)) // one connection
	idle := func(ctx context.Context, q store.Querier) (most time.Duration) {
		var ms int64
		const setting = `select setting::bigint from pg_settings where name = 'idle_in_transaction_session_timeout'`
		require.NoError(t, q.QueryRow(ctx, setting).Scan(&ms))
		return time.Duration(ms) * time.Millisecond
	}
	within := func(ctx context.Context) (most time.Duration) {
		require.NoError(t, db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
			most = idle(ctx, tx)
			return nil
		}))
		return most
	}
	for _, call := range []time.Duration{time.Minute, time.Hour} {
		ctx, cancel := context.WithTimeout(t.Context(), call)
		defer cancel()
		most := within(ctx)
		require.Greater(t, most, call)
		require.Less(t, most, call+time.Minute)
	}
	most := within(context.Background())
	require.Greater(t, most, time.Minute)
	require.Less(t, most, time.Hour)
	require.Zero(t, idle(t.Context(), db), "a pooler gives the connection to others afterwards")
}

// network is a connection to Postgres that can be cut: data is then lost without an error.
type network struct {
	address string
	cut     atomic.Bool
	moved   atomic.Int64 // number of fail-overs: earlier connections are lost for good
}

func newNetwork(t *testing.T, database string) *network {
	t.Helper()
	server, err := pgx.ParseConfig(database)
	require.NoError(t, err)
	to, at := pgconn.NetworkAddress(server.Host, server.Port)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	n := &network{}
	pass := func(into, from net.Conn) {
		since := n.moved.Load()
		for buffer := make([]byte, 4096); ; {
			read, err := from.Read(buffer)
			if err != nil {
				_ = into.Close()
				return
			}
			if !n.cut.Load() && n.moved.Load() == since {
				_, _ = into.Write(buffer[:read])
			}
		}
	}
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := (&net.Dialer{}).DialContext(t.Context(), to, at)
			if err != nil {
				_ = near.Close()
				continue
			}
			go pass(near, far)
			go pass(far, near)
		}
	}()
	address, err := url.Parse(database)
	require.NoError(t, err)
	query := address.Query()
	query.Del("host")
	query.Set("sslmode", "disable")
	address.Host, address.RawQuery = listener.Addr().String(), query.Encode()
	n.address = address.String()
	return n
}

// A call that loses Postgres without an error ends, and releases its connection.
func TestTx_endsThoughItsRollbackIsLost(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, storetest.URL(t))
	db, err := store.Open(t.Context(), store.Config{DatabaseURL: n.address, MaxConns: 1}, &storetest.Recorder{}, nil)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	away := errors.New("whoever was asked within the transaction is away")
	ended := make(chan error, 1)
	go func() {
		ended <- db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.Exec(ctx, `select 1`); err != nil {
				return err
			}
			n.cut.Store(true)
			return away
		})
	}()
	select {
	case err := <-ended:
		require.ErrorIs(t, err, away)
	case <-time.After(time.Minute):
		n.cut.Store(false)
		require.Fail(t, "it waits for the answer to its rollback")
	}
	n.cut.Store(false)
	require.NoError(t, db.Ping(t.Context()), "the only connection is free")
}

// A machine that is gone does not answer at all. Calls made after Postgres has moved must not wait for it.
func TestDB_reachesAPostgresThatHasMoved(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T, connections int32) (*network, *store.DB) {
		t.Helper()
		n := newNetwork(t, storetest.URL(t))
		db, err := store.Open(t.Context(), store.Config{DatabaseURL: n.address, MaxConns: connections}, &storetest.Recorder{}, nil)
		require.NoError(t, err)
		t.Cleanup(db.Close)
		return n, db
	}
	within := func(t *testing.T, db *store.DB, call time.Duration) error {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), call)
		defer cancel()
		return db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `select 1`)
			return err
		})
	}
	t.Run("while it was dialled", func(t *testing.T) {
		t.Parallel()
		n, db := open(t, 1)
		n.cut.Store(true)
		require.Error(t, within(t, db, 100*time.Millisecond))
		n.moved.Add(1)
		n.cut.Store(false)
		require.NoError(t, within(t, db, 30*time.Second))
	})
	t.Run("while nobody asked it", func(t *testing.T) {
		t.Parallel()
		n, db := open(t, 2) // pgx occupies the slot of a lost connection until its attempt to close it times out
		require.NoError(t, within(t, db, time.Minute))
		time.Sleep(1100 * time.Millisecond) // the pool does not check a connection that was used within the last second
		n.moved.Add(1)
		require.NoError(t, within(t, db, 10*time.Second))
	})
}

// A PgBouncer with max_prepared_statements 0 gives every transaction another backend, which does not know the
// statements that another one has prepared.
func TestTx_preparesNothingWhenToldSo(t *testing.T) {
	t.Parallel()
	address, err := url.Parse(storetest.URL(t))
	require.NoError(t, err)
	query := address.Query()
	query.Set("default_query_exec_mode", "cache_describe")
	address.RawQuery = query.Encode()
	db, err := store.Open(t.Context(), store.Config{DatabaseURL: address.String(), MaxConns: 1}, &storetest.Recorder{}, nil)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, emit(t.Context(), db, "a", "b"))
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		tx.Append(sqlNote, "a")
		_, err := tx.Exec(ctx, sqlNote, "b")
		return err
	}))
	require.Equal(t, []string{"a", "b"}, notes(t, db))
	require.Zero(t, outboxSize(t, db))
	var prepared int
	require.NoError(t, db.QueryRow(t.Context(), `select count(*) from pg_prepared_statements`).Scan(&prepared))
	require.Zero(t, prepared)
}

func TestOpen_knowsIDs(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	a, b := uuid.New(), uuid.New()
	var one uuid.UUID
	var none, some *uuid.UUID
	var many []uuid.UUID
	var written string
	require.NoError(t, db.QueryRow(t.Context(), `select $1::uuid, $2::uuid, $3::uuid, $4::uuid[], $5::uuid::text`,
		a, (*uuid.UUID)(nil), &b, []uuid.UUID{a, b}, a).Scan(&one, &none, &some, &many, &written))
	require.Equal(t, a, one)
	require.Nil(t, none)
	require.Equal(t, &b, some)
	require.Equal(t, []uuid.UUID{a, b}, many)
	require.Equal(t, strings.ToLower(a.String()), written)
	require.Error(t, db.QueryRow(t.Context(), `select null::uuid`).Scan(&one), "a missing id is no id")
	require.NoError(t, db.QueryRow(t.Context(), `select $1::uuid`, a.String()).Scan(&one), "ids come as text too")
	require.Equal(t, a, one)
}
