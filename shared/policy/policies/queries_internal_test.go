package policies

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/paging"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

// TestList_looksNoFurtherThanTheApplication: who asks for the policies of one must not have those of all looked through.
func TestList_looksNoFurtherThanTheApplication(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	for _, prepare := range []string{
		`insert into policies (id, instance, name, origin, phase, definition)
select gen_random_uuid(), 'instance-' || n, 'policy-' || n, 'api', 'enforced', jsonb_build_object('subject', jsonb_build_object('appName', 'app-' || n))
from generate_series(1, 5000) n`,
		`analyze policies`,
	} { // of an empty table all is read in no time
		_, err := db.Exec(t.Context(), prepare)
		require.NoError(t, err)
	}
	sql, args := Filter{App: "a"}.query(paging.Page{})
	require.Len(t, args, 4)
	plan := storetest.Plan(t, db, sql, "null, null, null, null")
	require.Contains(t, plan, "Index Cond: (instance = ")
	require.Contains(t, plan, "policies_app_idx")
}

// TestList_byAll: what is given is asked for together.
func TestList_byAll(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	_, err := db.Exec(t.Context(), `insert into policies (id, instance, name, origin, phase, definition)
select gen_random_uuid(), 'instance-' || n / 10, 'policy-' || n, 'api', case when n % 2 = 0 then 'enforced' else 'violated' end,
  jsonb_build_object('subject', jsonb_build_object('type', 'app', 'appName', 'app-' || n / 10, 'appComponent', 'c' || n % 5))
from generate_series(0, 99) n`)
	require.NoError(t, err)
	for _, row := range []struct {
		filter Filter
		want   int
	}{
		{Filter{App: "app-7"}, 10},
		{Filter{App: "instance-7"}, 10},
		{Filter{App: "instance-7,nobody,instance-8", Phase: "violated"}, 10},
		{Filter{App: "nobody"}, 0},
		{Filter{App: "app-7", Phase: "violated"}, 5},
		{Filter{App: "app-7", Phase: "violated", Subject: "c1"}, 1},
		{Filter{App: "app-7", Name: "policy-71", Search: "POLICY"}, 1},
		{Filter{}, 20},
	} {
		list, _, err := List(t.Context(), db, row.filter, paging.Page{Limit: 20})
		require.NoError(t, err)
		require.Len(t, list, row.want, "%+v", row.filter)
	}
}
