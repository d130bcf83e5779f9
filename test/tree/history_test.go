package tree_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var entryName = regexp.MustCompile("[\"'](application|job|policy|event)\\.[a-z]+[\"']|[\"']topology\\.changed[\"']")

// TestNamesOfHistoryAreConstants: who reads history looks for the very names that are written.
func TestNamesOfHistoryAreConstants(t *testing.T) {
	t.Parallel()
	for _, file := range files(t) {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || below(file, "shared/history/recorded") ||
			!below(file, "shared") && !below(file, "functions") {
			continue
		}
		text, err := os.ReadFile(root + "/" + file)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			code, _, _ := strings.Cut(line, "//")
			require.NotRegexp(t, entryName, code, "%s: package recorded has the names", file)
		}
	}
}
