package solver

import (
	"math"
	"slices"
	"strconv"

	"github.com/littoral-project/littoral/shared/placement/flow"
)

// maxSlotArcs is how many pairs of a kind and a node a flow may have; larger problems use the general search.
const maxSlotArcs = 2_000_000

// slotFlow solves problems in which every component takes one slot: all have the same requests, and nothing joins them or
// keeps them apart. Kinds of components (equal requirements and places to stay) send one unit each to nodes, nodes send
// as many as they have slots to a sink, and the cost of an arc is the difference to the maximum points. The most that
// can be placed at the highest sum of points is then a min-cost flow, which is always integral (Ahuja, Magnanti and
// Orlin, Network Flows, 1993, section 1.3: the transportation problem).
//
// The flow is kept between solves: a problem similar to the last one is solved from its result.
type slotFlow struct {
	problem *flow.Problem
	solver  *flow.Solver
	sol     flow.Solution
	sink    int
	kinds   map[string]int // flow node of a kind
	nodes   map[NodeID]int // flow node of a node
	drain   []flow.ArcID   // by flow node of a node: its arc to the sink
	arcs    [][]arcTo      // by flow node of a kind: its arcs, by flow node
}

// arcTo is an arc from a kind to a node's flow node.
type arcTo struct {
	node int
	id   flow.ArcID
}

// kind is a set of components that the flow does not distinguish.
type kind struct {
	class   int32
	members []int32
	flow    int // its node in the flow
}

func newSlotFlow() *slotFlow {
	u := &slotFlow{problem: flow.NewProblem(1), kinds: map[string]int{}, nodes: map[NodeID]int{}}
	u.solver = flow.NewSolver(u.problem)
	u.solver.Partial = true
	return u
}

// slots returns how many components each node holds, or false if the problem is not about slots.
func (m *Model) slots(orch int32) ([]int64, bool) {
	if len(m.Spreads) > 0 || len(m.Channels) > 0 || len(m.Components) == 0 || len(m.Classes)*len(m.Nodes) > maxSlotArcs {
		return nil, false
	}
	if orch < 0 && m.Orchestrators > 1 && slices.ContainsFunc(m.Groups, func(g Group) bool {
		return g.OneOrchestrator && len(g.Members) > 1
	}) {
		return nil, false
	}
	for c := range m.Components {
		if len(m.Edges[c]) > 0 || len(m.Components[c].Apart) > 0 {
			return nil, false
		}
	}
	demand := m.Classes[0].Demand
	for i := range m.Classes {
		if !slices.Equal(m.Classes[i].Demand, demand) {
			return nil, false
		}
	}
	out := make([]int64, len(m.Nodes))
	for n := range out {
		if orch >= 0 && m.Nodes[n].Orchestrator != orch {
			continue
		}
		out[n] = int64(len(m.Components))
		for _, a := range demand {
			out[n] = min(out[n], m.Free[n*m.Dims+a.Dim]/a.Amount)
		}
	}
	return out, true
}

// solve finds the best plan, or false if the problem is not of this sort.
func (u *slotFlow) solve(s *State) (Solution, bool) {
	m := s.m
	slots, ok := m.slots(s.orch)
	if !ok {
		return Solution{}, false
	}
	kinds := m.kinds()
	scale := m.scale()
	at := u.load(m, kinds, slots, scale)
	if err := u.solver.SolveInto(&u.sol); err != nil {
		return Solution{}, false
	}
	s.clear()
	for _, k := range kinds {
		next := 0
		for _, a := range u.arcs[k.flow] {
			for range u.sol.Flow(a.id) {
				s.Put(k.members[next], at[a.node])
				next++
			}
		}
		s.work += int64(len(u.arcs[k.flow]))
	}
	sol := Solution{Orchestrator: s.orch, Exact: true, Work: s.work + u.sol.Pivots}
	sol.improveTo(s)
	sol.PlacedBound, sol.Bound = sol.Placed, sol.Value
	for n := range m.Nodes {
		if v := u.sol.Potential(u.sink) - u.sol.Potential(u.nodes[m.Names.NodeID(int32(n))]); v > 0 && slots[n] > 0 {
			sol.Prices = append(sol.Prices, m.slotPrice(int32(n), float64(v)/scale))
		}
	}
	return sol, true
}

