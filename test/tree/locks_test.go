package tree_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store/storetest"
)

const locksPage = "shared/docs/locks.md"

// TestTablesAreWrittenByTheirPackages: the page lists every table, and who writes it, and nobody else.
func TestTablesAreWrittenByTheirPackages(t *testing.T) {
	t.Parallel()
	listed := map[string][]string{}
	folder := regexp.MustCompile("`((?:shared|functions)/[a-z/-]+)`")
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|(.*)$").FindAllStringSubmatch(page(t, locksPage), -1) {
		listed[row[1]] = nil
		for _, f := range folder.FindAllStringSubmatch(row[2], -1) {
			listed[row[1]] = append(listed[row[1]], f[1])
		}
		slices.Sort(listed[row[1]])
	}
	require.Equal(t, tables(t), slices.Sorted(maps.Keys(listed)), "tables of %s", locksPage)

	writes := regexp.MustCompile(`(?i)\b(?:insert\s+into|update|delete\s+from|merge\s+into|truncate)\s+"?([a-z_]+)"?`)
	found := map[string][]string{}
	for _, p := range ours(t, "functions", "shared") {
		sources, err := filepath.Glob(filepath.Join(p.Dir, "*.go"))
		require.NoError(t, err)
		for _, source := range sources {
			if strings.HasSuffix(source, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
			require.NoError(t, err)
			ast.Inspect(file, func(n ast.Node) bool {
				if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING && strings.HasPrefix(text.Value, "`") {
					for _, m := range writes.FindAllStringSubmatch(text.Value, -1) {
						if _, is := listed[m[1]]; is && !slices.Contains(found[m[1]], p.folder()) {
							found[m[1]] = append(found[m[1]], p.folder())
						}
					}
				}
				return true
			})
		}
	}
	for table, by := range listed {
		slices.Sort(found[table])
		require.Equal(t, by, found[table], "who writes %s: by %s, and by the code", table, locksPage)
	}
}

// TestThePageHasTheOrderOfLocks: the tests hold the code to storetest.LockOrder, in which every table has its place.
func TestThePageHasTheOrderOfLocks(t *testing.T) {
	t.Parallel()
	var order []string
	for _, m := range regexp.MustCompile("(?m)^[0-9]+\\. `([a-z_ ]+)`").FindAllStringSubmatch(page(t, locksPage), -1) {
		order = append(order, m[1])
	}
	require.Equal(t, storetest.LockOrder, order)
	for _, table := range tables(t) {
		require.Contains(t, order, table)
	}
	for pair := range storetest.LockExceptions {
		before, after := slices.Index(order, pair[0]), slices.Index(order, pair[1])
		require.True(t, after >= 0 && after < before, "%v is in order, so it is no exception", pair)
	}
}

// tables returns the tables that the migrations make.
func tables(t testing.TB) []string {
	t.Helper()
	made := map[string]bool{}
	paths, err := filepath.Glob(filepath.Join(root, "shared/migrate/sql/*.sql"))
	require.NoError(t, err)
	for _, path := range paths {
		name, err := filepath.Rel(root, path)
		require.NoError(t, err)
		up, _, _ := strings.Cut(page(t, name), "-- +goose Down")
		for _, m := range regexp.MustCompile(`(?i)create (?:unlogged )?table (?:if not exists )?([a-z_]+)`).FindAllStringSubmatch(up, -1) {
			made[m[1]] = true
		}
		for _, m := range regexp.MustCompile(`(?i)drop table (?:if exists )?([a-z_]+)`).FindAllStringSubmatch(up, -1) {
			delete(made, m[1])
		}
	}
	require.NotEmpty(t, made)
	return slices.Sorted(maps.Keys(made))
}
