package match

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
)

// A decision for one application needs few nodes: Postgres judges all of them by the hard constraints, row by row, scores those
// that pass, and hands over the best for each component. Of the others it counts how many break which rules, which is all that
// an explanation says of them. The statement repeats what package placement demands; TestCandidates_decideAsAllNodesDo holds
// one against the other.
//
// It is enough to look at as many of the best nodes for a component, under each orchestrator, as there are components: if one
// were on a worse node, one of these would have none of the others, and it would be better off there. That holds while nothing
// but the orchestrator ties components to each other. With affinities all nodes that pass are looked at.

const (
	// shown is how many nodes beside those a stored decision may name: placement keeps the five best, and one that failed.
	shown = 7

	// mostJudged bounds the components of an application that is placed this way, and mostJudgedTogether the different demands
	// of several applications: each demand is held against each node.
	mostJudged         = 32
	mostJudgedTogether = 8

	allCandidates = math.MaxInt32

	// manyNodes is from how many nodes it is cheaper to have Postgres judge them than to read them all.
	manyNodes  = 1000
	selectMany = `select count(*) = $1 from (select from topology_nodes limit $1) s`
)

// demand is what components of equal requirements ask of a node, as the statement reads it. Null asks for nothing.
type demand struct {
	Class         int                 `json:"class"`
	CPU           int64               `json:"cpu"`
	Memory        int64               `json:"memory"`
	FreeMemory    int64               `json:"free"`
	Engines       []string            `json:"engines"`       // in lower case
	Architectures []string            `json:"architectures"` // all spellings, in lower case
	Shared        []string            `json:"shared"`        // orchestrators
	Labels        map[string][]string `json:"labels"`
	Security      *int                `json:"security"`
	MaxCPU        *float64            `json:"max_cpu"`
	MaxMemory     *float64            `json:"max_memory"`
	Devices       map[string]int      `json:"devices"`
	Targets       []pattern           `json:"targets"`
	Excluded      []pattern           `json:"excluded"`
	Performance   float64             `json:"performance"`
	Energy        float64             `json:"energy"`
	Safety        float64             `json:"safety"`
	Keep          int                 `json:"keep"`

	components []string // ids
}

// pattern is a placement.Target with the orchestrator in lower case.
type pattern struct {
	Orchestrator string `json:"o"`
	Cluster      string `json:"c"`
	Node         string `json:"n"`
}

func patterns(targets []placement.Target) []pattern {
	var all []pattern
	for _, t := range targets {
		all = append(all, pattern{strings.ToLower(t.Orchestrator), t.Cluster, t.Node})
	}
	return all
}

// rules are the bits of what the statement finds broken, from the lowest.
var rules = []placement.Rule{
	placement.RuleUnschedulable, placement.RuleFreshness, placement.RuleTarget, placement.RuleExcluded, placement.RuleOneOrchestrator,
	placement.RuleEngine, placement.RuleArchitecture, placement.RuleLabel, placement.RuleSecurity, placement.RuleCPUUsage,
	placement.RuleMemoryUsage, placement.RuleFreeMemory, placement.RuleCPU, placement.RuleMemory, placement.RuleDevice,
}

