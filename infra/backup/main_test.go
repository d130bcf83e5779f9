package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestBackUpAndRestore(t *testing.T) {
	t.Parallel()
	url, folder, stored := storetest.URL(t), t.TempDir(), t.TempDir()
	lookup := settings.Map(map[string]string{"DATABASE_URL": url, "OBJECTS_URL": "file://" + stored})
	call := func(args ...string) string {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), args, lookup, &out))
		return out.String()
	}
	db, err := store.Open(t.Context(), store.Config{DatabaseURL: url, MaxConns: 1}, nil, nil)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	add := func(name string) {
		_, err := db.Exec(t.Context(), `insert into cordons (cluster, node) values ('edge', $1)`, name)
		require.NoError(t, err)
	}
	nodes := func() []string {
		list, err := store.Collect(t.Context(), db, "read", pgx.RowTo[string], `select node from cordons order by node`)
		require.NoError(t, err)
		return list
	}
	object := filepath.Join(stored, "history", "one")
	require.NoError(t, os.MkdirAll(filepath.Dir(object), 0o700))
	require.NoError(t, os.WriteFile(object, []byte("old"), 0o600))
	add("edge-1")
	for _, name := range []string{"littoral-20200101T000000Z.zip", "littoral-20200102T000000Z.zip", "another.zip"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), nil, 0o600))
	}
	require.Contains(t, call("backup", "--keep", "2", folder), "1 objects")
	left, err := filepath.Glob(folder + "/*")
	require.NoError(t, err)
	require.Len(t, left, 3, "the oldest has gone, and nothing of another name")
	backup := left[2]
	info, err := os.Stat(backup)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "it has secrets")

	add("edge-2")
	require.NoError(t, os.Remove(object))
	require.Equal(t, []string{"edge-1", "edge-2"}, nodes())
	require.Contains(t, call("restore", backup), "drop schema littoral_before_")
	require.Equal(t, []string{"edge-1"}, nodes(), "over the connection that was there before")
	text, err := os.ReadFile(object)
	require.NoError(t, err)
	require.Equal(t, "old", string(text))
	call("restore", "--mark")

	for _, args := range [][]string{{}, {"what"}, {"backup"}, {"restore"}, {"restore", "--mark", "x"}, {"backup", "--keep", "1", "x.zip"}} {
		require.Equal(t, 2, exit(run(t.Context(), args, lookup, &bytes.Buffer{}), &bytes.Buffer{}), "%v", args)
	}
	require.Zero(t, exit(run(t.Context(), []string{"restore", "--help"}, lookup, &bytes.Buffer{}), &bytes.Buffer{}))
	require.Equal(t, 1, exit(run(t.Context(), []string{"restore", "/none"}, lookup, &bytes.Buffer{}), &bytes.Buffer{}))
}
