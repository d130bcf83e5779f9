package policies

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/store"
)

// buckets are the upper bounds of the reaction times, in seconds.
var buckets = []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300}

// stages are the steps from the alert to the action, with the columns at their ends.
var stages = []struct{ name, from, to string }{
	{"alert", "started_at", "received_at"},
	{"judge", "received_at", "judged_at"},
	{"act", "judged_at", "acted_at"},
	{"total", "started_at", "acted_at"},
}

const selectStage = `with took as (select extract(epoch from %[2]s - %[1]s)::float8 as s from policy_actions
  where %[2]s is not null and %[1]s is not null)
select (select array_agg((select count(*) from took where s <= b) order by b) from unnest($1::float8[]) b), count(*),
coalesce(sum(s), 0) from took`

// Metrics writes how the policies stand, and how long each stage of a reaction took, in the text format of Prometheus.
func Metrics(ctx context.Context, q store.Querier) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("# HELP plm_policy_enforced Whether the policy is enforced (1) or not (0).\n" +
		"# TYPE plm_policy_enforced gauge\n")
	for page := (function.Page{Limit: function.MaxLimit}); ; {
		list, err := many(ctx, q, selectList, page.After.At, page.After.ID, "", "", "", "", "", page.Limit)
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
		page.After = function.Cursor{At: last.CreatedAt, ID: last.UUID()}
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
	for _, stage := range stages {
		rows, err := q.Query(ctx, fmt.Sprintf(selectStage, stage.from, stage.to), buckets)
		if err != nil {
			return nil, fmt.Errorf("measure reactions: %w", err)
		}
		type stats struct {
			Counts []int64
			Count  int64
			Sum    float64
		}
		s, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[stats])
		if err != nil {
			return nil, fmt.Errorf("measure reactions: %w", err)
		}
		for i, le := range buckets {
			fmt.Fprintf(b, "%s_bucket{stage=%q,le=%q} %d\n", name, stage.name, strconv.FormatFloat(le, 'g', -1, 64), s.Counts[i])
		}
		fmt.Fprintf(b, "%s_bucket{stage=%q,le=\"+Inf\"} %d\n%s_sum{stage=%q} %g\n%s_count{stage=%q} %d\n", name, stage.name,
			s.Count, name, stage.name, s.Sum, name, stage.name, s.Count)
	}
	return b.Bytes(), nil
}
