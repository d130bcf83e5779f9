package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGenerateWritesAWorld(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "world")
	var out, problems strings.Builder
	sh := Shell{Stdout: &out, Stderr: &problems, Getenv: func(string) string { return "" }}
	require.Zero(t, sh.Run(t.Context(), []string{"generate", "--nodes", "5", "--seed", "7", "--for", "10m", "--out", dir}), problems.String())
	for _, name := range []string{"taxonomy.json", "network.json", "topology.json", "codecoapps.yaml", "data.csv", "metrics.prom", "events-1.json", "acm-mons.yaml"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NotEmpty(t, text, name)
		require.Contains(t, out.String(), name)
	}
	require.NotZero(t, sh.Run(t.Context(), []string{"generate", "--nodes", "0", "--out", dir}))
	require.Contains(t, problems.String(), "1 to 20000 nodes")
	require.NotZero(t, sh.Run(t.Context(), []string{"generate", "--step", "0s", "--out", dir}))
}
