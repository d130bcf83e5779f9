package policies

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

// TestMetrics_tellEachActionOnce: they are asked for at each scrape, and there are the actions of a month.
func TestMetrics_tellEachActionOnce(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	const actions, stages = 1000, 4
	_, err := db.Exec(t.Context(), `insert into policy_actions
(id, policy_id, instance, component, remediation, status, violation, started_at, received_at, judged_at, acted_at)
select gen_random_uuid(), gen_random_uuid(), '', '', '', 'done', '{}', at, at + '20 ms', at + '30 ms', at + '2 s'
from generate_series(1, $1) n, lateral (select now() - n * interval '1 minute' as at) s`, actions)
	require.NoError(t, err)
	plan, err := store.Collect(t.Context(), db, "explain", pgx.RowTo[string], "explain (analyze, costs off, timing off) "+selectTimes)
	require.NoError(t, err)
	for _, line := range plan {
		if found := regexp.MustCompile(`actual rows=(\d+)`).FindStringSubmatch(line); found != nil {
			rows, err := strconv.Atoi(found[1])
			require.NoError(t, err)
			require.LessOrEqual(t, rows, actions*stages, line)
		}
	}
	buckets, err := store.Collect(t.Context(), db, "measure", pgx.RowToStructByPos[struct {
		Stage   string
		UpTo    float64
		Count   int64
		Seconds float64
	}], selectTimes)
	require.NoError(t, err)
	require.Len(t, buckets, stages*13)
	for _, b := range buckets {
		took := map[string]float64{"alert": 0.02, "judge": 0.01, "act": 1.97, "total": 2}[b.Stage]
		want := 0
		if took <= b.UpTo {
			want = actions
		}
		require.EqualValues(t, want, b.Count, "%+v", b)
		require.InDelta(t, float64(want)*took, b.Seconds, 1e-6, "%+v", b)
	}
}
