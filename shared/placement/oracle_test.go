package placement_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/placement"
)

// This file implements the rules a second time, in the simplest way and without the engine's code: which node a
// component may use, whether a placement is legal, its value, and the best of all placements.

const nowhere = -1

func covers(t placement.Target, n placement.Node) bool {
	return (t.Orchestrator == "" || strings.EqualFold(t.Orchestrator, n.Orchestrator)) &&
		(t.Cluster == "" || t.Cluster == n.Cluster) && (t.Node == "" || t.Node == n.Name)
}

func coversAny(ts []placement.Target, n placement.Node) bool {
	return slices.ContainsFunc(ts, func(t placement.Target) bool { return covers(t, n) })
}

func listed(list []string, s string) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(x string) bool { return strings.EqualFold(x, s) })
}

func freeOf(n placement.Node) (cpu, memory *big.Int) {
	cpu, memory = big.NewInt(n.CPU), big.NewInt(n.Memory)
	cpu.Sub(cpu, big.NewInt(n.OtherCPU))
	memory.Sub(memory, big.NewInt(n.OtherMemory))
	for _, r := range n.Reserved {
		cpu.Sub(cpu, big.NewInt(r.CPU))
		memory.Sub(memory, big.NewInt(r.Memory))
	}
	zero := new(big.Int)
	if cpu.Cmp(zero) < 0 {
		cpu = zero
	}
	if memory.Cmp(zero) < 0 {
		memory = zero
	}
	return cpu, memory
}

// allowed reports whether the component may use the node if the problem has no other components.
func allowed(p placement.Problem, c placement.Component, n placement.Node) bool {
	cpu, memory := freeOf(n)
	staleAfter := p.StaleAfter
	for _, g := range p.Groups {
		if c.Group == g.ID {
			staleAfter = g.StaleAfter
		}
	}
	ok := (c.Stays || !n.Stale && !n.Unschedulable && (staleAfter == 0 || n.Age <= staleAfter)) &&
		(len(c.Targets) == 0 || coversAny(c.Targets, n)) && !coversAny(c.Excluded, n) &&
		listed(c.Engines, n.Engine) && listed(c.Orchestrators, n.Orchestrator) && listed(c.Shared, n.Orchestrator) &&
		(c.Architecture == "" ||
			placement.CanonicalArchitecture(c.Architecture) == placement.CanonicalArchitecture(n.Architecture)) &&
		(c.MinSecurity == 0 || n.SCA != nil && *n.SCA >= float64(c.MinSecurity)) &&
		(c.MaxCPUUsage == 0 || n.CPUUsage <= c.MaxCPUUsage) &&
		(c.MaxMemoryUsage == 0 || n.MemoryUsage <= c.MaxMemoryUsage) &&
		cpu.Cmp(big.NewInt(c.CPU)) >= 0 && memory.Cmp(big.NewInt(c.Memory)) >= 0 &&
		memory.Cmp(big.NewInt(c.MinFreeMemory)) >= 0
	for key, values := range c.Labels {
		got, has := n.Labels[key]
		ok = ok && has && slices.Contains(values, got)
	}
	need := map[string]int{}
	for _, d := range c.Devices {
		need[d]++
		ok = ok && need[d] <= n.Devices[d]
	}
	for key, v := range c.Resources {
		ok = ok && v <= n.Resources[key]
	}
	return ok
}

