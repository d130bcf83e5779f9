package archive

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store/storetest"
)

// TestQueries_lookNoFurtherThanTheApplications: what is archived with some must not cost a look at what was done about all.
func TestQueries_lookNoFurtherThanTheApplications(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	require.Contains(t, storetest.Plan(t, db, applicationLines, "null"), "Index Cond: (instance = ")
	require.Contains(t, storetest.Plan(t, db, deleteActions, "null"), "Index Cond: (instance = ")
}
