package main

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const small = "p min 3 4\nn 1 2\nn 3 -2\na 1 2 0 2 1\na 2 3 0 1 1\na 1 3 0 2 5\na 2 3 0 1 2\n"

func TestMeasure_plainAndZipped(t *testing.T) {
	t.Parallel()
	plain, zipped := filepath.Join(t.TempDir(), "small.in"), filepath.Join(t.TempDir(), "small.in.gz")
	require.NoError(t, os.WriteFile(plain, []byte(small), 0o600))
	f, err := os.Create(zipped)
	require.NoError(t, err)
	z := gzip.NewWriter(f)
	_, err = z.Write([]byte(small))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.NoError(t, f.Close())
	for _, file := range []string{plain, zipped} {
		r, err := measure(settings{runs: 3, resolve: 0.5, seed: 1}, file)
		require.NoError(t, err)
		require.EqualValues(t, 5, r.Cost)
		require.True(t, r.Checked)
		require.True(t, r.Resolve.Equal)
		require.Equal(t, 2, r.Resolve.Changed)
	}
}

func TestMeasure_badFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "bad.in")
	require.NoError(t, os.WriteFile(file, []byte("p min 2 1\na 1 2 0 x 1\n"), 0o600))
	_, err := measure(settings{runs: 1}, file)
	require.ErrorContains(t, err, "line 2")
	_, err = measure(settings{runs: 1}, file+".missing")
	require.ErrorIs(t, err, os.ErrNotExist)
}
