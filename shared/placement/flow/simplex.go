package flow

import (
	"fmt"
	"slices"
)

// slot is an arc that can carry flow, oriented in the direction in which it may still take some: an arc at its upper
// bound is stored backwards with its cost negated. So an arc can enter the basis exactly if cost + pi[tail] - pi[head]
// < 0, and the search for one reads no state; a tree arc has 0 there and is never chosen.
type slot struct {
	cost       int64
	tail, head int32
}

// simplex pivots until no arc can enter. It stops early at a cycle of unlimited capacity, at a flow that overflows
// int64, or at the pivot limit. O(block + depth + moved subtree) per pivot.
func (s *Solver) simplex() error {
	for {
		e := s.rule(s)
		if e < 0 {
			return nil
		}
		if s.PivotLimit > 0 && s.pivots >= s.PivotLimit {
			return ErrLimit
		}
		if err := s.pivot(e); err != nil {
			return err
		}
		s.pivots++
	}
}

// blockSearch returns the slot with the most negative reduced cost in the first block, from where the last search
// ended, that has any; -1 if there is none at all.
//
// The rule is Grigoriadis' (An efficient implementation of the network simplex method, 1986) with blocks of the square
// root of the number of slots, as Kovács found best (Minimum-cost flow algorithms: an experimental evaluation, 2015).
// On the largest of three graphs of a cluster scheduler it took 10.7 ms; a candidate list took 13.8, the first eligible
// arc 14.1 and the best of all 129. On the others it was at most 1.5 times as slow as the fastest. TestRules has them
// all.
func blockSearch(s *Solver) int32 {
	pi, at, left := s.pi, s.at, len(s.arcs)
	for left > 0 {
		if at == len(s.arcs) {
			at = 0
		}
		block := s.arcs[at:min(at+s.block, len(s.arcs))]
		best, found := int64(0), -1
		for i := range block {
			a := &block[i]
			if c := a.cost + pi[a.tail] - pi[a.head]; c < best {
				best, found = c, i
			}
		}
		if found >= 0 {
			s.at = at + len(block)
			return int32(at + found)
		}
		at += len(block)
		left -= len(block)
	}
	s.at = at
	return -1
}

// pivot brings slot e into the basis, pushing as much as possible around its cycle.
//
// The cycle runs from the join of the two tree paths down to the tail of e, through e, and up from its head. Of the
// arcs that block, the last in this order leaves: the tree stays strongly feasible (from every node some flow can be
// sent to the root), so that the method terminates even though pivots without progress are common.
func (s *Solver) pivot(e int32) error {
	nodes, a := s.nodes, s.arcs[e]
	u, v := a.tail, a.head
	down, up := s.caps[e], int64(noLimit)
	downAt, upAt := int32(-1), int32(-1)
	for u != v {
		if nu, nv := &nodes[u], &nodes[v]; nu.size < nv.size {
			if nu.down < down {
				down, downAt = nu.down, u
			}
			u = nu.parent
		} else {
			if nv.up <= up {
				up, upAt = nv.up, v
			}
			v = nv.parent
		}
	}
	join, delta := u, down
	q, in, out := downAt, a.tail, a.head
	if upAt >= 0 && up <= down {
		delta, q, in, out = up, upAt, a.head, a.tail
	}
	if s.unlimited(e, q, in == a.tail) {
		return s.endless(e, join)
	}

	if delta > 0 {
		if s.ledger.kept {
			s.ledger.touch(s, e, join)
		}
		for u := a.tail; u != join; u = nodes[u].parent {
			nodes[u].down -= delta
			nodes[u].up += delta
		}
		for v := a.head; v != join; v = nodes[v].parent {
			nodes[v].up -= delta
			nodes[v].down += delta
		}
	}
	if q < 0 { // e itself blocks: it moves from one bound to the other
		s.turn(e)
		return nil
	}

	// The leaving arc keeps the direction in which it can take flow back.
	if l := nodes[q].arc; l >= 0 && (s.arcs[l].tail == q) != (in == a.tail) {
		s.turn(l)
	}
	c := a.cost + s.pi[a.tail] - s.pi[a.head]
	size := nodes[q].size
	s.addSize(nodes[q].parent, join, -size)
	s.addSize(out, join, size)
	if in == a.tail {
		s.regraft(in, q, out, e, s.caps[e]-delta, delta)
		c = -c
	} else {
		s.regraft(in, q, out, e, delta, s.caps[e]-delta)
	}
	s.shift(in, q, size, c)
	return nil
}

// lists is how many times longer it takes to shift a threaded node than a listed one, roughly.
const lists = 3

