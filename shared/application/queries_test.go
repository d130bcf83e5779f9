package application

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store"
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

// TestMisplaced_looksAtNoneThatIsInTheRightPlace: all placements wait while it looks.
func TestMisplaced_looksAtNoneThatIsInTheRightPlace(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	for _, sql := range []string{
		`with a as (insert into applications (id, name, namespace, descriptor)
select gen_random_uuid(), n, '', '' from generate_series(1, 1000) n returning id, name)
insert into jobs (id, application_id, component, type, state, instruction, lost_after, resource_name, cluster, node, misplaced)
select gen_random_uuid(), id, '', 'CreateDeployment', 'Finished', '{}', '0', '', 'edge', 'edge-1',
  case name when '1' then array['violating'] when '2' then array['too-large'] else '{}'::text[] end from a`,
		`analyze`,
	} {
		_, err := db.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	var found []uuid.UUID
	read := storetest.Reads(t, db, "jobs", func(ctx context.Context, tx *store.Tx) (err error) {
		found, err = Misplaced(ctx, tx, uuid.Nil, 10)
		return err
	})
	require.Len(t, found, 2)
	require.Less(t, read, int64(100))
}