// selectCandidates hands over the nodes named in $3 and $4 in any case, and those whose devices only the jobs there can tell. $1 are
// demands, $2 the time before which a node was last seen that is lost, $5 is shown.
const selectCandidates = `with q as materialized (
	select * from jsonb_to_recordset($1::text::jsonb) q (class int, cpu int8, memory int8, free int8, engines text[], architectures text[],
		shared text[], labels jsonb, security float8, max_cpu float8, max_memory float8, devices jsonb, targets jsonb, excluded jsonb,
		performance float8, energy float8, safety float8, keep int)),
c as materialized (select key, body ->> 'engine' as engine from topology_clusters),
n as materialized (
	select p.cluster, p.node, n.orchestrator, (p.cluster, p.node) in (select * from unnest($3::text[], $4::text[])) as must,
		lower(coalesce(nullif(p.engine, ''), c.engine)) as engine, lower(btrim(p.architecture, E' \t\n\r\v\f')) as architecture,
		p.labels, p.devices, p.sca, p.watts,
		p.schedulable is false or exists (select from cordons k where k.cluster = p.cluster and k.node = p.node) as closed,
		n.last_seen < $2 as lost,
		least(greatest(coalesce(p.cpu_percent, 0) / 100, 0), 1) as cpu_usage,
		least(greatest(coalesce(p.memory_percent, 0) / 100, 0), 1) as memory_usage,
		m.cpu, m.memory, coalesce(r.with_devices, 0) > 0 as lent,
		greatest(0, m.cpu - greatest(0, m.used_cpu - m.own_cpu) - coalesce(r.cpu_milli, 0)) as free_cpu,
		greatest(0, m.memory - greatest(0, m.used_memory - m.own_memory) - coalesce(r.memory_bytes, 0)) as free_memory,
		coalesce(r.without_cpu, 0) as without_cpu, coalesce(r.without_memory, 0) as without_memory
	from topology_nodes p join c on c.key = p.cluster_key join nodes n on n.cluster = p.cluster and n.node = p.node
	left join node_reservations r on r.cluster = p.cluster and r.node = p.node
	cross join lateral (select whole_number(p.cores * 1000) as cpu, whole_number(p.memory) as memory,
		whole_number(coalesce(p.cpu_percent, 0) / 100 * p.cores * 1000) as used_cpu,
		whole_number(coalesce(p.used_memory, p.memory - p.free_memory)) as used_memory,
		case when p.pods is null then 0 else
			(select whole_number(sum((u ->> 'c')::float8) * 1000) from json_array_elements(p.pods) u) end as own_cpu,
		case when p.pods is null then 0 else
			(select whole_number(sum((u ->> 'm')::float8)) from json_array_elements(p.pods) u) end as own_memory) m),
judged as materialized (
	select n.must, q.class, q.keep, q.performance, q.energy, q.safety, n.cluster, n.node, n.orchestrator,
		n.closed::int
		| n.lost::int * 2
		| (q.targets is not null and not exists (select from jsonb_to_recordset(q.targets) t (o text, c text, n text)
			where t.o in ('', n.orchestrator) and t.c in ('', n.cluster) and t.n in ('', n.node)))::int * 4
		| (q.excluded is not null and exists (select from jsonb_to_recordset(q.excluded) t (o text, c text, n text)
			where t.o in ('', n.orchestrator) and t.c in ('', n.cluster) and t.n in ('', n.node)))::int * 8
		| (q.shared is not null and n.orchestrator <> all(q.shared))::int * 16
		| (q.engines is not null and coalesce(n.engine, '') <> all(q.engines))::int * 32
		| (q.architectures is not null and n.architecture <> all(q.architectures))::int * 64
		| (q.labels is not null and exists (select from jsonb_each(q.labels) l
			where not coalesce(l.value ? (n.labels ->> l.key), false)))::int * 128
		| (q.security is not null and not coalesce(n.sca >= q.security, false))::int * 256
		| (q.max_cpu is not null and n.cpu_usage > q.max_cpu)::int * 512
		| (q.max_memory is not null and n.memory_usage > q.max_memory)::int * 1024
		| (q.free > n.free_memory)::int * 2048
		| (q.cpu > n.free_cpu)::int * 4096
		| (q.memory > n.free_memory)::int * 8192
		| (q.devices is not null and exists (select from jsonb_each_text(q.devices) w where w.value::int > (
			select count(*) from json_each(n.devices) d
			where d.value ->> 'path' = w.key and d.value ->> 'status' in ('available', 'busy'))))::int * 16384 as broken,
		q.devices is not null and n.devices is not null and (n.lent or exists (
			select from json_each(n.devices) d where d.value ->> 'status' = 'busy')) as unsure,
		case when n.watts >= 0 and n.free_cpu <> 0 then least(n.watts, 1e12) * 1000 / n.free_cpu::float8 end as watts,
		100 * (case when n.cpu <= 0 or q.cpu >= i.cpu then 0 else (i.cpu - q.cpu)::float8 / n.cpu::float8 end
			+ case when n.memory <= 0 or q.memory >= i.memory then 0 else (i.memory - q.memory)::float8 / n.memory::float8 end) / 2 as idle,
		coalesce(least(n.sca, 100), 0) as sca
	from q cross join n
	cross join lateral (select greatest(0, n.free_cpu - 100 * n.without_cpu) as cpu,
		greatest(0, n.free_memory - (200 << 20)::int8 * n.without_memory) as memory) i),
fit as materialized (select class, orchestrator, keep, min(min(watts)) over (partition by class) as watts
	from judged where broken = 0 group by class, orchestrator, keep),
taken as materialized (
	select cluster, node from judged where must or unsure
	union
	select x.cluster, x.node from fit cross join lateral (select j.cluster, j.node from judged j
		where j.class = fit.class and j.orchestrator = fit.orchestrator and j.broken = 0
		order by greatest(0, j.performance * j.idle + j.energy *
			case when j.watts is null then 25 else 100 * (1 + fit.watts) / (1 + j.watts) end + j.safety * j.sca) desc,
			j.cluster collate "C", j.node collate "C" limit fit.keep) x
	union
	select x.cluster, x.node from fit cross join lateral (select j.cluster, j.node from judged j
		where j.class = fit.class and j.orchestrator = fit.orchestrator and j.broken = 0
		order by j.cluster collate "C", j.node collate "C" limit $5) x
	union
	select x.cluster, x.node from (select distinct class, watts from fit) fit cross join lateral (select j.cluster, j.node from judged j
		where j.class = fit.class and j.broken = 0 and j.watts = fit.watts limit 1) x
	union
	select x.cluster, x.node from q cross join lateral (select j.cluster, j.node from judged j where j.class = q.class and j.broken <> 0
		order by j.orchestrator collate "C", j.cluster collate "C", j.node collate "C" limit $5) x)
select cluster, node, '', 0, 0, 0 from taken
union all
select '', '', orchestrator, class, broken, count(*)::int from judged
where (cluster, node) not in (select cluster, node from taken) group by orchestrator, class, broken`

