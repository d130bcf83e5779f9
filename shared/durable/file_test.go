package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/durable"
)

func TestWriteFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	require.NoError(t, durable.WriteFile(path, []byte("a longer first version"), 0o600))
	require.NoError(t, durable.WriteFile(path, []byte("second"), 0o600))

	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "second", string(got))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1, "no temporary file stays behind")
}

func TestWriteFile_names_the_path_it_could_not_write(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "missing", "state.json")
	require.ErrorContains(t, durable.WriteFile(path, nil, 0o600), path)
}

func TestMkdirAll(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	path := filepath.Join(top, "a", "b", "c")
	for range 2 {
		require.NoError(t, durable.MkdirAll(path, 0o750))
		require.DirExists(t, path)
	}
	file := filepath.Join(top, "file")
	require.NoError(t, durable.WriteFile(file, nil, 0o600))
	require.Error(t, durable.MkdirAll(filepath.Join(file, "below"), 0o750))
}
