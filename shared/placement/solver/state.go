package solver

import (
	"math"
	"slices"
)

// State is a partial placement: where components are, and what is left of every node. Its methods enforce capacity,
// anti-affinity and spread, so no search can break them.
type State struct {
	m    *Model
	orch int32   // the only orchestrator that may be used, or -1
	At   []int32 // component -> node, or -1; only Put and Take write it
	// top is, for each node, one more than the component that was placed last, 0 for none. next is, for each component,
	// the one placed before it, in the same form.
	top, next []int32
	free      []int64
	placed    int
	bound     []binding       // of each group
	sentOver  map[int64]int64 // bandwidth taken, by link
	spread    [][]int32       // members of each spread in each domain
	work      int64
	budget    int64
	Via       []int32  // route of each channel, see NoRoute
	used      []int64  // bandwidth taken, by medium
	last      []Choice // of each channel
	unrouted  int      // channels that found no route
	chosen    []sent   // memory for routable
}

func (m *Model) newState(orch int32, budget int64) *State {
	s := &State{
		m: m, orch: orch, budget: budget,
		At: make([]int32, len(m.Components)), top: make([]int32, len(m.Nodes)), next: make([]int32, len(m.Components)),
		free:  slices.Clone(m.Free),
		bound: make([]binding, len(m.Groups)), sentOver: make(map[int64]int64), spread: make([][]int32, len(m.Spreads)),
	}
	for c := range s.At {
		s.At[c] = -1
	}
	s.Via, s.last = make([]int32, len(m.Channels)), make([]Choice, len(m.Channels))
	for i := range s.Via {
		s.Via[i], s.last[i] = NoRoute, m.Channels[i].Now
	}
	s.used = make([]int64, len(m.Media))
	for i := range m.Spreads {
		s.spread[i] = make([]int32, m.Spreads[i].Domains)
	}
	return s
}

// binding is the orchestrator that the placed components of a group have in common, if the group demands one.
type binding struct {
	orch   int32
	placed int
}

// Foreign reports whether the component's group is bound to another orchestrator than the node's.
func (s *State) Foreign(c, n int32) bool {
	g := s.m.Components[c].Group
	return s.m.Groups[g].OneOrchestrator && s.bound[g].placed > 0 && s.bound[g].orch != s.m.Nodes[n].Orchestrator
}

// Restore returns the state of a known placement; a component that does not fit in its place is left out.
func (m *Model) Restore(at, via []int32) *State {
	s := m.newState(-1, math.MaxInt64)
	s.prefer(at, via)
	for c, n := range at {
		if n >= 0 && s.Fits(int32(c), n) {
			s.Put(int32(c), n)
		}
	}
	return s
}

// Fits reports whether the component may go to the node, given all placed components.
func (s *State) Fits(c, n int32) bool {
	s.work++
	m, comp := s.m, &s.m.Components[c]
	cl := &m.Classes[comp.Class]
	if !cl.May(n) || (s.orch >= 0 && m.Nodes[n].Orchestrator != s.orch) || !s.roomy(cl, n) ||
		s.Foreign(c, n) || (comp.Limited && !s.LinksSuffice(c, n)) ||
		(len(comp.Channels) > 0 && !s.routable(c, n)) {
		return false
	}
	for _, x := range comp.Apart {
		if s.At[x] == n {
			return false
		}
	}
	for _, i := range comp.Spreads {
		if sp := &m.Spreads[i]; s.spread[i][sp.Domain[n]] >= sp.Limit {
			return false
		}
	}
	return true
}

// roomy reports whether the node has enough capacity left for a component of the class.
func (s *State) roomy(cl *Class, n int32) bool {
	free := s.free[int(n)*s.m.Dims:]
	for _, d := range cl.Demand {
		if d.Amount > free[d.Dim] {
			return false
		}
	}
	return true
}

// Put places a component that fits; Take removes it again.
func (s *State) Put(c, n int32) {
	s.At[c] = n
	s.next[c], s.top[n] = s.top[n], c+1
	s.charge(c, n, -1)
}

func (s *State) Remove(c int32) int32 {
	n := s.At[c]
	s.At[c] = -1
	at := &s.top[n]
	for *at != c+1 {
		at = &s.next[*at-1]
	}
	*at = s.next[c]
	s.charge(c, n, 1)
	return n
}

// On returns the components on a node, in order.
func (s *State) On(n int32) []int32 {
	var out []int32
	for c := s.top[n]; c != 0; c = s.next[c-1] {
		out = append(out, c-1)
	}
	slices.Sort(out)
	return out
}

func (s *State) charge(c, n int32, sign int64) {
	m, comp := s.m, &s.m.Components[c]
	free := s.free[int(n)*m.Dims:]
	for _, d := range m.Classes[comp.Class].Demand {
		free[d.Dim] += sign * d.Amount
	}
	if sign < 0 {
		s.connect(c, n)
	} else {
		s.disconnect(c, n)
	}
	s.placed -= int(sign)
	s.bound[comp.Group].orch = m.Nodes[n].Orchestrator
	s.bound[comp.Group].placed -= int(sign)
	if comp.Limited {
		s.sendOverLinks(c, n, -sign)
	}
	for _, i := range comp.Spreads {
		s.spread[i][m.Spreads[i].Domain[n]] -= int32(sign)
	}
}