// candidates are the nodes that a decision looks at, and what is known of the others.
type candidates struct {
	inv    *inventory
	absent []placement.Absent
	nodes  int // in all
}

// foundRow is a row of selectCandidates: a node, or how many others break these rules.
type foundRow struct {
	Cluster, Node, Orchestrator string
	Class, Broken, Nodes        int
}

// placeAmongCandidates is place for an application that the best nodes alone decide on. done is false if they do not, for
// whatever reason; nothing has happened then.
func (c *candidate) placeAmongCandidates(ctx context.Context, tx *store.Tx, s Settings, because string) (done bool, err error) {
	if !c.simple(s) {
		return false, nil
	}
	var many bool
	if err := tx.QueryRow(ctx, selectMany, manyNodes).Scan(&many); err != nil || !many {
		return false, err
	}
	d, err := decideAmongCandidates(ctx, tx, s, false, c)
	if d == nil || err != nil {
		return false, err
	}
	rerouted := d.inv.storeWays(tx, c.stored.ID, c.app, &d.problem, &d.plan, "")
	return true, c.apply(ctx, tx, d.inv, d.plan, explain(c.list, d.problem, d.plan, (*part).decided), rerouted, because)
}

type decided struct {
	inv     *inventory
	problem placement.Problem
	plan    placement.Plan
}

