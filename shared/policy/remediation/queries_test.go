package remediation

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestQueries_lookNoFurtherThanTheSubject: the cost of a violation must not depend on the number of other jobs.
func TestQueries_lookNoFurtherThanTheSubject(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	for _, sql := range []string{
		`with a as (insert into applications (id, name, namespace, descriptor)
values (gen_random_uuid(), '', '', '') returning id)
insert into jobs (id, application_id, component, type, state, instruction, lost_after, resource_uuid, resource_name)
select gen_random_uuid(), id, n, 'CreateDeployment', 'Created', '{}', '0', n, '' from a, generate_series(1, 1000) n`,
		`analyze jobs`,
	} { // a plan for an empty table would read all of it
		_, err := db.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	plan := storetest.Plan(t, db, byResource, "null, null")
	require.Contains(t, plan, "Index Cond: (resource_uuid = ")
	require.Contains(t, plan, "Index Cond: (id = ")
	require.Contains(t, storetest.Plan(t, db, byComponent, "null, null"), "Index Cond: (application_id = ")
}