// legal reports whether a placement, one node number or nowhere per component, breaks no rule.
func legal(p placement.Problem, at []int) bool {
	type used struct {
		cpu, memory *big.Int
		devices     map[string]int
		resources   map[string]*big.Int
	}
	nodes := map[int]used{}
	orchestrators := map[string]map[string]bool{} // by group
	number := map[string]int{}
	for i, c := range p.Components {
		number[c.ID] = i
		if at[i] == nowhere {
			continue
		}
		n := p.Nodes[at[i]]
		if !allowed(p, c, n) {
			return false
		}
		if orchestrators[c.Group] == nil {
			orchestrators[c.Group] = map[string]bool{}
		}
		orchestrators[c.Group][strings.ToLower(n.Orchestrator)] = true
		u, ok := nodes[at[i]]
		if !ok {
			u = used{new(big.Int), new(big.Int), map[string]int{}, map[string]*big.Int{}}
			nodes[at[i]] = u
		}
		u.cpu.Add(u.cpu, big.NewInt(c.CPU))
		u.memory.Add(u.memory, big.NewInt(c.Memory))
		for _, d := range c.Devices {
			u.devices[d]++
		}
		for key, v := range c.Resources {
			if u.resources[key] == nil {
				u.resources[key] = new(big.Int)
			}
			u.resources[key].Add(u.resources[key], big.NewInt(v))
		}
	}
	for k, u := range nodes {
		n := p.Nodes[k]
		cpu, memory := freeOf(n)
		if u.cpu.Cmp(cpu) > 0 || u.memory.Cmp(memory) > 0 {
			return false
		}
		for d, v := range u.devices {
			if v > n.Devices[d] {
				return false
			}
		}
		for key, v := range u.resources {
			if v.Cmp(big.NewInt(n.Resources[key])) > 0 {
				return false
			}
		}
	}
	for name, seen := range orchestrators {
		one := p.OneOrchestrator
		for _, g := range p.Groups {
			if g.ID == name {
				one = g.OneOrchestrator
			}
		}
		if one && len(seen) > 1 {
			return false
		}
	}
	if !wired(p, at, number) {
		return false
	}
	for i, c := range p.Components {
		for _, other := range c.AntiAffinity {
			if at[i] != nowhere && at[i] == at[number[other]] {
				return false
			}
		}
	}
	for _, s := range p.Spreads {
		most := s.Max
		if most == 0 {
			most = max(1, int(s.MaxShare*float64(len(s.Components))+1e-9))
		}
		members := map[string]int{}
		for _, id := range s.Components {
			if k := at[number[id]]; k != nowhere {
				n := p.Nodes[k]
				domain := map[string]string{
					"node":         strings.ToLower(n.Orchestrator) + "/" + n.Cluster + "/" + n.Name,
					"cluster":      strings.ToLower(n.Orchestrator) + "/" + n.Cluster,
					"orchestrator": strings.ToLower(n.Orchestrator),
				}
				name, builtIn := domain[s.By]
				if !builtIn {
					name = n.Labels[s.By]
				}
				if members[name]++; members[name] > most {
					return false
				}
			}
		}
	}
	return true
}

// link returns the link between the clusters of two nodes.
func link(p placement.Problem, x, y placement.Node) (placement.Link, bool) {
	for _, l := range p.Links {
		if covers(l.A, x) && covers(l.B, y) || covers(l.A, y) && covers(l.B, x) {
			return l, true
		}
	}
	return placement.Link{}, false
}

func sameCluster(x, y placement.Node) bool {
	return strings.EqualFold(x.Orchestrator, y.Orchestrator) && x.Cluster == y.Cluster
}

// isPeer reports whether links reach the cluster of the node.
func isPeer(p placement.Problem, n placement.Node) bool {
	return slices.ContainsFunc(p.Peers, func(t placement.Target) bool { return covers(t, n) })
}

// wired reports whether the hard limits of affinities are met.
func wired(p placement.Problem, at []int, number map[string]int) bool {
	sent := map[placement.Link]int64{}
	for _, a := range p.Affinities {
		i, j := at[number[a.A]], at[number[a.B]]
		free := a.MaxLatency == 0 && a.Bandwidth == 0
		if a.NeedsLink && i != nowhere && j != nowhere && !sameCluster(p.Nodes[i], p.Nodes[j]) &&
			!(isPeer(p, p.Nodes[i]) && isPeer(p, p.Nodes[j])) {
			return false
		}
		if free || i == nowhere || j == nowhere || sameCluster(p.Nodes[i], p.Nodes[j]) {
			continue
		}
		l, ok := link(p, p.Nodes[i], p.Nodes[j])
		if !ok || a.MaxLatency > 0 && l.Latency > a.MaxLatency {
			return false
		}
		if sent[l] += a.Bandwidth; sent[l] > l.Bandwidth && a.Bandwidth > 0 {
			return false
		}
	}
	return true
}