// decideAmongCandidates returns a plan that no plan over all nodes surpasses, and that explains itself as that would; nil if
// it takes all nodes to tell. All candidates are simple. Their problem is one of groups if it is joint, which it is if there are
// several.
func decideAmongCandidates(ctx context.Context, q store.Querier, s Settings, joint bool, all ...*candidate) (*decided, error) {
	found, err := findCandidates(ctx, q, s, joint, all)
	if found == nil || err != nil {
		return nil, err
	}
	inv, components := found.inv, 0
	for _, c := range all {
		if err := inv.readAround(ctx, q, c.app, c.list); err != nil {
			return nil, err
		}
		components += len(c.list)
	}
	d := &decided{inv: inv}
	if joint {
		d.problem = problemOfAll(all, inv)
	} else {
		d.problem = problemOf(all[0].app, all[0].list, inv)
	}
	if len(d.problem.Preferences) > 0 || components*found.nodes > placement.MaxPairs {
		return nil, nil
	}
	d.problem.Absent = found.absent
	d.problem.Budget = min(placement.MaxBudget, placement.DefaultBudget+placement.BudgetPerComponent*int64(components)+
		placement.BudgetPerNode*int64(found.nodes))
	if d.plan, err = placement.Place(d.problem); err != nil {
		if refused(err) != "" {
			return nil, nil
		}
		return nil, fmt.Errorf("place %s: %w", all[0].stored.Name, err)
	}
	if d.plan.Placed < components || !d.plan.Exact || len(d.plan.Prices) > 0 {
		return nil, nil
	}
	return d, nil
}

// simple reports whether nothing but the nodes and affinities decides where the components go, and none of them moves.
func (c *candidate) simple(s Settings) bool {
	if s.assume != nil || s.UseForecast || s.Links.On() || len(c.list) > mostJudged ||
		len(c.app.Channels)+len(c.app.Spreads) > 0 || c.app.Profile != "" || c.app.UsageOfOthers() {
		return false
	}
	for i := range c.list {
		p := &c.list[i]
		if !p.fixed && p.current != nil || len(p.component.Near.Data)+len(p.component.Near.Users)+len(p.component.Requirements.Resources) > 0 {
			return false
		}
		for _, t := range p.component.Targets {
			if t.Orchestrator == "" {
				return false
			}
		}
	}
	return true
}

// findCandidates finds the nodes to look at; nil if what is known is too old.
func findCandidates(ctx context.Context, q store.Querier, s Settings, joint bool, all []*candidate) (*candidates, error) {
	at, err := topology.SavedAt(ctx, q)
	if err != nil || time.Since(at) > topology.Fresh {
		return nil, err
	}
	demands := demandsOf(all, joint)
	if joint && len(demands) > mostJudgedTogether {
		return nil, nil
	}
	text, err := json.Marshal(demands)
	if err != nil {
		return nil, fmt.Errorf("encode demands: %w", err)
	}
	must := [][2]string{}
	patience := freshness(all[0].app, all[0].list, s.StaleAfter)
	for _, c := range all {
		if freshness(c.app, c.list, s.StaleAfter) != patience {
			return nil, nil
		}
		for i := range c.list {
			if t := c.list[i].current; t != nil {
				must = append(must, [2]string{t.Cluster, t.Node})
			}
		}
	}
	args := append([]any{string(text), heardSince(at, s.StaleAfter, patience)}, topology.Columns(must)...)
	args = append(args, shown)
	rows, err := store.Collect(ctx, q, "judge nodes", pgx.RowToStructByPos[foundRow], selectCandidates, args...)
	if err != nil {
		return nil, err
	}
	found := &candidates{}
	only := must
	for _, r := range rows {
		if r.Nodes == 0 {
			only = append(only, [2]string{r.Cluster, r.Node})
			continue
		}
		a := placement.Absent{Components: demands[r.Class].components, Orchestrator: r.Orchestrator, Nodes: r.Nodes}
		for bit, rule := range rules {
			if r.Broken>>bit&1 == 1 {
				a.Broken = append(a.Broken, rule)
			}
		}
		if r.Class == 0 {
			found.nodes += r.Nodes
		}
		found.absent = append(found.absent, a)
	}
	if found.inv, err = readInventoryAt(ctx, q, only, s); err != nil {
		if errors.Is(err, topology.ErrUnknown) {
			return nil, nil
		}
		return nil, err
	}
	if !found.inv.at.Equal(at) {
		return nil, nil // it was looked at meanwhile
	}
	found.nodes += len(found.inv.places)
	return found, nil
}

