package migrate_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/migrate"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// withoutBackfills is the schema before the first migration that fills in what it adds.
const withoutBackfills = 12

// TestUp_keepsWhatIsThere: a database of a former version, in use, comes to the present one.
func TestUp_keepsWhatIsThere(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	ctx := t.Context()
	document, err := os.ReadFile("../../test/examples/hello.yaml")
	require.NoError(t, err)
	first := application.Submission{Document: document, Caller: "a person", IdempotencyKey: "once", LostAfter: time.Minute}

	db := open(t, url)
	a := submit(t, db, first)
	updated := submit(t, db, application.Submission{Document: document, LostAfter: time.Minute})
	for _, sql := range []string{
		fmt.Sprintf("update applications set version = 2 where id = '%s'", updated.ID),
		`insert into nodes (cluster, node, last_seen, agent, cluster_uuid, served_by, served_in)
		 values ('edge', 'edge-1', now(), 'agent-1', 'uuid-1', 'agent-1', 'uuid-1')`,
	} {
		_, err := db.Exec(ctx, sql)
		require.NoError(t, err)
	}
	db.Close()
	to(t, url, withoutBackfills)
	db = open(t, url)
	_, err = db.Exec(ctx, `insert into policy_alerts (policy_id, fingerprint, starts_at, status, known, labels)
values ('p', 'f', now(), 'firing', true, '{}')`)
	require.NoError(t, err)
	db.Close()
	require.NoError(t, migrate.Up(ctx, url))

	db = open(t, url)
	overlooked, err := application.UpdatePending(ctx, db, uuid.Nil, 10)
	require.NoError(t, err)
	require.Empty(t, overlooked, "what is there counts as judged")
	again := submit(t, db, first)
	require.Equal(t, a.ID, again.ID, "a repeat under the same key is known")
	require.Equal(t, a.Jobs, again.Jobs)
	_, err = db.Exec(ctx, "update applications set version = 2, descriptor = '' where id = $1", a.ID)
	require.NoError(t, err)
	other := first
	other.Document = append([]byte("# another\n"), document...)
	err = db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, _, err := applicationtest.Put(ctx, tx, other)
		return err
	})
	require.Equal(t, problem.Conflict, problem.KindOf(err), "also once it was updated: %v", err)
	handovers, err := application.Handovers(ctx, db)
	require.NoError(t, err)
	require.Empty(t, handovers, "each node is served by the agent that it had")
	since, err := store.One(ctx, db, "read the alert", pgx.RowTo[time.Time], "select since from policy_alerts")
	require.NoError(t, err)
	require.True(t, since.IsZero(), "an alert of a former version is of no activation: %s", since)
}

// TestUp_keepsNobodyWaiting: a table that is in use for long, as by a backup, is not migrated then; nor does the wait for it
// keep others from using it.
func TestUp_keepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	ctx := t.Context()
	to(t, url, withoutBackfills)
	db := open(t, url)
	const use = `select count(*) from applications`
	require.NoError(t, db.Tx(ctx, func(ctx context.Context, backup *store.Tx) error {
		if _, err := backup.Exec(ctx, use); err != nil {
			return err
		}
		migrated := make(chan error, 1)
		go func() { migrated <- migrate.Up(ctx, url) }()
		storetest.AwaitBlocked(t, open(t, url))
		others, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if _, err := db.Exec(others, use); err != nil {
			return err
		}
		var refused *pgconn.PgError
		require.ErrorAs(t, <-migrated, &refused)
		require.Equal(t, "55P03", refused.Code)
		return nil
	}))
	require.NoError(t, migrate.Up(ctx, url))
}

// TestDown_takesAllBack: and what comes after it is the same schema.
func TestDown_takesAllBack(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	ctx := t.Context()
	db := open(t, url)
	schema := func() []string {
		lines, err := store.Collect(ctx, db, "read the schema", pgx.RowTo[string], selectSchema)
		require.NoError(t, err)
		return lines
	}
	before := schema()
	require.NotEmpty(t, before)
	to(t, url, 0)
	require.Empty(t, schema())
	require.NoError(t, migrate.Up(ctx, url))
	require.Equal(t, before, schema())
}

// selectSchema tells all that migrations make, in an order that does not depend on when they made it.
const selectSchema = `
select format('column %s.%s %s %s %s', table_name, column_name, data_type, column_default, is_nullable)
from information_schema.columns where table_schema = 'public' and table_name not like 'goose%'
union all select 'index ' || indexdef from pg_indexes where schemaname = 'public' and tablename not like 'goose%'
union all select format('constraint %s %s', conrelid::regclass, pg_get_constraintdef(oid))
from pg_constraint where connamespace = 'public'::regnamespace and conrelid::regclass::text not like 'goose%'
union all select 'function ' || pg_get_functiondef(oid) from pg_proc where pronamespace = 'public'::regnamespace
union all select 'trigger ' || pg_get_triggerdef(oid) from pg_trigger where not tgisinternal
order by 1`

func open(t *testing.T, url string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), store.Config{DatabaseURL: url, MaxConns: 2}, &storetest.Recorder{}, nil)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	return db
}

func to(t *testing.T, url string, version int64) {
	t.Helper()
	migrations, err := migrate.Open(url)
	require.NoError(t, err)
	_, err = migrations.DownTo(t.Context(), version)
	require.NoError(t, err)
	require.NoError(t, migrations.Close())
}

func submit(t *testing.T, db *store.DB, s application.Submission) (a *application.Application) {
	t.Helper()
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		a, _, err = applicationtest.Put(ctx, tx, s)
		return err
	}))
	return a
}
