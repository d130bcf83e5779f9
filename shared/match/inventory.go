// Package match turns stored state into placement problems, and placement plans into stored decisions.
//
// It is the only caller of the pure engine in shared/placement: the reactions, the matchmaker's operations, plan and
// explain all go through it. Decisions are made one at a time under an advisory lock, so two applications placed at the
// same moment cannot both take the last core.
package match

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/clusterlink"
	"github.com/littoral-project/littoral/shared/cordon"
	"github.com/littoral-project/littoral/shared/linking"
	"github.com/littoral-project/littoral/shared/netma/links"
	"github.com/littoral-project/littoral/shared/netma/state"
	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/channels"
	"github.com/littoral-project/littoral/shared/swm/topologies"
	"github.com/littoral-project/littoral/shared/topology"
)

// Settings bound what counts as a usable node.
type Settings struct {
	topology.Freshness // a node that is lost is not used

	// UseForecast uses a node's forecast cpu and memory usage, where there is one, instead of the present usage, and of links the worst
	// that is measured or foreseen.
	UseForecast bool `envconfig:"USE_FORECAST" default:"false"`

	// Links says how components reach each other across clusters: those that need to are put where they can.
	Links clusterlink.Settings

	assume *assumption // of a what-if question; nil otherwise
}

// reservation is what one job has reserved at a place.
type reservation struct {
	Job         uuid.UUID
	Application uuid.UUID
	Cluster     string
	Node        string
	Holder      string
	CPUMilli    int64
	Memory      int64
	Devices     []string
	Resources   map[string]int64
	Taken       *time.Time // when an agent took the job there; nil if none has
	Recorded    bool       // its node is in the table of nodes, so it is displaced when that node is lost
}

// selectReservations lists what all our jobs have reserved, including clean-ups: what they remove still runs. A job's content is
// large and stored out of line, so it is read only for jobs that reserve more than cpu and memory, as a partial index says.
const (
	selectReservations = reservationsColumns + reservationsOrder

	// The same of some nodes.
	selectReservationsAt = reservationsColumns + `and (j.cluster, j.node) in (select * from unnest($1::text[], $2::text[]))
` + reservationsOrder

	reservationsColumns = `select j.id, j.application_id, j.cluster, j.node, a.name || '/' || j.component, j.cpu_milli, j.memory_bytes, j.devices,
coalesce(case when j.id in (select id from jobs where instruction @> '{"requirements": {"resources": {}}}')
  then j.instruction -> 'requirements' -> 'resources' end, '{}'),
case when j.owner_id <> '' then coalesce(j.taken_at, 'epoch') end,
exists (select 1 from nodes n where n.cluster = j.cluster and n.node = j.node)
from jobs j join applications a on a.id = j.application_id
where j.cluster <> '' and not (j.state = 'Finished' and (j.type = 'DeleteDeployment' or j.owner_id = ''))
`
	reservationsOrder = `order by j.cluster, j.node, j.id`
)

// inventory is the infrastructure and its reservations.
type inventory struct {
	only         [][2]string // the nodes that it is of, as cluster and node; nil: all
	places       []topology.Place
	reservations map[[2]string][]reservation // by cluster and node
	at           time.Time                   // of the topology: while telemetry as a whole is away, no node grows stale
	silentUntil  time.Time                   // when telemetry last had no nodes at all; zero if never
	staleAfter   time.Duration
	forecast     bool
	cordons      []cordon.Cordon    // nodes that an operator has closed
	network      *network.Topology  // what channels run over; nil where nobody has described it, or nobody needs it
	using        []channels.Channel // what takes bandwidth of it
	around       surroundings       // where data and users are, as far as somebody asked
	linked       bool               // components are linked across clusters
	peers        []placement.Target // the clusters that links can reach
}

func readInventory(ctx context.Context, q store.Querier, s Settings) (*inventory, error) {
	now, err := topology.ReadInventory(ctx, q)
	if err != nil {
		return nil, err
	}
	return inventoryOf(ctx, q, now, nil, s)
}

// readInventoryAt is readInventory of some nodes alone, by cluster and node.
func readInventoryAt(ctx context.Context, q store.Querier, only [][2]string, s Settings) (*inventory, error) {
	now, err := topology.ReadInventoryAt(ctx, q, only)
	if err != nil {
		return nil, err
	}
	return inventoryOf(ctx, q, now, only, s)
}

func inventoryOf(ctx context.Context, q store.Querier, now *topology.Inventory, only [][2]string, s Settings) (inv *inventory, err error) {
	inv = &inventory{
		only:   only,
		places: now.Places, at: now.At, silentUntil: now.SilentUntil, staleAfter: s.StaleAfter, forecast: s.UseForecast,
	}
	s.assume.apply(inv)
	if inv.linked = s.Links.On(); inv.linked {
		at := topology.Inventory{Places: inv.places, At: inv.at}
		for _, p := range linking.Peers(s.Links, &at, s.StaleAfter) {
			if p.Reachable {
				inv.peers = append(inv.peers, placement.Target{Orchestrator: p.Orchestrator, Cluster: p.Cluster})
			}
		}
	}
	if inv.cordons, err = cordon.All(ctx, q); err != nil {
		return nil, err
	}
	return inv, inv.readReservations(ctx, q)
}

