package placement

import (
	"math"
	"slices"
)

// state is a partial placement: where components are, and what is left of every node. Its methods enforce capacity,
// anti-affinity and spread, so no search can break them.
type state struct {
	m    *model
	orch int32   // the only orchestrator that may be used, or -1
	at   []int32 // component -> node, or -1
	// top is, for each node, one more than the component that was placed last, 0 for none. next is, for each component,
	// the one placed before it, in the same form.
	top, next []int32
	free      []int64
	placed    int
	bound     []binding       // of each group
	sent      map[int64]int64 // bandwidth taken, by link
	spread    [][]int32       // members of each spread in each domain
	work      int64
	budget    int64
}

func (m *model) newState(orch int32, budget int64) *state {
	s := &state{
		m: m, orch: orch, budget: budget,
		at: make([]int32, len(m.comps)), top: make([]int32, len(m.nodes)), next: make([]int32, len(m.comps)),
		free:  slices.Clone(m.free),
		bound: make([]binding, len(m.groups)), sent: make(map[int64]int64), spread: make([][]int32, len(m.spreads)),
	}
	for c := range s.at {
		s.at[c] = -1
	}
	for i := range m.spreads {
		s.spread[i] = make([]int32, len(m.spreads[i].names))
	}
	return s
}

// binding is the orchestrator that the placed components of a group have in common, if the group demands one.
type binding struct {
	orch   int32
	placed int
}

// foreign reports whether the component's group is bound to another orchestrator than the node's.
func (s *state) foreign(c, n int32) bool {
	g := s.m.comps[c].group
	return s.m.groups[g].OneOrchestrator && s.bound[g].placed > 0 && s.bound[g].orch != s.m.nodes[n].orch
}

// restore returns the state of a known placement; a component that does not fit in its place is left out.
func (m *model) restore(at []int32) *state {
	s := m.newState(-1, math.MaxInt64)
	for c, n := range at {
		if n >= 0 && s.fits(int32(c), n) {
			s.put(int32(c), n)
		}
	}
	return s
}

// fits reports whether the component may go to the node, given all placed components.
func (s *state) fits(c, n int32) bool {
	s.work++
	m, comp := s.m, &s.m.comps[c]
	cl := &m.classes[comp.class]
	if !cl.may(n) || (s.orch >= 0 && m.nodes[n].orch != s.orch) || !s.roomy(cl, n) ||
		s.foreign(c, n) || (comp.limited && !s.wired(c, n)) {
		return false
	}
	for _, x := range comp.apart {
		if s.at[x] == n {
			return false
		}
	}
	for _, i := range comp.spreads {
		if sp := &m.spreads[i]; s.spread[i][sp.domain[n]] >= sp.limit {
			return false
		}
	}
	return true
}

// roomy reports whether the node has enough capacity left for a component of the class.
func (s *state) roomy(cl *class, n int32) bool {
	free := s.free[int(n)*len(s.m.dims):]
	for _, d := range cl.demand {
		if d.amount > free[d.dim] {
			return false
		}
	}
	return true
}

// put places a component that fits; take removes it again.
func (s *state) put(c, n int32) {
	s.at[c] = n
	s.next[c], s.top[n] = s.top[n], c+1
	s.charge(c, n, -1)
}

func (s *state) take(c int32) int32 {
	n := s.at[c]
	s.at[c] = -1
	at := &s.top[n]
	for *at != c+1 {
		at = &s.next[*at-1]
	}
	*at = s.next[c]
	s.charge(c, n, 1)
	return n
}

// on returns the components on a node, in order.
func (s *state) on(n int32) []int32 {
	var out []int32
	for c := s.top[n]; c != 0; c = s.next[c-1] {
		out = append(out, c-1)
	}
	slices.Sort(out)
	return out
}

func (s *state) charge(c, n int32, sign int64) {
	m, comp := s.m, &s.m.comps[c]
	free := s.free[int(n)*len(m.dims):]
	for _, d := range m.classes[comp.class].demand {
		free[d.dim] += sign * d.amount
	}
	s.placed -= int(sign)
	s.bound[comp.group].orch = m.nodes[n].orch
	s.bound[comp.group].placed -= int(sign)
	if comp.limited {
		s.send(c, n, -sign)
	}
	for _, i := range comp.spreads {
		s.spread[i][m.spreads[i].domain[n]] -= int32(sign)
	}
}