// worth returns the number of placed components and the objective of a placement.
func worth(p placement.Problem, at []int) (int, float64) {
	move := p.MoveCost
	if move == 0 {
		move = placement.DefaultMoveCost
	}
	draw := func(n placement.Node) (float64, bool) {
		cpu, _ := freeOf(n)
		if n.EnergyWatts == nil || cpu.Sign() == 0 {
			return 0, false
		}
		f, _ := new(big.Float).SetInt(cpu).Float64()
		return min(*n.EnergyWatts, 1e12) * 1000 / f, true
	}
	left := func(free *big.Int, take, whole int64) float64 {
		if whole == 0 {
			return 0
		}
		f, _ := new(big.Float).SetInt(new(big.Int).Sub(free, big.NewInt(take))).Float64()
		return max(0, f/float64(whole))
	}
	placed, sum := 0, 0.0
	number := map[string]int{}
	for i, c := range p.Components {
		number[c.ID] = i
		if c.Current != nil && (at[i] == nowhere || !covers(*c.Current, p.Nodes[at[i]])) {
			sum -= move
		}
		if at[i] == nowhere {
			continue
		}
		placed++
		n := p.Nodes[at[i]]
		least := math.Inf(1)
		for _, other := range p.Nodes {
			if w, ok := draw(other); ok && allowed(p, c, other) {
				least = min(least, w)
			}
		}
		energy, security := 25.0, 0.0
		if w, ok := draw(n); ok {
			energy = 100 * (1 + least) / (1 + w)
		}
		if n.SCA != nil {
			security = min(100, *n.SCA)
		}
		weights := p.Weights
		for _, g := range p.Groups {
			if g.ID == c.Group {
				weights = g.Weights
			}
		}
		wp, we, ws := weights.Performance, weights.Energy, weights.Security
		if wp+we+ws == 0 {
			wp, we, ws = 1, 1, 1
		}
		if p.Scores != nil {
			sum += p.Scores[i][at[i]]
			continue
		}
		cpu, memory := freeOf(n)
		for _, r := range n.Reserved {
			if r.CPU == 0 {
				cpu = new(big.Int).Sub(cpu, big.NewInt(100))
			}
			if r.Memory == 0 {
				memory = new(big.Int).Sub(memory, big.NewInt(200<<20))
			}
		}
		performance := 50 * (left(cpu, c.CPU, n.CPU) + left(memory, c.Memory, n.Memory))
		sum += (wp*performance + we*energy + ws*security) / (wp + we + ws)
	}
	for _, a := range p.Affinities {
		x, y := at[number[a.A]], at[number[a.B]]
		if a.A == a.B || x == nowhere || y == nowhere {
			continue
		}
		nx, ny := p.Nodes[x], p.Nodes[y]
		l, linked := link(p, nx, ny)
		graded := a.Scope == ""
		switch {
		case x == y:
			sum += a.Weight
		case a.Scope == "node":
		case sameCluster(nx, ny) && graded:
			sum += 0.7 * a.Weight
		case sameCluster(nx, ny):
			sum += a.Weight
		case linked && graded:
			sum += a.Weight * 0.7 / (1 + float64(l.Latency)/float64(10*time.Millisecond)) / (1 + l.Cost)
		case strings.EqualFold(nx.Orchestrator, ny.Orchestrator) && graded:
			sum += 0.2 * a.Weight
		case strings.EqualFold(nx.Orchestrator, ny.Orchestrator) && a.Scope == "orchestrator":
			sum += a.Weight
		}
	}
	return placed, sum
}

// optimum tries every placement and returns the number of placed components and the value of the best.
func optimum(p placement.Problem) (int, float64) {
	at := make([]int, len(p.Components))
	bestPlaced, best := -1, 0.0
	var try func(i int)
	try = func(i int) {
		if i == len(at) {
			if legal(p, at) {
				if placed, v := worth(p, at); placed > bestPlaced || (placed == bestPlaced && v > best) {
					bestPlaced, best = placed, v
				}
			}
			return
		}
		for k := nowhere; k < len(p.Nodes); k++ {
			at[i] = k
			try(i + 1)
		}
	}
	try(0)
	return bestPlaced, best
}