// readNetwork reads what the channels of an application run over, if it has any.
func (inv *inventory) readNetwork(ctx context.Context, q store.Querier, app *appmodel.Application) (err error) {
	if len(app.Channels) == 0 || inv.network != nil {
		return nil
	}
	if inv.network, err = topologies.Read(ctx, q); err != nil || inv.network == nil {
		return err
	}
	measured, err := links.Current(ctx, q)
	if err != nil {
		return err
	}
	if inv.forecast {
		foreseen, err := links.Foreseen(ctx, q)
		if err != nil {
			return err
		}
		measured = links.Worst(measured, foreseen, time.Now())
	}
	inv.network = state.Limited(inv.network, measured)
	inv.using, err = channels.Using(ctx, q)
	return err
}

// networkFor is the network without what the channels of the parts use, which take their ways anew.
func (inv *inventory) networkFor(list []part) *network.Topology {
	own := map[uuid.UUID]bool{}
	for i := range list {
		own[list[i].instance] = true
	}
	return channels.Occupied(inv.network, inv.using, func(application uuid.UUID) bool { return own[application] })
}

// readReservations reads again what is reserved.
func (inv *inventory) readReservations(ctx context.Context, q store.Querier) error {
	statement, args := selectReservations, []any(nil)
	if inv.only != nil {
		statement, args = selectReservationsAt, topology.Columns(inv.only)
	}
	held, err := store.Collect(ctx, q, "read reservations", pgx.RowToStructByPos[reservation], statement, args...)
	if err != nil {
		return err
	}
	inv.reservations = map[[2]string][]reservation{}
	for _, r := range held {
		at := [2]string{r.Cluster, r.Node}
		inv.reservations[at] = append(inv.reservations[at], r)
	}
	if inv.network != nil {
		inv.using, err = channels.Using(ctx, q)
	}
	return err
}

// freshInventory is readInventory for those who decide by it. blind says why the topology cannot be used (missing or
// too old). A caller that then waits makes the aggregator look, by events.ApplicationUnplaced, and is woken by the
// news.
func freshInventory(ctx context.Context, q store.Querier, s Settings) (inv *inventory, blind string, err error) {
	inv, err = readInventory(ctx, q, s)
	switch {
	case errors.Is(err, topology.ErrUnknown):
		return nil, noTelemetry, nil
	case err != nil:
		return nil, "", err
	case time.Since(inv.at) > topology.Fresh:
		return nil, "the last telemetry is of " + inv.at.UTC().Format(time.RFC3339), nil
	}
	return inv, "", nil
}

const noTelemetry = "no telemetry has been seen yet"

// nodes returns the nodes as the engine sees them while the given jobs are placed: what those jobs have reserved counts
// as free.
func (inv *inventory) nodes(placing map[uuid.UUID]bool) []placement.Node {
	nodes := make([]placement.Node, 0, len(inv.places))
	for _, p := range inv.places {
		nodes = append(nodes, inv.node(p, placing))
	}
	return nodes
}

func (inv *inventory) node(p topology.Place, placing map[uuid.UUID]bool) placement.Node {
	n := p.At
	out := placement.Node{
		Orchestrator: p.In.Orchestrator(), Cluster: p.Cluster, Name: p.Node, Engine: cmp.Or(n.Engine, p.In.Engine),
		Architecture: placement.CanonicalArchitecture(n.StaticMetrics.CPUArchitecture),
		Labels:       n.Labels, Devices: map[string]int{},
		CPUUsage:      fraction(n.DynamicMetrics.CPUUsagePercent),
		MemoryUsage:   fraction(n.DynamicMetrics.MemoryUsagePercent),
		Stale:         n.Lost(inv.at, inv.staleAfter),
		Doubts:        n.Hearing.Doubts(),
		Unschedulable: !n.CanSchedule() || inv.closed(p.Cluster, p.Node),
	}
	out.CPU, _ = n.CPUMilli()
	out.Memory, _ = n.MemoryBytes()
	out.OtherCPU, out.OtherMemory = n.OthersUsage()
	if inv.forecast {
		ownCPU, ownMemory := n.OwnUsage()
		expect(n.ForecastedMetrics.CPUUtilizationPrediction, out.CPU, ownCPU, &out.CPUUsage, &out.OtherCPU)
		expect(n.ForecastedMetrics.MemoryUtilizationPrediction, out.Memory, ownMemory, &out.MemoryUsage, &out.OtherMemory)
	}
	if sca, ok := n.ScaScore.Get(); ok {
		out.SCA = &sca
	}
	if watts, ok := n.DynamicMetrics.CPUPowerWatts.Get(); ok {
		out.EnergyWatts = &watts
	}
	if seen, ok := n.SeenAt(); ok {
		out.Age = max(inv.at.Sub(seen), 0)
	}
	held := inv.reservations[[2]string{p.Cluster, p.Node}]
	inv.devices(out.Devices, n, held, placing)
	out.Resources = resources(n, held, placing)
	for _, r := range held {
		if !placing[r.Job] {
			out.Reserved = append(out.Reserved, placement.Reservation{
				Holder: r.Holder, CPU: r.CPUMilli, Memory: r.Memory, Devices: r.Devices,
			})
		}
	}
	return out
}

