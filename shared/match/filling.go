package match

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/store"
)

// Filling is a node that will be full, as far as its forecast says, with an application that has a component there.
type Filling struct {
	Application uuid.UUID
	Cluster     string
	Node        string
	What        string  // cpu or memory
	Percent     float64 // that is foreseen
	Left        int64   // of it for ours: millicores or bytes
	Reserved    int64   // by ours
	Whole       int64
	Seen        time.Time // the telemetry that has the forecast
}

// selectFilling counts as placement does where it uses forecasts: what is foreseen, less what ours use at present, is left to others.
// A job that only removes what has left counts no longer, or the next application would leave too. Who asks for none of what gets
// scarce is not among them, since it would not help.
const selectFilling = `with held as (
	select cluster, node, sum(cpu_milli)::int8 as cpu, sum(memory_bytes)::int8 as memory from jobs
	where cluster <> '' and cleans is null and type <> 'DeleteDeployment' group by cluster, node),
n as (
	select p.cluster, p.node, n.last_seen, m.* from topology_nodes p join nodes n on n.cluster = p.cluster and n.node = p.node
	join held h on h.cluster = p.cluster and h.node = p.node
	cross join lateral (select whole_number(p.cores * 1000) as cores, whole_number(p.memory) as bytes,
		(select whole_number(sum((u ->> 'c')::float8) * 1000) from json_array_elements(p.pods) u) as own_cpu,
		(select whole_number(sum((u ->> 'm')::float8)) from json_array_elements(p.pods) u) as own_memory) o
	cross join lateral (values
		('cpu', p.forecast_cpu, o.cores, coalesce(o.own_cpu, 0), h.cpu),
		('memory', p.forecast_memory, o.bytes, coalesce(o.own_memory, 0), h.memory)) m (what, percent, whole, own, reserved)
	where (p.forecast_cpu is not null or p.forecast_memory is not null) and n.last_seen > now() - $1::interval),
full_nodes as (
	select n.*, whole - greatest(0, floor(least(greatest(percent / 100, 0), 1) * whole)::int8 - own) as room from n
	where percent is not null and whole > 0)
select distinct on (j.application_id) j.application_id, f.cluster, f.node, f.what, f.percent, f.room, f.reserved, f.whole, f.last_seen
from full_nodes f join jobs j on j.cluster = f.cluster and j.node = f.node join applications a on a.id = j.application_id
where f.reserved > f.room and j.cleans is null and j.type <> 'DeleteDeployment'
and case f.what when 'cpu' then j.cpu_milli else j.memory_bytes end > 0
and a.desired = 'running' and a.deleted_at is null
order by j.application_id, f.cluster, f.node, f.what`

// FindFilling finds the applications with a component on a node that will be full by its forecast of cpu or memory, with the first
// such node of each. None are found where forecasts are not used, or on a node that is silent: its forecast is as old as that.
func FindFilling(ctx context.Context, q store.Querier, s Settings) ([]Filling, error) {
	if !s.UseForecast {
		return nil, nil
	}
	return store.Collect(ctx, q, "find nodes that will be full", pgx.RowToStructByPos[Filling], selectFilling, s.StaleAfter)
}

// String says in half a sentence why the node will be full.
func (f *Filling) String() string {
	write, unit := placement.Size, ""
	if f.What == "cpu" {
		write, unit = placement.CoreCount, " cores"
	}
	return fmt.Sprintf("node %s/%s will be full: the forecast of %s says %.0f %% of its %s, which leaves %s of %s%s for the %s that are reserved",
		f.Cluster, f.Node, f.Seen.UTC().Format(time.RFC3339), f.Percent, f.What, write(f.Left), write(f.Whole), unit, write(f.Reserved))
}