// numbers reads a plan as node numbers.
func numbers(t testing.TB, p placement.Problem, plan placement.Plan) []int {
	t.Helper()
	require.Len(t, plan.Assignments, len(p.Components))
	by := map[placement.Target]int{}
	for k := range p.Nodes {
		by[p.Nodes[k].Target()] = k
	}
	at := make([]int, len(p.Components))
	for i, a := range plan.Assignments {
		require.Equal(t, p.Components[i].ID, a.Component)
		at[i] = nowhere
		if a.Placed {
			k, ok := by[a.Target]
			require.True(t, ok, "%v is not a node", a.Target)
			at[i] = k
		} else {
			require.Zero(t, a.Target)
			require.NotEmpty(t, a.Reason)
		}
	}
	return at
}

// checked places the problem and checks the invariants of all plans.
func checked(t testing.TB, p placement.Problem) placement.Plan {
	t.Helper()
	plan, err := placement.Place(p)
	require.NoError(t, err)
	again, err := placement.Place(p)
	require.NoError(t, err)
	require.Equal(t, plan, again, "the same problem has the same plan")

	at := numbers(t, p, plan)
	require.True(t, legal(p, at), "the plan breaks a rule")
	placed, v := worth(p, at)
	tolerance := 1e-7 * max(1, math.Abs(v), math.Abs(plan.MoveTotal))
	require.Equal(t, placed, plan.Placed)
	require.InDelta(t, v, plan.Objective, tolerance)
	require.InDelta(t, plan.ScoreTotal+plan.AffinityTotal-plan.MoveTotal, plan.Objective, tolerance)
	require.GreaterOrEqual(t, plan.PlacedBound, plan.Placed)
	require.GreaterOrEqual(t, plan.Bound, plan.Objective)
	require.InDelta(t, (plan.Bound-plan.Objective)/max(1, math.Abs(plan.Bound)), plan.Gap, 1e-12)
	if plan.Exact {
		require.Zero(t, plan.Gap)
		require.Equal(t, plan.Placed, plan.PlacedBound)
	}
	return plan
}

