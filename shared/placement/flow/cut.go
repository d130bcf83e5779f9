package flow

// infeasible explains the artificial flow that remains in an optimal basis. Take the nodes with units that they cannot
// send, and every node that these units could still reach: all arcs out of that set are full and all arcs into it are
// at their lower bounds, or else an augmenting path would have paid. O(nodes + arcs).
func (s *Solver) infeasible() error {
	var surplus, missing wide
	for v := range s.root {
		if units := s.artificial(v); units > 0 {
			surplus.add(units)
		} else {
			missing.sub(units)
		}
	}
	// The root can only be reached in the partial mode, over slack arcs. Then the shortage is on the other side.
	e := &InfeasibleError{Demand: surplus.sign() == 0}
	in := s.reach(e.Demand)
	inside := true
	if in[s.root] {
		e.Demand, inside = true, false
	}
	e.Short = surplus.capped()
	if e.Demand {
		e.Short = missing.capped()
	}
	for v, c := range s.core {
		if c != idle && in[s.end[v]] == inside {
			e.Cut = append(e.Cut, v)
		}
	}
	return e
}

// reach returns the nodes that an unsent unit of some node could still reach or, backwards, those from which a unit
// could still reach a node that lacks one.
func (s *Solver) reach(backwards bool) []bool {
	n := len(s.nodes)
	start := make([]int32, n+1)
	for i := range s.arcs {
		start[s.from(i, backwards)+1]++
	}
	for v := range n {
		start[v+1] += start[v]
	}
	out := make([]int32, len(s.arcs))
	fill := append([]int32(nil), start...)
	for i := range s.arcs {
		v := s.from(i, backwards)
		out[fill[v]] = int32(i)
		fill[v]++
	}

	in := make([]bool, n)
	var queue []int32
	visit := func(v int32) {
		if !in[v] {
			in[v] = true
			queue = append(queue, v)
		}
	}
	for v := range s.root {
		if units := s.artificial(v); units > 0 && !backwards || units < 0 && backwards {
			visit(v)
		}
	}
	children := s.children()
	for len(queue) > 0 {
		v := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, l := range out[start[v]:start[v+1]] {
			a := &s.arcs[l]
			w := a.tail ^ a.head ^ v
			if s.nodes[v].arc != l && s.nodes[w].arc != l { // tree arcs follow
				visit(w)
			}
		}
		if n := &s.nodes[v]; n.arc >= 0 && (n.up > 0 && !backwards || n.down > 0 && backwards) {
			visit(n.parent)
		}
		for c := children[v]; c >= 0; c = s.sibling[c] {
			if n := &s.nodes[c]; n.arc >= 0 && (n.down > 0 && !backwards || n.up > 0 && backwards) {
				visit(c)
			}
		}
	}
	return in
}

func (s *Solver) from(l int, backwards bool) int32 {
	if backwards {
		return s.arcs[l].head
	}
	return s.arcs[l].tail
}
