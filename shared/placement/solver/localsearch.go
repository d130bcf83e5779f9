package solver

import "slices"

// improve improves the placement until none of these moves helps or the budget is spent: finding room for an unplaced
// component, moving a component, also moving one that is in the way (a swap, if it takes the first one's place),
// bringing a set of joined components into one cluster, and moving a whole group to another orchestrator.
func (s *State) improve() {
	groups := s.groups()
	for again := true; again && !s.spent(); {
		again = false
		for c := range s.At {
			if s.spent() {
				return
			}
			if s.At[c] < 0 {
				again = s.makeRoom(int32(c)) || again
			} else {
				again = s.move(int32(c)) || again
			}
		}
		for _, g := range groups {
			for k := range int32(len(s.m.Clusters) - 1) {
				if s.spent() {
					return
				}
				again = s.gather(g, k) || again
			}
		}
		again = s.convert() || again
	}
}

// Limits that keep each move local.
const (
	maxTries     = 64  // nodes on which room is made for one component
	maxEvicted   = 8   // components that are in the way on one node
	maxGathered  = 40  // components of a group
	maxConverted = 200 // components of a group that changes its orchestrator
	maxPartners  = 12  // of a component that are gathered with it
)

// move brings a placed component to a place where it earns more, with or without moving another one away.
func (s *State) move(c int32) bool {
	cl := &s.m.Classes[s.m.Components[c].Class]
	had := s.Value(c, s.At[c])
	from := s.Remove(c)
	if n, v := s.best(c); n >= 0 && v > had+slack(had) {
		s.Put(c, n)
		return true
	}
	var reach float64
	for _, e := range s.m.Edges[c] {
		if s.At[e.To] >= 0 {
			reach += e.Weight
		}
	}
	tries := 0
	for k := range cl.count {
		n := cl.Candidate(k)
		if cl.Points[n]+reach <= had || tries == maxTries || s.spent() {
			break
		}
		if n == from || s.Fits(c, n) || s.Value(c, n) <= had {
			continue
		}
		tries++
		for _, d := range s.inTheWay(n) {
			lost := s.Value(d, n)
			s.Remove(d)
			if s.Fits(c, n) {
				v := s.Value(c, n)
				s.Put(c, n)
				if to, w := s.best(d); to >= 0 && v+w > had+lost+slack(had+lost) {
					s.Put(d, to)
					return true
				}
				s.Remove(c)
			}
			s.Put(d, n)
		}
	}
	s.Put(c, from)
	return false
}

// inTheWay returns a copy of the first components on a node, in order.
func (s *State) inTheWay(n int32) []int32 {
	out := s.On(n)
	return out[:min(len(out), maxEvicted)]
}

// makeRoom places a component that has no place, by moving others if need be.
func (s *State) makeRoom(c int32) bool {
	whole := s.budget // one component must not spend all of it
	s.budget = min(whole, s.work+whole/16)
	defer func() { s.budget = whole }()
	if s.placeByChain(c, 2) {
		return true
	}
	cl := &s.m.Classes[s.m.Components[c].Class]
	for k := range cl.count {
		if k == maxTries || s.spent() {
			break
		}
		n := cl.Candidate(k)
		if s.evacuate(c, n) {
			return true
		}
	}
	return false
}

// placeByChain places a component; others move away along a chain of at most depth.
func (s *State) placeByChain(c int32, depth int) bool {
	if n, _ := s.best(c); n >= 0 {
		s.Put(c, n)
		return true
	}
	if depth == 0 {
		return false
	}
	cl := &s.m.Classes[s.m.Components[c].Class]
	for k := range cl.count {
		if k == maxTries || s.spent() {
			break
		}
		n := cl.Candidate(k)
		for _, d := range s.inTheWay(n) {
			s.Remove(d)
			if s.Fits(c, n) {
				s.Put(c, n)
				if s.placeByChain(d, depth-1) {
					return true
				}
				s.Remove(c)
			}
			s.Put(d, n)
		}
	}
	return false
}

// evacuate removes components from a node until c fits there and places them again; if one finds no place, nothing
// changes.
func (s *State) evacuate(c, n int32) bool {
	var out []int32
	for _, d := range s.inTheWay(n) {
		if s.Fits(c, n) {
			break
		}
		s.Remove(d)
		out = append(out, d)
	}
	if s.Fits(c, n) {
		s.Put(c, n)
		placed := 0
		for placed < len(out) {
			to, _ := s.best(out[placed])
			if to < 0 {
				break
			}
			s.Put(out[placed], to)
			placed++
		}
		if placed == len(out) {
			return true
		}
		for _, d := range out[:placed] {
			s.Remove(d)
		}
		s.Remove(c)
	}
	for _, d := range out {
		s.Put(d, n)
	}
	return false
}

// groups returns the sets of joined components that gather tries to bring together: each component with its partners,
// and each whole connected set, unless too large.
func (s *State) groups() [][]int32 {
	var out [][]int32
	order, starts := s.connected()
	for i, start := range starts {
		end := len(order)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		if n := end - start; n > 1 && n <= maxGathered {
			out = append(out, order[start:end])
		}
	}
	for c, es := range s.m.Edges {
		if n := len(es) + 1; n > 1 && n <= maxPartners {
			g := []int32{int32(c)}
			for _, e := range es {
				g = append(g, e.To)
			}
			out = append(out, slices.Compact(g)) // a pair may have several affinities
		}
	}
	return out
}

// gather removes a group and places it again in one cluster as far as it fits there, and the rest at its best places;
// it keeps the result only if that is better.
func (s *State) gather(group []int32, cluster int32) bool {
	if s.orch >= 0 && s.m.Nodes[s.m.Clusters[cluster]].Orchestrator != s.orch {
		return false
	}
	return s.replace(group, func(c int32) (int32, float64) {
		if s.m.Classes[s.m.Components[c].Class].inCluster[cluster] > 0 {
			if n, v := s.bestIn(c, cluster); n >= 0 {
				return n, v
			}
		}
		return s.best(c)
	})
}

// convert moves whole groups with a single orchestrator to another one.
func (s *State) convert() bool {
	if s.orch >= 0 {
		return false
	}
	moved := false
	for g := range s.m.Groups {
		group := &s.m.Groups[g]
		if !group.OneOrchestrator || len(group.Members) > maxConverted {
			continue
		}
		for o := range int32(s.m.Orchestrators) {
			if s.spent() || (s.bound[g].placed > 0 && s.bound[g].orch == o) {
				continue
			}
			moved = s.replace(group.Members, func(c int32) (int32, float64) {
				s.orch = o
				defer func() { s.orch = -1 }()
				return s.best(c)
			}) || moved
		}
	}
	return moved
}

// replace removes a group, places its components again one by one with find, and undoes everything unless that placed
// more components or earned more.
func (s *State) replace(group []int32, find func(int32) (int32, float64)) bool {
	had := make([]int32, len(group))
	before, after := 0.0, 0.0
	placedBefore, placedAfter := 0, 0
	for i, c := range group {
		had[i] = s.At[c]
		if had[i] >= 0 {
			before += s.Value(c, had[i])
			placedBefore++
			s.Remove(c)
		}
	}
	for _, c := range group {
		if n, v := find(c); n >= 0 {
			s.Put(c, n)
			after += v
			placedAfter++
		}
	}
	if better(placedAfter, after, placedBefore, before) {
		return true
	}
	for _, c := range group {
		if s.At[c] >= 0 {
			s.Remove(c)
		}
	}
	for i, c := range group {
		if had[i] >= 0 {
			s.Put(c, had[i])
		}
	}
	return false
}
