package job

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store/storetest"
)

// TestQueries_lookNoFurtherThanTheApplication: what one application costs must not grow with all the others.
func TestQueries_lookNoFurtherThanTheApplication(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	for name, sql := range map[string]string{"to be read": selectOfApplications, "to be changed": selectOfApplicationForUpdate} {
		require.Contains(t, storetest.Plan(t, db, sql, "null"), "Index Cond: (application_id = ", name)
	}
}

// TestQueries_lookNoFurtherThanTheNode: nor what a node costs with all the places.
func TestQueries_lookNoFurtherThanTheNode(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	require.Contains(t, storetest.Plan(t, db, selectOwnedAt, "null, null, null"), "Index Cond: ((cluster = ")
}
