package archive_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions/jobmanager/archive"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/topology"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func newFunction(t *testing.T, db *store.DB, given map[string]string) (*archive.Function, error) {
	t.Helper()
	return archive.New(function.Platform{DB: db, Log: slog.New(slog.DiscardHandler), Settings: settings.Map(given)}.Env("jobmanager-archive"))
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
			f, err := newFunction(t, db, map[string]string{row.variable: row.objects, "ARCHIVE_SNAPSHOTS_KEPT": "600"})
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
	f, err := newFunction(t, db, nil)
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
				_, err := newFunction(t, nil, map[string]string{setting: age})
				require.ErrorContains(t, err, setting)
			}
		})
	}
}

func TestNew_refusesToKeepMoreSnapshotsThanThereMayBe(t *testing.T) {
	t.Parallel()
	_, err := newFunction(t, nil, map[string]string{"ARCHIVE_SNAPSHOTS_KEPT": "10000"})
	require.ErrorContains(t, err, "ARCHIVE_SNAPSHOTS_KEPT")
}

// TestRun_keepsEachKindAsLongAsItIsTold: a kind without a setting of its own is kept as long as ARCHIVE_AFTER says.
func TestRun_keepsEachKindAsLongAsItIsTold(t *testing.T) {
	for name, row := range map[string]struct {
		general, applications, topology string
		archived                        []string
	}{
		"all for longer":           {"3h", "", "", []string{}},
		"none for so long":         {"1h", "", "", []string{"applications", "history", "topology"}},
		"applications for less":    {"3h", "1h", "", []string{"applications"}},
		"snapshots for less":       {"3h", "", "1h", []string{"topology"}},
		"all but history for more": {"1h", "3h", "3h", []string{"history"}},
	} {
		t.Run(name, func(t *testing.T) {
			db := storetest.New(t)
			given := map[string]string{"OBJECTS_URL": "file://" + t.TempDir(), "ARCHIVE_AFTER": row.general}
			for setting, value := range map[string]string{
				"ARCHIVE_APPLICATIONS_AFTER": row.applications, "ARCHIVE_TOPOLOGY_AFTER": row.topology,
			} {
				if value != "" {
					given[setting] = value
				}
			}
			f, err := newFunction(t, db, given)
			require.NoError(t, err)
			for _, old := range []string{
				`insert into history (event, at) values ('e', now() - interval '2 hours')`,
				`insert into applications (id, name, namespace, descriptor, deleted_at)
values (gen_random_uuid(), 'a', 'a', '', now() - interval '2 hours')`,
				`insert into topology_snapshots (id, changes, taxonomy, at)
values ('00000000-0000-7000-8000-000000000000', '[]', '{}', now() - interval '2 hours')`,
			} {
				_, err := db.Exec(t.Context(), old)
				require.NoError(t, err)
			}
			require.NoError(t, f.Run(t.Context()))
			archived, err := store.Collect(t.Context(), db, "read archives", pgx.RowTo[string], `select kind from archives order by kind`)
			require.NoError(t, err)
			require.Equal(t, row.archived, archived)
		})
	}
}

// TestRun_forgetsWhatIsNotRepeatedAnyMore: marks of events, and removals of former copies that have ended.
func TestRun_forgetsWhatIsNotRepeatedAnyMore(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	f, err := newFunction(t, db, nil)
	require.NoError(t, err)
	for _, done := range []string{
		`insert into inbox (consumer, source, id, at) values ('c', 's', 'old', now() - interval '31 days'),
	('c', 's', 'young', now() - interval '29 days')`,
		`insert into applications (id, name, namespace, descriptor) values (gen_random_uuid(), 'a', 'a', '')`,
		`insert into jobs (id, application_id, component, type, state, instruction, lost_after, resource_name)
select gen_random_uuid(), id, 'c', 'CreateDeployment', 'Created', '{}', interval '1 min', 'c' from applications`,
		`insert into jobs (id, application_id, component, cleans, type, state, instruction, lost_after, resource_name, updated_at)
select gen_random_uuid(), application_id, name, id, 'DeleteDeployment', 'Finished', '{}', lost_after, 'c', now() - age
from jobs, (values ('old', interval '25 hours'), ('young', interval '23 hours')) as l (name, age)`,
	} {
		_, err := db.Exec(t.Context(), done)
		require.NoError(t, err)
	}
	require.NoError(t, f.Run(t.Context()))
	for _, left := range []string{`select id from inbox`, `select component from jobs where cleans is not null`} {
		names, err := store.Collect(t.Context(), db, "read what is left", pgx.RowTo[string], left)
		require.NoError(t, err)
		require.Equal(t, []string{"young"}, names, left)
	}
}