// kinds sorts the components into kinds, in order of their first members.
func (m *Model) kinds() []kind {
	var out []kind
	known := make(map[string]int)
	var key []byte
	for c := range m.Components {
		comp := &m.Components[c]
		key = strconv.AppendInt(key[:0], int64(comp.Class), 10)
		for _, n := range comp.Home {
			key = strconv.AppendInt(append(key, ' '), int64(n), 10)
		}
		i, ok := known[string(key)]
		if !ok {
			i = len(out)
			known[string(key)] = i
			out = append(out, kind{class: comp.Class})
		}
		out[i].members = append(out[i].members, int32(c))
	}
	return out
}

// scale is the power of two that converts points to integer costs, exact to about 2^-40 of the largest.
func (m *Model) scale() float64 {
	most := 1.0
	for c := range m.Components {
		v := m.Classes[m.Components[c].Class].most
		if len(m.Components[c].Home) > 0 {
			v += m.MoveCost
		}
		most = max(most, v)
	}
	_, exponent := math.Frexp(most)
	return math.Ldexp(1, 40-exponent)
}

// load changes the kept flow into that of the problem, and returns the problem's node for each flow node.
func (u *slotFlow) load(m *Model, kinds []kind, slots []int64, scale float64) []int32 {
	if u.problem.Nodes() > 2*(len(kinds)+len(m.Nodes))+64 { // most of it from former problems
		*u = *newSlotFlow()
	}
	p := u.problem
	supply := make(map[int]int64, len(kinds))
	seen := make([]bool, p.Nodes())
	flowOf := make([]int, len(m.Nodes))
	for n := range m.Nodes {
		v, known := u.nodes[m.Names.NodeID(int32(n))]
		if !known {
			v = u.add()
			u.nodes[m.Names.NodeID(int32(n))] = v
			u.drain[v] = p.AddArc(v, u.sink, 0, slots[n], 0)
		} else {
			seen[v] = true
			u.hold(v, slots[n])
		}
		flowOf[n] = v
	}
	for key, v := range u.nodes { // a node that is gone keeps its arcs, but gets no capacity
		if v < len(seen) && !seen[v] && m.Names.FindNode(key) < 0 {
			u.hold(v, 0)
		}
	}
	for i := range kinds {
		k := &kinds[i]
		cl := &m.Classes[k.class]
		comp := m.Components[k.members[0]]
		key := cl.Key
		for _, n := range comp.Home {
			id := m.Names.NodeID(n)
			key += "\x00" + id[0] + "\x00" + id[1] + "\x00" + id[2]
		}
		v, known := u.kinds[key]
		if !known {
			v = u.add()
			u.kinds[key] = v
		}
		k.flow = v
		supply[v] = int64(len(k.members))
		u.connect(m, k, cl, flowOf, scale)
	}
	for v := 1; v < p.Nodes(); v++ {
		p.SetSupply(v, supply[v])
	}
	p.SetSupply(u.sink, -int64(len(m.Components)))
	at := make([]int32, p.Nodes())
	for n, v := range flowOf {
		at[v] = int32(n)
	}
	return at
}

// connect gives a kind an arc to each candidate and to no other node.
func (u *slotFlow) connect(m *Model, k *kind, cl *Class, flowOf []int, scale float64) {
	p := u.problem
	wanted := make([]arcTo, 0, cl.count)
	for n, v := range flowOf {
		if cl.May(int32(n)) {
			wanted = append(wanted, arcTo{v, flow.ArcID(n)}) // the node, for now
		}
	}
	slices.SortFunc(wanted, func(a, b arcTo) int { return a.node - b.node }) // mostly in order
	old := u.arcs[k.flow]
	for i := range wanted {
		w := &wanted[i]
		cost := -int64(math.Round(m.points(k.members[0], int32(w.id)) * scale))
		for len(old) > 0 && old[0].node < w.node {
			p.RemoveArc(old[0].id)
			old = old[1:]
		}
		if len(old) > 0 && old[0].node == w.node {
			w.id = old[0].id
			p.SetCost(w.id, cost)
			old = old[1:]
		} else {
			w.id = p.AddArc(k.flow, w.node, 0, flow.Inf, cost)
		}
	}
	for _, a := range old {
		p.RemoveArc(a.id)
	}
	u.arcs[k.flow] = wanted
}

// hold sets how many slots a node has.
func (u *slotFlow) hold(v int, slots int64) {
	if _, _, _, had, _, _ := u.problem.Arc(u.drain[v]); had != slots {
		u.problem.SetBounds(u.drain[v], 0, slots)
	}
}

// add adds a node to the flow.
func (u *slotFlow) add() int {
	v := u.problem.AddNode(0)
	for len(u.arcs) <= v {
		u.arcs = append(u.arcs, nil)
		u.drain = append(u.drain, flow.NoArc)
	}
	return v
}