// randomProblem makes a small problem in which every rule matters.
func randomProblem(r *rand.Rand, components, nodes int) placement.Problem {
	pick := func(xs ...string) string { return xs[r.IntN(len(xs))] }
	chance := func(percent int) bool { return r.IntN(100) < percent }
	var p placement.Problem
	for i := range nodes {
		n := placement.Node{
			Orchestrator: pick("ocm", "nuvla"), Cluster: pick("north", "south"), Name: "n" + strconv.Itoa(i),
			Engine: pick("Kubernetes", "Docker"), Architecture: pick("x86_64", "aarch64", "amd64"),
			CPU: int64(1000 * r.IntN(5)), Memory: int64(r.IntN(5)) << 30, Devices: map[string]int{"cam": r.IntN(3)},
			Resources: map[string]int64{"gpu": int64(r.IntN(4))}, Labels: map[string]string{"zone": pick("a", "b")},
			CPUUsage: r.Float64(), Stale: chance(5), Unschedulable: chance(5),
		}
		if chance(30) {
			n.OtherCPU = int64(r.IntN(1500))
		}
		if chance(30) {
			n.Reserved = []placement.Reservation{{Holder: "shop/web", CPU: int64(r.IntN(1000)), Memory: 1 << 29}, {Holder: "shop/db"}}[:1+r.IntN(2)]
		}
		if chance(80) {
			sca := float64(r.IntN(101))
			n.SCA = &sca
		}
		if chance(60) {
			watts := r.Float64() * 50
			n.EnergyWatts = &watts
		}
		p.Nodes = append(p.Nodes, n)
	}
	for i := range components {
		c := placement.Component{ID: "c" + strconv.Itoa(i), CPU: int64(500 * r.IntN(5)), Memory: int64(r.IntN(3)) << 30}
		if chance(20) {
			c.Architecture = pick("intel", "arm64")
		}
		if chance(15) {
			c.Engines = []string{pick("kubernetes", "DOCKER")}
		}
		if chance(15) {
			c.Devices = []string{"cam"}
		}
		if chance(15) {
			c.Resources = map[string]int64{"gpu": int64(1 + r.IntN(3))}
		}
		if chance(15) {
			c.MinSecurity = r.IntN(80)
		}
		if chance(15) {
			c.MaxCPUUsage = r.Float64()
		}
		if chance(15) {
			c.Labels = map[string][]string{"zone": {pick("a", "b")}}
		}
		if chance(40) && nodes > 0 {
			at := p.Nodes[r.IntN(nodes)].Target()
			c.Current = &at
			if chance(20) {
				c.Excluded = []placement.Target{at}
			}
			if chance(15) {
				c.Current = &placement.Target{Cluster: at.Cluster}
			}
			c.Stays = chance(10)
		}
		if i > 0 && chance(25) {
			c.AntiAffinity = []string{"c" + strconv.Itoa(r.IntN(i))}
		}
		p.Components = append(p.Components, c)
	}
	for i := 1; i < components; i++ {
		if chance(60) {
			p.Affinities = append(p.Affinities, placement.Affinity{
				A: "c" + strconv.Itoa(i), B: "c" + strconv.Itoa(r.IntN(components)), Weight: float64(r.IntN(120)),
			})
		}
	}
	if components > 1 && chance(30) {
		s := placement.Spread{Components: []string{"c0", "c1"}, By: pick("zone", "cluster", "node", "orchestrator"), Max: 1}
		if components > 2 && chance(50) {
			s.Components, s.Max, s.MaxShare = []string{"c0", "c1", "c2"}, 0, 0.7
		}
		p.Spreads = []placement.Spread{s}
	}
	if chance(50) {
		p.Weights = placement.Weights{Performance: r.Float64(), Energy: r.Float64(), Security: r.Float64()}
	}
	if chance(30) {
		p.MoveCost = r.Float64() * 100
	}
	p.OneOrchestrator = chance(30)
	if chance(50) {
		extend(&p, r)
	}
	return p
}

// extend adds rare features: given scores, links between clusters with limits, groups.
func extend(p *placement.Problem, r *rand.Rand) {
	chance := func(percent int) bool { return r.IntN(100) < percent }
	if chance(40) {
		for range p.Components {
			row := make([]float64, len(p.Nodes))
			for k := range row {
				row[k] = float64(r.IntN(101))
			}
			p.Scores = append(p.Scores, row)
		}
	}
	for i := range p.Affinities {
		a := &p.Affinities[i]
		a.Scope = []string{"", "", "node", "cluster", "orchestrator"}[r.IntN(5)]
		if chance(20) {
			a.MaxLatency = time.Duration(1+r.IntN(30)) * time.Millisecond
		}
		if chance(20) {
			a.Bandwidth = int64(r.IntN(10))
		}
	}
	needs := chance(40)
	for i := range p.Affinities {
		p.Affinities[i].NeedsLink = needs && chance(40)
	}
	ends := []placement.Target{
		{Orchestrator: "ocm", Cluster: "north"},
		{Orchestrator: "OCM", Cluster: "south"},
		{Orchestrator: "nuvla", Cluster: "north"},
	}
	for i := range ends {
		if chance(50) {
			p.Peers = append(p.Peers, ends[i])
		}
		if chance(50) {
			p.Links = append(p.Links, placement.Link{
				A: ends[i], B: ends[(i+1)%3], Latency: time.Duration(r.IntN(40)) * time.Millisecond, Cost: r.Float64(),
				Bandwidth: int64(r.IntN(15)),
			})
		}
	}
	if chance(50) {
		for _, id := range []string{"shop", "cctv"} {
			p.Groups = append(p.Groups, placement.Group{
				ID: id, OneOrchestrator: chance(70), Weights: placement.Weights{Performance: r.Float64(), Security: r.Float64()},
			})
		}
		for i := range p.Components {
			p.Components[i].Group = []string{"", "shop", "cctv"}[r.IntN(3)]
		}
	}
}
