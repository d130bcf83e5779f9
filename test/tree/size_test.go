package tree_test

import (
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const mostLines = 3000

// TestPackagesOfSharedAreSmallOrSayWhyNot counts the lines of each package without its tests and generated files. A larger one
// has a row with the reason in architecture.md, and a row that is not needed any more has to go.
func TestPackagesOfSharedAreSmallOrSayWhyNot(t *testing.T) {
	t.Parallel()
	lines := map[string]int{}
	for _, name := range files(t) {
		if !strings.HasPrefix(name, "shared/") || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		if text := page(t, name); !strings.HasPrefix(text, "// Code generated ") {
			lines[path.Dir(name)] += strings.Count(text, "\n")
		}
	}
	require.NotEmpty(t, lines)

	_, section, found := strings.Cut(page(t, "shared/docs/architecture.md"), "\n## Large packages\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	excused := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(shared/[^`]+)` \\| [^|]+ \\|$").FindAllStringSubmatch(section, -1) {
		excused[row[1]] = true
	}
	for dir, n := range lines {
		if n > mostLines && !excused[dir] {
			t.Errorf("%s has %d lines: divide it, or say why not in architecture.md", dir, n)
		}
	}
	for dir := range excused {
		if lines[dir] <= mostLines {
			t.Errorf("%s has %d lines: it needs no row in architecture.md", dir, lines[dir])
		}
	}
}