// engine returns the engine of a node; empty if it is not known.
func (inv *inventory) engine(t placement.Target) string {
	for _, p := range inv.places {
		if p.Cluster == t.Cluster && p.Node == t.Node && p.In.Orchestrator() == t.Orchestrator {
			return cmp.Or(p.At.Engine, p.In.Engine)
		}
	}
	return ""
}

// withoutOwn subtracts what the instance itself uses of a node from the usage that its policies limit.
func (inv *inventory) withoutOwn(nodes []placement.Node, instance string) {
	for i, p := range inv.places {
		cpu, memory := p.At.UsageOf(instance)
		without := func(usage *float64, own, whole int64) {
			if whole > 0 {
				*usage = max(0, *usage-float64(own)/float64(whole))
			}
		}
		without(&nodes[i].CPUUsage, cpu, nodes[i].CPU)
		without(&nodes[i].MemoryUsage, memory, nodes[i].Memory)
	}
}

// orchestrator returns the orchestrator that the target names, or that of the places it allows; empty if there are
// several or none.
func (inv *inventory) orchestrator(t appmodel.Target) string {
	if t.Orchestrator != "" {
		return t.Orchestrator
	}
	found := ""
	for _, p := range inv.places {
		if t.Cluster != "" && t.Cluster != p.Cluster || t.Node != "" && t.Node != p.Node {
			continue
		}
		of := p.In.Orchestrator()
		if found != "" && found != of {
			return ""
		}
		found = of
	}
	return found
}

// quiet reports whether the node has been silent for too long to get anything new, but not yet for so long that what
// runs there is displaced. Silence is measured as it is for displacement: from when telemetry last had no nodes at all.
// A node that telemetry no longer shows is quiet while it is in the table of nodes, by which it will be displaced in
// time.
func (inv *inventory) quiet(t placement.Target, staleAfter, lostAfter time.Duration) bool {
	i := slices.IndexFunc(inv.places, func(p topology.Place) bool { return p.Cluster == t.Cluster && p.Node == t.Node })
	if i < 0 {
		held := inv.reservations[[2]string{t.Cluster, t.Node}]
		return slices.ContainsFunc(held, func(r reservation) bool { return r.Recorded })
	}
	n := inv.places[i].At
	return n.Lost(inv.at, staleAfter) && (!n.Lost(inv.at, lostAfter) || inv.at.Sub(inv.silentUntil) <= lostAfter)
}

// expect replaces present usage by the forecast, if there is one: as a share of the node, and as the part used by
// others.
func expect(percent topology.Measure, whole, own int64, usage *float64, others *int64) {
	if _, known := percent.Get(); known {
		*usage = fraction(percent)
		*others = max(0, int64(*usage*float64(whole))-own)
	}
}

// devices counts the free devices by path: all that work, less those that others keep busy, less those that our other
// jobs have reserved. A device kept busy by a job that is being placed is free to that job. A job of ours cannot have
// kept a device busy before an agent took the job.
func (inv *inventory) devices(free map[string]int, n *topology.Node, held []reservation, placing map[uuid.UUID]bool) {
	measured := inv.at
	if seen, ok := n.SeenAt(); ok && seen.Before(measured) {
		measured = seen
	}
	busy := map[string]int{}
	for _, d := range n.Devices {
		switch d.Status {
		case topology.DeviceAvailable:
			free[d.Path]++
		case topology.DeviceBusy:
			free[d.Path]++
			busy[d.Path]++
		}
	}
	for _, r := range held {
		for _, path := range r.Devices {
			if r.Taken != nil && r.Taken.Before(measured) {
				busy[path]-- // this job of ours keeps it busy
			}
			if !placing[r.Job] {
				free[path]--
			}
		}
	}
	for path, foreign := range busy {
		if foreign > 0 {
			free[path] -= foreign
		}
	}
	for path, count := range free {
		free[path] = max(count, 0)
	}
}

// resources returns what else a node has free: GPUs, and storage in bytes.
func resources(n *topology.Node, held []reservation, placing map[uuid.UUID]bool) map[string]int64 {
	free := map[string]int64{}
	if gpus, ok := n.StaticMetrics.GPUCores.Get(); ok {
		free["gpu"] = int64(gpus)
	}
	if bytes, ok := n.DynamicMetrics.AvailableStorage.Free.Get(); ok {
		free["storage"] = int64(bytes)
	}
	for _, r := range held {
		for name, amount := range r.Resources {
			if _, known := free[name]; known && !placing[r.Job] {
				free[name] = max(free[name]-amount, 0)
			}
		}
	}
	return free
}

func fraction(percent topology.Measure) float64 { return min(max(percent.Or(0)/100, 0), 1) }
