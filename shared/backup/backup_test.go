package backup_test

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/backup"
	"github.com/littoral-project/littoral/shared/migrate"
	"github.com/littoral-project/littoral/shared/objects/folder"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const document = `name: shop
components:
  - {name: web, type: kubernetes, manifests: [{name: web, manifest: {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: web, image: web}]}}}]}
`

type database struct {
	*testing.T

	*store.DB
	url string
}

func newDatabase(t *testing.T) *database {
	t.Helper()
	return at(t, storetest.URL(t))
}

func at(t *testing.T, url string) *database {
	t.Helper()
	db, err := store.Open(t.Context(), store.Config{DatabaseURL: url, MaxConns: 4}, &storetest.Recorder{}, nil)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	return &database{t, db, url}
}

func (w *database) exec(sql string, args ...any) {
	w.Helper()
	_, err := w.DB.Exec(w.Context(), sql, args...)
	require.NoError(w, err)
}

func (w *database) read(sql string) (lines []string) {
	w.Helper()
	lines, err := store.Collect(w.Context(), w.DB, "read", pgx.RowTo[string], sql)
	require.NoError(w, err)
	return lines
}

func (w *database) submit() (id uuid.UUID) {
	w.Helper()
	require.NoError(w, w.Tx(w.Context(), func(ctx context.Context, tx *store.Tx) error {
		a, _, err := applicationtest.Put(ctx, tx, application.Submission{Document: []byte(document), LostAfter: time.Minute})
		id = a.ID
		return err
	}))
	require.Eventually(w, func() bool { return len(w.read(`select '' from outbox`)) == 0 }, time.Minute, 5*time.Millisecond, "its events are published")
	return id
}

func (w *database) write() []byte {
	w.Helper()
	conn, err := pgx.Connect(w.Context(), w.url)
	require.NoError(w, err)
	defer func() { require.NoError(w, conn.Close(w.Context())) }()
	var b bytes.Buffer
	_, err = backup.Write(w.Context(), conn, nil, &b)
	require.NoError(w, err)
	return b.Bytes()
}

func (w *database) restore(file []byte) (*backup.Restored, error) {
	w.Helper()
	return backup.Restore(w.Context(), bytes.NewReader(file), int64(len(file)), backup.Options{
		DatabaseURL: w.url, Managers: "deploymentmanager-%", Patience: time.Minute,
	})
}

// everything is what is in all tables but what a restore changes.
func (w *database) everything() (lines []string) {
	w.Helper()
	for _, table := range w.read(`select tablename from pg_tables where schemaname = 'public' and tablename <> 'goose_db_version' order by 1`) {
		lines = append(lines, w.read(`select '`+table+` ' || (to_jsonb(t) - 'epoch')::text from "`+table+`" t order by 1`)...)
	}
	return lines
}

// TestARestoredDatabaseHasWhatTheOtherHad: an empty one, elsewhere.
func TestARestoredDatabaseHasWhatTheOtherHad(t *testing.T) {
	t.Parallel()
	w := newDatabase(t)
	w.submit()
	file := w.write()
	other := newDatabase(t)
	other.exec(`drop schema public cascade`)
	other.exec(`create schema public`)
	done, err := other.restore(file)
	require.NoError(t, err)
	require.Empty(t, done.Former)
	require.Equal(t, w.everything(), other.everything())
	require.Equal(t, []string{"public"}, other.read(`select nspname from pg_namespace where nspname in ('public') or nspname like 'littoral%'`))
	require.NoError(t, migrate.Up(t.Context(), other.url), "nothing is left to migrate")
	newest := w.read(`select max(id)::text from history`)[0]
	other.submit()
	require.Equal(t, []string{"true"}, other.read(`select (max(id) > `+newest+` + 1000000)::text from history`), "no number is given twice")
	_, err = other.restore(file)
	require.NoError(t, err, "again")
}

// TestBackupsOfFormerVersions are migrated.
func TestBackupsOfFormerVersions(t *testing.T) {
	t.Parallel()
	w := newDatabase(t)
	w.exec(`drop schema public cascade`)
	w.exec(`create schema public`)
	known, err := migrate.Versions()
	require.NoError(t, err)
	require.NoError(t, migrate.UpTo(t.Context(), w.url, known[len(known)-2]))
	w.exec(`insert into cordons (cluster, node) values ('edge', 'edge-1')`)
	file := w.write()
	other := newDatabase(t)
	_, err = other.restore(file)
	require.NoError(t, err)
	require.Equal(t, []string{"edge-1"}, other.read(`select node from cordons`))
	require.NoError(t, migrate.Up(t.Context(), other.url))
}

