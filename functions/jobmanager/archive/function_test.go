package archive_test

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions/jobmanager/archive"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/topology"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func newFunction(t *testing.T, db *store.DB) (*archive.Function, error) {
	t.Helper()
	return archive.New(&function.Env{
		Name: "jobmanager-archive", DB: db, HTTP: http.DefaultClient, Log: slog.New(slog.DiscardHandler),
	})
}

// TestRun_takesEverySnapshotBeyondThoseThatStay: all surplus snapshots are archived and not deleted. Without an archive
// they are deleted, since they would only accumulate.
func TestRun_takesEverySnapshotBeyondThoseThatStay(t *testing.T) {
	const stay = 600
	for name, row := range map[string]struct {
		variable string
		objects  string
		archived int
	}{
		"with an archive":     {"OBJECTS_URL", "file://" + t.TempDir(), 101},
		"with one of its own": {"JOBMANAGER_ARCHIVE_OBJECTS_URL", "file://" + t.TempDir(), 101},
		"without one":         {"OBJECTS_URL", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			db := storetest.New(t)
			t.Setenv(row.variable, row.objects)
			t.Setenv("ARCHIVE_SNAPSHOTS_KEPT", "600")
			f, err := newFunction(t, db)
			require.NoError(t, err)
			_, err = db.Exec(t.Context(), `insert into topology_snapshots (id, changes, taxonomy)
select ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, '[]', '{}' from generate_series(1, $1) n`, stay+100)
			require.NoError(t, err)
			ctx := store.WithSource(t.Context(), "/functions/aggregator-tick")
			require.NoError(t, db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
				_, err := topology.Save(ctx, tx, &topology.Taxonomy{}, time.Now(), 1)
				return err
			}))
			require.NoError(t, f.Run(t.Context()))

			var live, archived int
			require.NoError(t, db.QueryRow(t.Context(), `select (select count(*) from topology_snapshots),
	(select coalesce(sum(lines), 0) from archives where kind = 'topology')`).Scan(&live, &archived))
			require.Equal(t, stay, live)
			require.Equal(t, row.archived, archived)
		})
	}
}

// TestRun_forgetsDeadLettersThatWereReplayed: those that nobody has replayed stay, however old they are.
func TestRun_forgetsDeadLettersThatWereReplayed(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	f, err := newFunction(t, db)
	require.NoError(t, err)
	_, err = db.Exec(t.Context(), `insert into dead_letters (id, consumer, source, event_id, type, event, code, at, replayed_at)
select gen_random_uuid(), 'c', 's', name, 't', '{}', 500, now() - interval '90 days', now() - replayed
from (values ('replayed long ago', interval '31 days'), ('replayed of late', interval '29 days'), ('never replayed', null))
	as l (name, replayed)`)
	require.NoError(t, err)
	require.NoError(t, f.Run(t.Context()))
	left, err := store.Collect(t.Context(), db, "read dead letters", pgx.RowTo[string],
		`select event_id from dead_letters order by event_id`)
	require.NoError(t, err)
	require.Equal(t, []string{"never replayed", "replayed of late"}, left)
}

func TestNew_refusesToKeepNothing(t *testing.T) {
	for _, setting := range []string{"ARCHIVE_AFTER", "INBOX_KEPT"} {
		t.Run(setting, func(t *testing.T) {
			for _, age := range []string{"0s", "-1h"} {
				t.Setenv(setting, age)
				_, err := newFunction(t, nil)
				require.ErrorContains(t, err, setting)
			}
		})
	}
}

func TestNew_refusesToKeepMoreSnapshotsThanThereMayBe(t *testing.T) {
	t.Setenv("ARCHIVE_SNAPSHOTS_KEPT", "10000")
	_, err := newFunction(t, nil)
	require.ErrorContains(t, err, "ARCHIVE_SNAPSHOTS_KEPT")
}
