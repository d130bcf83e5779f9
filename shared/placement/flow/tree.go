package flow

import "math"

// Values of node.arc that are not the slot of an arc.
const (
	artUp   = int32(-1) // an artificial arc from the node to the root
	artDown = int32(-2) // an artificial arc from the root to the node
)

// node is a tree node and the tree arc to its parent. The tree is threaded: Solver.next visits all nodes in preorder
// and returns to the start, so that the subtree of v is the size nodes from v to last.
//
// The flow on the tree arc is stored as what may still be pushed in either direction, so that neither the ratio test
// nor the update needs the direction of the arc: up + down is its capacity, and the flow is the one against its
// direction.
type node struct {
	up, down int64 // units that may still go from the node to its parent, and from the parent to the node
	parent   int32
	arc      int32 // slot of the tree arc, or artUp, artDown
	size     int32 // nodes in the subtree
	last     int32 // last node of the subtree in preorder
}

// children links the children of every node into lists and returns the first ones; the others follow in Solver.sibling.
func (s *Solver) children() []int32 {
	for v := range s.first {
		s.first[v] = -1
	}
	for v := s.root - 1; v >= 0; v-- {
		p := s.nodes[v].parent
		s.sibling[v] = s.first[p]
		s.first[p] = v
	}
	s.sibling[s.root] = -1
	return s.first
}

// rethread builds next, prev, size and last from the parents alone. O(nodes).
func (s *Solver) rethread() {
	nodes, next, root := s.nodes, s.next, s.root
	first, sibling := s.children(), s.sibling
	prev := s.prev
	at, v := root, root
	for {
		nodes[v].size = 1
		if v != root {
			next[at], prev[v] = v, at
			at = v
		}
		if first[v] >= 0 {
			v = first[v]
			continue
		}
		for { // climb until there is a sibling, closing each subtree on the way
			nodes[v].last = at
			if v == root {
				next[at], prev[root] = root, at
				return
			}
			nodes[nodes[v].parent].size += nodes[v].size
			if sibling[v] >= 0 {
				v = sibling[v]
				break
			}
			v = nodes[v].parent
		}
	}
}

// regraft cuts the subtree of q off its parent and attaches it by in, one of its nodes, below the node out. The tree
// arc of in becomes arc, with the given residuals. O(depth), plus the path up where last changes.
//
// The nodes on the path from in to q (the stem) turn around: each becomes the last child of the one before it. Their
// new preorder is the old subtree of in, then the rest of the next stem node's subtree, and so on.
func (s *Solver) regraft(in, q, out, arc int32, up, down int64) {
	nodes, next, prev := s.nodes, s.next, s.prev
	size, oldLast := nodes[q].size, nodes[q].last
	oldParent := nodes[q].parent
	before, after := prev[q], next[oldLast]

	// Take the subtree out of the thread and of its ancestors.
	next[before], prev[after] = after, before
	for a := oldParent; a >= 0 && nodes[a].last == oldLast; a = nodes[a].parent {
		nodes[a].last = before
	}

	// Turn the stem around.
	tail := oldLast
	if in != q {
		tail = nodes[in].last
		child := in
		childPrev, childLast, childSize := prev[in], tail, nodes[in].size
		childNext := next[tail]
		v := nodes[in].parent
		carryArc, carryUp, carryDown := nodes[in].arc, nodes[in].up, nodes[in].down
		for {
			n := &nodes[v]
			vPrev, vLast, vSize, vParent := prev[v], n.last, n.size, n.parent
			// v's subtree without the child's: close the gap, unless the child's was at the end of it.
			end, vNext := childPrev, childNext
			if childLast != vLast {
				end, vNext = vLast, next[vLast]
				next[childPrev], prev[childNext] = childNext, childPrev
			}
			next[tail], prev[v] = v, tail
			tail = end
			n.parent = child
			n.size = size - childSize
			n.arc, carryArc = carryArc, n.arc
			n.up, n.down, carryUp, carryDown = carryDown, carryUp, n.up, n.down
			if v == q {
				break
			}
			child, childPrev, childLast, childSize, childNext = v, vPrev, vLast, vSize, vNext
			v = vParent
		}
		for v := q; v != in; v = nodes[v].parent {
			nodes[v].last = tail
		}
	}

	// Attach it to out, as its first child.
	n := &nodes[in]
	n.parent, n.arc, n.up, n.down, n.size, n.last = out, arc, up, down, size, tail
	follow := next[out]
	next[out], prev[in] = in, out
	next[tail], prev[follow] = follow, tail
	for a := out; a >= 0 && nodes[a].last == out; a = nodes[a].parent {
		nodes[a].last = tail
	}
}

// addSize adds by to the sizes of v and of its ancestors below stop.
func (s *Solver) addSize(v, stop, by int32) {
	for ; v != stop; v = s.nodes[v].parent {
		s.nodes[v].size += by
	}
}

// potentials computes all of them from the tree, so that every tree arc has reduced cost 0 and the root potential 0.
func (s *Solver) potentials() {
	s.pi[s.root] = 0
	for v := s.next[s.root]; v != s.root; v = s.next[v] {
		n := &s.nodes[v]
		switch n.arc {
		case artUp:
			s.pi[v] = -s.bigM
		case artDown:
			s.pi[v] = s.bigM
		default:
			a := &s.arcs[n.arc]
			if a.tail == v {
				s.pi[v] = s.pi[n.parent] - a.cost
			} else {
				s.pi[v] = s.pi[n.parent] + a.cost
			}
		}
	}
}

// noLimit is the capacity of an artificial arc and of an arc with upper bound Inf.
const noLimit = math.MaxInt64
