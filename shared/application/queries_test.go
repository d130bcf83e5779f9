package application

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store/storetest"
)

// TestQueries_lookNoFurtherThanTheNode: who serves a node is asked at each tick, and what that costs must not grow with all
// the places.
func TestQueries_lookNoFurtherThanTheNode(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	require.Contains(t, storetest.Plan(t, db, lockOwners, "null, null, null"), "Index Cond: ((cluster = ")
	require.Contains(t, storetest.Plan(t, db, selectHandovers, ""), "Index Cond: ((cluster = ")
}
