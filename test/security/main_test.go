package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCorporaAreThere: a test that was renamed would not be missed otherwise.
func TestCorporaAreThere(t *testing.T) {
	t.Parallel()
	for _, c := range corpora {
		for pkg, tests := range c.tests {
			files, err := filepath.Glob(filepath.Join("../..", pkg, "*_test.go"))
			require.NoError(t, err)
			var all strings.Builder
			for _, file := range files {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				all.Write(text)
			}
			for _, test := range tests {
				require.Contains(t, all.String(), "func "+test+"(", "%s: %s", c.name, pkg)
			}
		}
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	passed, said := map[string]int{}, &strings.Builder{}
	require.NoError(t, count(strings.NewReader(`{"Action":"pass","Test":"TestA/one"}
{"Action":"pass","Test":"TestA/two"}
{"Action":"pass","Test":"TestA"}
# not JSON
{"Action":"output","Test":"TestB/x","Output":"it was let in"}
{"Action":"fail","Test":"TestB/x"}
{"Action":"fail","Test":"TestB"}
{"Action":"fail"}
`), said, "./p", passed))
	require.Equal(t, map[string]int{"./p TestA": 3}, passed)
	require.Equal(t, "it was let in", said.String())
}