// demandsOf are the demands of the components that have no place, equal ones together.
func demandsOf(candidates []*candidate, joint bool) []demand {
	keep := shown
	for _, c := range candidates {
		keep += len(c.list)
	}
	var all []demand
	known := map[string]int{}
	for _, c := range candidates {
		prefix := ""
		if joint {
			prefix = c.group() + "/"
		}
		group, components := demands(c.app, c.list, &inventory{})
		weights := group.Weights
		if sum := weights.Performance + weights.Energy + weights.Security; sum == 0 {
			weights = placement.Weights{Performance: 1.0 / 3, Energy: 1.0 / 3, Security: 1.0 / 3}
		} else {
			weights = placement.Weights{Performance: weights.Performance / sum, Energy: weights.Energy / sum, Security: weights.Security / sum}
		}
		most := keep
		if len(pairs(c.app)) > 0 {
			most = allCandidates
		}
		for i, x := range components {
			if c.list[i].fixed {
				continue
			}
			d := demandOf(x, weights, most)
			text, err := json.Marshal(d)
			at, seen := known[string(text)]
			if err != nil || !seen {
				at = len(all)
				d.Class, known[string(text)] = at, at
				all = append(all, d)
			}
			all[at].components = append(all[at].components, prefix+x.ID)
		}
	}
	return all
}

func demandOf(x placement.Component, weights placement.Weights, keep int) demand {
	d := demand{
		CPU: x.CPU, Memory: x.Memory, FreeMemory: x.MinFreeMemory, Engines: lowered(x.Engines), Shared: lowered(x.Shared),
		Targets: patterns(x.Targets), Excluded: patterns(x.Excluded),
		Performance: weights.Performance, Energy: weights.Energy, Safety: weights.Security, Keep: keep,
	}
	if x.Architecture != "" {
		d.Architectures = placement.ArchitectureSpellings(x.Architecture)
	}
	if len(x.Labels) > 0 {
		d.Labels = x.Labels
	}
	if x.MinSecurity != 0 {
		d.Security = &x.MinSecurity
	}
	if x.MaxCPUUsage != 0 {
		d.MaxCPU = &x.MaxCPUUsage
	}
	if x.MaxMemoryUsage != 0 {
		d.MaxMemory = &x.MaxMemoryUsage
	}
	for _, path := range x.Devices {
		if d.Devices == nil {
			d.Devices, d.Keep = map[string]int{}, allCandidates // some may turn out to be lent
		}
		d.Devices[path]++
	}
	return d
}

func lowered(words []string) []string {
	var all []string
	for _, w := range words {
		all = append(all, strings.ToLower(w))
	}
	return slices.Clip(all)
}

// heardSince is the first moment at which a node was last heard of that gets components: it is not lost, and not silent for
// longer than patience. What the rows say is read to the millisecond.
func heardSince(now time.Time, staleAfter, patience time.Duration) time.Time {
	used := func(at time.Time) bool {
		n := topology.Node{LastSeen: topology.Known(float64(at.UnixMilli()) / 1000)}
		seen, _ := n.SeenAt()
		return !n.Lost(now, staleAfter) && (patience == 0 || max(now.Sub(seen), 0) <= patience)
	}
	longest := staleAfter
	if patience != 0 {
		longest = min(longest, patience)
	}
	at := now.Add(-longest).Truncate(time.Millisecond).Add(-2 * time.Millisecond)
	for !used(at) {
		at = at.Add(time.Millisecond)
	}
	return at
}
