package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestRun_besideItselfAndAgain: five Jobs run concurrently on an empty database, then another one.
func TestRun_besideItselfAndAgain(t *testing.T) {
	t.Parallel()
	database := storetest.URL(t)
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(t.Context())) })
	_, err = conn.Exec(t.Context(), "drop schema public cascade; create schema public")
	require.NoError(t, err)

	var together sync.WaitGroup
	errs := make([]error, 5)
	for i := range errs {
		together.Go(func() { errs[i] = run(t.Context(), config{DatabaseURL: database}, slog.New(slog.DiscardHandler)) })
	}
	together.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	versions := func() (n, distinct int) {
		const count = "select count(*), count(distinct version_id) from goose_db_version"
		err := conn.QueryRow(t.Context(), count).Scan(&n, &distinct)
		require.NoError(t, err)
		return n, distinct
	}
	n, distinct := versions()
	require.Equal(t, n, distinct, "each migration ran once")
	require.Greater(t, n, 1)
	require.NoError(t, run(t.Context(), config{DatabaseURL: database}, slog.New(slog.DiscardHandler)))
	again, _ := versions()
	require.Equal(t, n, again)
}

// TestRun_waitsForPostgresOnly: it waits for a missing server as long as the settings say, but not for a wrong
// database.
func TestRun_waitsForPostgresOnly(t *testing.T) {
	t.Parallel()
	away := config{DatabaseURL: "postgres://127.0.0.1:1/x", Patience: 1}
	require.Error(t, run(t.Context(), away, slog.New(slog.DiscardHandler)))
	wrong, err := url.Parse(storetest.URL(t))
	require.NoError(t, err)
	wrong.Path = "/no_such_database"
	require.Error(t, run(t.Context(), config{DatabaseURL: wrong.String(), Patience: time.Hour}, slog.New(slog.DiscardHandler)))
}

// TestRun_waitsForATableInUse: as for the end of a backup.
func TestRun_waitsForATableInUse(t *testing.T) {
	t.Parallel()
	address, err := url.Parse(storetest.URL(t))
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), address.String())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(t.Context())) })
	_, err = conn.Exec(t.Context(), "begin; lock table goose_db_version")
	require.NoError(t, err)

	query := address.Query()
	query.Set("lock_timeout", "1")
	address.RawQuery = query.Encode()
	said, ended := begin(t, address)
	require.Contains(t, said, "lock timeout")
	_, err = conn.Exec(t.Context(), "commit")
	require.NoError(t, err)
	require.NoError(t, <-ended)
}

// TestRun_waitsForAConnection: without a pooler, the functions can use up those of Postgres.
func TestRun_waitsForAConnection(t *testing.T) {
	t.Parallel()
	address, err := url.Parse(storetest.URL(t))
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), address.String())
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := conn.Exec(context.Background(), "drop role crowded_out")
		require.NoError(t, errors.Join(err, conn.Close(context.Background())))
	})
	_, err = conn.Exec(t.Context(), "create role crowded_out login connection limit 0")
	require.NoError(t, err)

	address.User = url.User("crowded_out")
	said, ended := begin(t, address)
	require.Contains(t, said, "too many connections")
	_, err = conn.Exec(t.Context(), "alter role crowded_out superuser connection limit -1")
	require.NoError(t, err)
	require.NoError(t, <-ended)
}

// TestRun_waitsForASilentServer: the machine of a Postgres that has moved does not answer.
func TestRun_waitsForASilentServer(t *testing.T) {
	t.Parallel()
	address, err := url.Parse(storetest.URL(t))
	require.NoError(t, err)
	postgres, err := pgx.ParseConfig(address.String())
	require.NoError(t, err)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	pass := func(into, from net.Conn) {
		_, _ = io.Copy(into, from)
		_ = into.Close()
	}
	go func() {
		for silent := true; ; silent = false {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			if silent {
				defer near.Close() // nobody listens
				continue
			}
			network, at := pgconn.NetworkAddress(postgres.Host, postgres.Port)
			far, err := (&net.Dialer{}).DialContext(t.Context(), network, at)
			if err != nil {
				_ = near.Close()
				continue
			}
			go pass(near, far)
			go pass(far, near)
		}
	}()

	query := address.Query()
	query.Del("host")
	query.Set("sslmode", "disable")
	address.Host, address.RawQuery = listener.Addr().String(), query.Encode()
	said, ended := begin(t, address)
	require.Contains(t, said, "timeout")
	require.NoError(t, <-ended)
}

// begin runs with more patience than a test has. It returns the first line of the log, and the result when there is one.
func begin(t *testing.T, address *url.URL) (said string, ended <-chan error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	told, log := io.Pipe()
	end := make(chan error, 1)
	go func() {
		end <- run(ctx, config{DatabaseURL: address.String(), Patience: time.Hour}, slog.New(slog.NewTextHandler(log, nil)))
		_ = log.Close()
	}()
	lines := bufio.NewScanner(told)
	require.True(t, lines.Scan(), "it says that it cannot go on")
	go func() { _, _ = io.Copy(io.Discard, told) }()
	return lines.Text(), end
}
