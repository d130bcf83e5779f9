package match

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

// TestReservations_leaveContentAside: all placements wait while it is asked what the jobs hold, and what is to be deployed is
// by far the most of them.
func TestReservations_leaveContentAside(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	for _, sql := range []string{
		`with a as (insert into applications (id, name, namespace, descriptor)
values (gen_random_uuid(), '', '', '') returning id)
insert into jobs (id, application_id, component, type, state, instruction, lost_after, resource_name, cluster, node)
select gen_random_uuid(), id, n, 'CreateDeployment', 'Created', jsonb_build_object('requirements',
  case when n = 1 then '{"resources": {"gpu": 2}}'::jsonb else '{}' end, 'contents', content), '0', '', 'edge', 'edge-1'
from a, generate_series(1, 2000) n, lateral (select string_agg(md5(n || '-' || i), '') as content from generate_series(1, 200) i) c`,
		`vacuum analyze jobs`,
	} {
		_, err := db.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	inv := &inventory{}
	require.NoError(t, inv.readReservations(t.Context(), db))
	held := inv.reservations[[2]string{"edge", "edge-1"}]
	require.Len(t, held, 2000)
	gpus := int64(0)
	for _, r := range held {
		gpus += r.Resources["gpu"]
	}
	require.Equal(t, int64(2), gpus)

	plan, err := store.Collect(t.Context(), db, "explain", pgx.RowTo[string],
		"explain (analyze, buffers, costs off, timing off) "+selectReservations)
	require.NoError(t, err)
	whole := slices.IndexFunc(plan, func(line string) bool { return strings.Contains(line, "Buffers: shared") }) // its parts follow
	require.GreaterOrEqual(t, whole, 0)
	pages := 0
	for _, number := range regexp.MustCompile(`(?:hit|read)=(\d+)`).FindAllStringSubmatch(plan[whole], -1) {
		n, err := strconv.Atoi(number[1])
		require.NoError(t, err)
		pages += n
	}
	require.Positive(t, pages)
	require.Less(t, pages, 1000, strings.Join(plan, "\n"))
}