// TestWhatIsNoBackupChangesNothing.
func TestWhatIsNoBackupChangesNothing(t *testing.T) {
	t.Parallel()
	w := newDatabase(t)
	w.submit()
	good := w.write()
	changed := func(name, from, to string) []byte {
		z, err := zip.NewReader(bytes.NewReader(good), int64(len(good)))
		require.NoError(t, err)
		var b bytes.Buffer
		out := zip.NewWriter(&b)
		for _, f := range z.File {
			r, err := f.Open()
			require.NoError(t, err)
			text, err := io.ReadAll(r)
			require.NoError(t, err)
			if f.Name == name {
				require.Contains(t, string(text), from)
				text = []byte(strings.ReplaceAll(string(text), from, to))
			}
			entry, err := out.Create(f.Name)
			require.NoError(t, err)
			_, err = entry.Write(text)
			require.NoError(t, err)
		}
		require.NoError(t, out.Close())
		return b.Bytes()
	}
	before := w.everything()
	for name, row := range map[string]struct {
		file []byte
		says string
	}{
		"nothing":              {nil, "no backup"},
		"its end is missing":   {good[:len(good)/2], "no backup"},
		"a row was changed":    {changed("database/applications", "shop", "shap"), "damaged"},
		"a newer version":      {changed("manifest.json", `"migrations": [`, `"migrations": [ 0,`), "newer"},
		"another format":       {changed("manifest.json", `"format": 1`, `"format": 2`), "format"},
		"other columns":        {changed("manifest.json", `"descriptor"`, `"text"`), "other tables"},
		"a table is not in it": {changed("manifest.json", `"name": "jobs"`, `"name": "work"`), "other tables"},
	} {
		_, err := w.restore(row.file)
		require.ErrorContains(t, err, row.says, name)
	}
	require.Equal(t, before, w.everything())
	require.Empty(t, w.read(`select nspname from pg_namespace where nspname like 'littoral%'`))
}

// TestRestoreWaitsForWhoIsAtWork: a transaction that has begun ends on what was there, and the next begins with what
// was restored. Whoever may use a table may use it afterwards.
func TestRestoreWaitsForWhoIsAtWork(t *testing.T) {
	t.Parallel()
	w := newDatabase(t)
	kept := w.submit()
	file := w.write()
	role := "reader_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	w.exec(`create role ` + role)
	t.Cleanup(func() {
		_, err := w.DB.Exec(context.WithoutCancel(t.Context()), `drop owned by `+role+`; drop role `+role)
		require.NoError(t, err)
	})
	w.exec(`grant select on applications to ` + role + `; grant update (name) on applications to ` + role + `; grant usage on bus_numbers to ` + role)
	type answer struct {
		done *backup.Restored
		err  error
	}
	restored := make(chan answer, 1)
	require.NoError(t, w.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.Exec(ctx, `insert into cordons (cluster, node) values ('edge', 'edge-1')`); err != nil {
			return err
		}
		go func() {
			done, err := w.restore(file)
			restored <- answer{done, err}
		}()
		storetest.AwaitBlocked(t, w.DB)
		_, err := tx.Exec(ctx, `delete from history`) // of the former tables, too
		return err
	}))
	a := <-restored
	require.NoError(t, a.err)
	require.Equal(t, []string{kept.String()}, w.read(`select id::text from applications`))
	require.Empty(t, w.read(`select node from cordons`))
	require.NotEmpty(t, w.read(`select event from history`))
	require.Equal(t, []string{"edge-1"}, w.read(`select node from `+a.done.Former+`.cordons`), "nothing is lost for good")
	for what, may := range map[string]string{
		`has_table_privilege('%s', 'applications', 'select')`: "true", `has_table_privilege('%s', 'applications', 'update')`: "false",
		`has_column_privilege('%s', 'applications', 'name', 'update')`: "true", `has_sequence_privilege('%s', 'bus_numbers', 'usage')`: "true",
	} {
		require.Equal(t, []string{may}, w.read(`select `+fmt.Sprintf(what, role)+`::text`), what)
	}
}

// TestObjectsOfABackup come back, and others stay.
func TestObjectsOfABackup(t *testing.T) {
	t.Parallel()
	w := newDatabase(t)
	o := folder.New(t.TempDir())
	put := func(key, body string) { require.NoError(t, o.Put(t.Context(), key, []byte(body))) }
	put("history/1", "one")
	put("models/2", "two")
	conn, err := pgx.Connect(t.Context(), w.url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	var b bytes.Buffer
	m, err := backup.Write(t.Context(), conn, o, &b)
	require.NoError(t, err)
	require.Len(t, m.Objects, 2)
	require.NoError(t, o.Delete(t.Context(), "history/1"))
	put("models/2", "other")
	put("models/3", "three")
	_, err = w.restore(b.Bytes())
	require.ErrorContains(t, err, "OBJECTS_URL")
	_, err = backup.Restore(t.Context(), bytes.NewReader(b.Bytes()), int64(b.Len()), backup.Options{DatabaseURL: w.url, Objects: o, Managers: "x"})
	require.NoError(t, err)
	for key, want := range map[string]string{"history/1": "one", "models/2": "two", "models/3": "three"} {
		body, err := o.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, want, string(body))
	}
}
