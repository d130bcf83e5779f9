package main

import (
	"log/slog"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestRun_besideItselfAndAgain: five Jobs meet an empty database, then another one comes.
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

// TestRun_waitsForPostgresOnly: a missing server is waited for as long as the settings say, a wrong database is not.
func TestRun_waitsForPostgresOnly(t *testing.T) {
	t.Parallel()
	away := config{DatabaseURL: "postgres://127.0.0.1:1/x", Patience: 1}
	require.Error(t, run(t.Context(), away, slog.New(slog.DiscardHandler)))
	wrong, err := url.Parse(storetest.URL(t))
	require.NoError(t, err)
	wrong.Path = "/no_such_database"
	require.Error(t, run(t.Context(), config{wrong.String(), time.Hour}, slog.New(slog.DiscardHandler)))
}