// Value returns what the component earns at the candidate node with the partners that are placed.
func (s *State) Value(c, n int32) float64 {
	v := s.m.points(c, n)
	for i := range s.m.Edges[c] {
		e := &s.m.Edges[c][i]
		if at := s.At[e.To]; at >= 0 {
			v += e.Weight * s.m.Closeness(e, n, at)
		}
	}
	s.work += int64(len(s.m.Edges[c]))
	return v
}

// total returns how many components are placed and the objective.
func (s *State) total() (int, float64) {
	placed, sum := 0, 0.0
	for c, n := range s.At {
		if n < 0 {
			continue
		}
		placed++
		sum += s.m.points(int32(c), n)
		for i := range s.m.Edges[c] {
			e := &s.m.Edges[c][i]
			if at := s.At[e.To]; int(e.To) > c && at >= 0 {
				sum += e.Weight * s.m.Closeness(e, n, at)
			}
		}
		s.work += int64(1 + len(s.m.Edges[c]))
	}
	return placed, sum
}

// tired is how many candidates best examines for one component once the budget is spent: the current pass then ends
// quickly and still finds most improvements.
const tired = 256

// best returns the node where an unplaced component earns most, given the placed ones, and what it earns; -1 if it fits
// nowhere.
func (s *State) best(c int32) (int32, float64) { return s.bestOf(c, nil) }

// bestOf is best without the candidates known to be full, if the caller tracks these. Candidates come by falling
// points, so the search ends where points plus all reachable affinity cannot win any more.
func (s *State) bestOf(c int32, free *free) (int32, float64) {
	m, comp := s.m, &s.m.Components[c]
	cl := &m.Classes[comp.Class]
	node, value := int32(-1), math.Inf(-1)
	try := func(n int32) {
		if s.Fits(c, n) {
			if v := s.Value(c, n); v > value || (v == value && n < node) {
				node, value = n, v
			}
		}
	}
	for k, n := range comp.Home { // worth more than their points
		if k >= tired && s.spent() {
			break
		}
		try(n)
	}
	var reach float64
	for _, e := range m.Edges[c] {
		if s.At[e.To] >= 0 {
			reach += e.Weight
		}
	}
	for k, examined := free.next(0), 0; k < cl.count; k, examined = free.next(k+1), examined+1 {
		n := cl.Candidate(k)
		if node >= 0 && cl.Points[n]+reach <= value || examined >= tired && s.spent() {
			break
		}
		if free != nil && !s.roomy(cl, n) {
			s.work++
			free.close(k)
			continue
		}
		try(n)
	}
	return node, value
}

// vacancies tracks the candidates of a class that have room left, while nothing is removed: after[k] leads from candidate k
// towards the next open one; candidates beyond its end are all open.
type free struct{ after []int32 }

// next returns the first open candidate from k on; without tracking that is k.
func (o *free) next(k int) int {
	if o == nil {
		return k
	}
	for k < len(o.after) && int(o.after[k]) != k {
		o.after[k] = o.after[o.after[k]] // halve the path for the next time
		k = int(o.after[k])
	}
	return k
}

func (o *free) close(k int) {
	for next := len(o.after); next <= k+1; next++ {
		o.after = append(o.after, int32(next))
	}
	o.after[k] = int32(k + 1)
}

// bestIn is best within one cluster.
func (s *State) bestIn(c, cluster int32) (int32, float64) {
	node, value := int32(-1), math.Inf(-1)
	for n := s.m.Clusters[cluster]; n < s.m.Clusters[cluster+1]; n++ {
		if s.Fits(c, n) {
			if v := s.Value(c, n); v > value {
				node, value = n, v
			}
		}
	}
	return node, value
}

func (s *State) spent() bool { return s.work > s.budget }

// Placed returns how many components have a place.
func (s *State) Placed() int { return s.placed }

// Free returns what is left of a dim on a node.
func (s *State) Free(n int32, dim int) int64 { return s.free[int(n)*s.m.Dims+dim] }

// InDomain returns how many members of a spread are in the domain of a node.
func (s *State) InDomain(spread, n int32) int32 {
	return s.spread[spread][s.m.Spreads[spread].Domain[n]]
}

// Orchestrator returns the one that the placed components of a group share, if it demands one.
func (s *State) Orchestrator(group int32) int32 { return s.bound[group].orch }

// clear removes every component; reset restores a known placement.
func (s *State) clear() {
	for c, n := range s.At {
		if n >= 0 {
			s.Remove(int32(c))
		}
	}
}

func (s *State) resetTo(sol *Solution) {
	s.clear()
	s.prefer(sol.At, sol.Via)
	s.reset(sol.At)
}

func (s *State) reset(at []int32) {
	s.clear()
	for c, n := range at {
		if n >= 0 {
			s.Put(int32(c), n)
		}
	}
}
