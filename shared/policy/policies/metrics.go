package policies

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/paging"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/store"
)

// selectTimes reads the histogram of all actions, including deleted ones. Each action is counted once per stage, under the number
// of buckets that hold it, and the counts are summed up afterwards: to join each action with all its buckets takes ten times as
// long.
const selectTimes = `with buckets as (
  select *, rank() over (partition by stage order by le desc) as place from reaction_times
), bounds as (
  select stage, array_agg(-le order by le desc) as negated from reaction_times group by stage
), took as (
  select s.stage, width_bucket(-s.seconds::float8, b.negated) as held_by, count(*), sum(s.seconds) as seconds
  from policy_actions a cross join lateral reaction_stages(a.started_at, a.received_at, a.judged_at, a.acted_at) s
  join bounds b on b.stage = s.stage group by 1, 2
)
select t.stage, t.le, (t.count + coalesce(sum(k.count), 0))::bigint, (t.seconds + coalesce(sum(k.seconds), 0))::float8
from buckets t left join took k on k.stage = t.stage and k.held_by >= t.place
group by t.stage, t.le, t.count, t.seconds order by t.stage, t.le`

// Metrics returns the phase of each policy and the duration of each stage of a reaction, in the text format of
// Prometheus.
func Metrics(ctx context.Context, q store.Querier) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("# HELP plm_policy_enforced Whether the policy is enforced (1) or not (0).\n" +
		"# TYPE plm_policy_enforced gauge\n")
	for page := (paging.Page{Limit: paging.MaxLimit}); ; {
		sql, args := Filter{}.query(page)
		list, err := many(ctx, q, sql, args...)
		if err != nil {
			return nil, err
		}
		for _, p := range list {
			p.measure(&b)
		}
		if len(list) < page.Limit {
			break
		}
		last := list[len(list)-1]
		page.After = paging.Cursor{At: last.CreatedAt, ID: last.UUID()}
	}
	return histograms(ctx, q, &b)
}

func (p *Policy) measure(b *bytes.Buffer) {
	labels := p.Subject.Labels()
	labels["id"], labels["name"] = p.ID, p.Name
	parts := make([]string, 0, len(labels))
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, name+`="`+escaper.Replace(labels[name])+`"`)
	}
	value := 0
	if p.State.Phase == registry.Enforced {
		value = 1
	}
	fmt.Fprintf(b, "plm_policy_enforced{%s} %d\n", strings.Join(parts, ","), value)
}

var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func histograms(ctx context.Context, q store.Querier, b *bytes.Buffer) ([]byte, error) {
	const name = "plm_reaction_seconds"
	const help = "# HELP %s Time from an alert's start to the action on it, by stage.\n# TYPE %s histogram\n"
	fmt.Fprintf(b, help, name, name)
	type bucket struct {
		Stage   string
		UpTo    float64
		Count   int64
		Seconds float64
	}
	buckets, err := store.Collect(ctx, q, "measure reactions", pgx.RowToStructByPos[bucket], selectTimes)
	if err != nil {
		return nil, err
	}
	for _, k := range buckets {
		fmt.Fprintf(b, "%s_bucket{stage=%q,le=%q} %d\n", name, k.Stage, strconv.FormatFloat(k.UpTo, 'g', -1, 64), k.Count)
		if math.IsInf(k.UpTo, 1) {
			fmt.Fprintf(b, "%s_sum{stage=%q} %g\n%s_count{stage=%q} %d\n", name, k.Stage, k.Seconds, name, k.Stage, k.Count)
		}
	}
	return b.Bytes(), nil
}