// value returns what the component earns at the candidate node with the partners that are placed.
func (s *state) value(c, n int32) float64 {
	v := s.m.points(c, n)
	for i := range s.m.edges[c] {
		e := &s.m.edges[c][i]
		if at := s.at[e.to]; at >= 0 {
			v += e.weight * s.m.closeness(e, n, at)
		}
	}
	s.work += int64(len(s.m.edges[c]))
	return v
}

// total returns how many components are placed and the objective.
func (s *state) total() (int, float64) {
	placed, sum := 0, 0.0
	for c, n := range s.at {
		if n < 0 {
			continue
		}
		placed++
		sum += s.m.points(int32(c), n)
		for i := range s.m.edges[c] {
			e := &s.m.edges[c][i]
			if at := s.at[e.to]; int(e.to) > c && at >= 0 {
				sum += e.weight * s.m.closeness(e, n, at)
			}
		}
		s.work += int64(1 + len(s.m.edges[c]))
	}
	return placed, sum
}

// tired is how many candidates best examines for one component once the budget is spent: the current pass then ends
// quickly and still finds most improvements.
const tired = 256

// best returns the node where an unplaced component earns most, given the placed ones, and what it earns; -1 if it fits
// nowhere.
func (s *state) best(c int32) (int32, float64) { return s.bestOf(c, nil) }

// bestOf is best without the candidates known to be full, if the caller tracks these. Candidates come by falling
// points, so the search ends where points plus all reachable affinity cannot win any more.
func (s *state) bestOf(c int32, open *open) (int32, float64) {
	m, comp := s.m, &s.m.comps[c]
	cl := &m.classes[comp.class]
	node, value := int32(-1), math.Inf(-1)
	try := func(n int32) {
		if s.fits(c, n) {
			if v := s.value(c, n); v > value || (v == value && n < node) {
				node, value = n, v
			}
		}
	}
	for k, n := range comp.home { // worth more than their points
		if k >= tired && s.spent() {
			break
		}
		try(n)
	}
	var reach float64
	for _, e := range m.edges[c] {
		if s.at[e.to] >= 0 {
			reach += e.weight
		}
	}
	for k, looked := open.next(0), 0; k < cl.count; k, looked = open.next(k+1), looked+1 {
		n := cl.candidate(k)
		if node >= 0 && cl.points[n]+reach <= value || looked >= tired && s.spent() {
			break
		}
		if open != nil && !s.roomy(cl, n) {
			s.work++
			open.close(k)
			continue
		}
		try(n)
	}
	return node, value
}

// open tracks the candidates of a class that have room left, while nothing is removed: after[k] leads from candidate k
// towards the next open one; candidates beyond its end are all open.
type open struct{ after []int32 }

// next returns the first open candidate from k on; without tracking that is k.
func (o *open) next(k int) int {
	if o == nil {
		return k
	}
	for k < len(o.after) && int(o.after[k]) != k {
		o.after[k] = o.after[o.after[k]] // halve the path for the next time
		k = int(o.after[k])
	}
	return k
}

func (o *open) close(k int) {
	for next := len(o.after); next <= k+1; next++ {
		o.after = append(o.after, int32(next))
	}
	o.after[k] = int32(k + 1)
}

// bestIn is best within one cluster.
func (s *state) bestIn(c, cluster int32) (int32, float64) {
	node, value := int32(-1), math.Inf(-1)
	for n := s.m.clusters[cluster]; n < s.m.clusters[cluster+1]; n++ {
		if s.fits(c, n) {
			if v := s.value(c, n); v > value {
				node, value = n, v
			}
		}
	}
	return node, value
}

func (s *state) spent() bool { return s.work > s.budget }

// clear removes every component; reset restores a known placement.
func (s *state) clear() {
	for c, n := range s.at {
		if n >= 0 {
			s.take(int32(c))
		}
	}
}

func (s *state) reset(at []int32) {
	s.clear()
	for c, n := range at {
		if n >= 0 {
			s.put(int32(c), n)
		}
	}
}