// shift adds c to the potentials of the subtree of in, which was that of q and has size nodes, or subtracts it from all
// others: only differences of potentials count, so the smaller part is enough. They wrap around in the long run, and
// the differences with them.
func (s *Solver) shift(in, q, size int32, c int64) {
	s.follow(in, q, size)
	first, last, rest := in, s.nodes[in].last, int32(len(s.nodes))-size
	if s.listed && size < lists*rest {
		pi := s.pi
		for _, v := range s.part {
			pi[v] += c
		}
		return
	}
	if rest < size {
		first, last, c, size = s.next[last], s.prev[first], -c, rest
	}
	s.shiftThread(first, last, size, c)
}

// follow keeps a list of the part that moves. Two parts of a network with many arcs between them (two hubs, say) change
// the arc that joins them again and again, and nearly the same nodes move each time. From the second time on they are
// listed, since a list is faster to traverse than a thread.
func (s *Solver) follow(in, q, size int32) {
	top, had := s.top, int32(len(s.part))
	s.top = in
	switch {
	case !s.listed && q == top:
		s.part = s.part[:0]
		for v := in; int32(len(s.part)) < size; v = s.next[v] {
			s.enlist(v)
		}
		s.listed = true
	case !s.listed || q == top:
	case s.inPart(q) && size >= lists*(had-size): // without what is left under the old top
		v := top
		for range had - size {
			for v == in {
				v = s.next[s.nodes[in].last]
			}
			s.strike(v)
			v = s.next[v]
		}
	case s.inPart(in) && !s.inPart(q) && size <= lists*had: // with additional nodes, which regraft has put last
		for v := s.nodes[in].last; int32(len(s.part)) < size; v = s.prev[v] {
			s.enlist(v)
		}
	default:
		s.listed = false
	}
}

func (s *Solver) inPart(v int32) bool {
	i := s.place[v]
	return int(i) < len(s.part) && s.part[i] == v
}

func (s *Solver) enlist(v int32) {
	s.place[v] = int32(len(s.part))
	s.part = append(s.part, v)
}

func (s *Solver) strike(v int32) {
	i, last := s.place[v], s.part[len(s.part)-1]
	s.part[i], s.place[last] = last, i
	s.part = s.part[:len(s.part)-1]
}

// shiftThread adds c to the potentials of size nodes, first to last in preorder. Each step waits for the one before, so
// it proceeds from both ends at once.
func (s *Solver) shiftThread(first, last, size int32, c int64) {
	pi, next, prev := s.pi, s.next, s.prev
	for range size / 2 {
		pi[first] += c
		pi[last] += c
		first, last = next[first], prev[last]
	}
	if size%2 != 0 {
		pi[first] += c
	}
}

// turn reverses the direction of a slot.
func (s *Solver) turn(e int32) {
	a := &s.arcs[e]
	a.tail, a.head, a.cost = a.head, a.tail, -a.cost
	s.turned[e] = !s.turned[e]
}

// unlimited reports whether the blocking arc (that of q, or e itself) has no capacity limit and is pushed forwards:
// then either nothing limits the cycle, or a flow would not fit into 64 bits.
func (s *Solver) unlimited(e, q int32, tailSide bool) bool {
	if q < 0 {
		return s.caps[e] == noLimit
	}
	l := s.nodes[q].arc
	switch {
	case l == artUp:
		return !tailSide
	case l == artDown:
		return tailSide
	case s.caps[l] != noLimit:
		return false
	}
	return s.forwards(l, q) != tailSide
}

// forwards reports whether the tree arc l of v, in the direction of the problem, leads from v to its parent.
func (s *Solver) forwards(l, v int32) bool { return (s.arcs[l].tail == v) != s.turned[l] }

// endless returns the error for a cycle that is blocked only by arcs without a capacity limit.
func (s *Solver) endless(e, join int32) error {
	cycle := []int32{}
	free := s.caps[e] == noLimit
	visit := func(v int32, tailSide bool) {
		for ; v != join; v = s.nodes[v].parent {
			l := s.nodes[v].arc
			free = free && l >= 0 && s.caps[l] == noLimit && s.forwards(l, v) != tailSide
			cycle = append(cycle, l)
		}
	}
	visit(s.arcs[e].tail, true)
	slices.Reverse(cycle)
	cycle = append(cycle, e)
	visit(s.arcs[e].head, false)
	if !free {
		return fmt.Errorf("%w: a flow exceeds them", ErrOverflow)
	}
	err := &UnboundedError{}
	for _, l := range cycle {
		err.Cycle = append(err.Cycle, s.path(s.ids[l])...)
	}
	return err
}
