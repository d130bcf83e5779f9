package tree_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMigrations_haveNumbersOfTheirOwn: two with one number are in no order, and none of the functions would start.
func TestMigrations_haveNumbersOfTheirOwn(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../shared/migrate/sql/*.sql")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	taken := map[string]string{}
	for _, file := range files {
		number, _, _ := strings.Cut(filepath.Base(file), "_")
		require.Empty(t, taken[number], "%s has the number of %s", filepath.Base(file), taken[number])
		taken[number] = filepath.Base(file)
	}
}
