package flow

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Values of Solver.core for a node without a number in the network.
const (
	idle   = int32(-1) // no arc can carry anything here
	fan    = int32(-2) // its only arc in has at least the capacity of all its arcs out
	funnel = int32(-3) // its only arc out has at least the capacity of all its arcs in
)

// none is the slot of an arc or node that has none.
const none = int32(-1)

// What Solver.tree holds besides arcs.
const (
	byRoot  = ArcID(-1) // an artificial arc, or none
	bySlack = ArcID(-2)
)

// load builds the network from the problem, and the tree from the remaining basis. O(nodes + arcs).
//
// The network leaves out what cannot matter. An arc with equal bounds has no choice. A fan is a node without supply
// whose only arc in never limits its arcs out. It needs no balance of its own: its arcs out begin where the arc in
// does, and cost that much more; likewise a funnel and its only arc out. So machines with their sockets, cores and
// threads become arcs. Potentials are restored by adding costs along the arc left out (Solver.via), which then has
// reduced cost 0, and its flow is the sum of the flows over the others.
func (s *Solver) load() error {
	if s.loaded {
		s.save()
	}
	s.loaded = false
	if err := s.weigh(); err != nil {
		return err
	}
	if err := s.loadNodes(); err != nil {
		return err
	}
	if err := s.loadArcs(); err != nil {
		return err
	}
	if s.partial = s.Partial; s.partial {
		if err := s.loadSlack(); err != nil {
			return err
		}
	}
	s.recall()
	s.rethread()
	cut, err := s.repair()
	if err != nil {
		return err
	}
	if cut {
		s.rethread()
	}
	s.at = min(s.at, len(s.arcs))
	s.top, s.listed, s.place = none, false, zeros(s.place, len(s.nodes))
	s.bearing.built, s.tilt = false, zeros(s.tilt, len(s.nodes))
	s.loaded, s.shape, s.recosted = true, s.problem.shape, len(s.problem.recosted)
	return nil
}

// save writes the basis in the numbering of the problem at the last load. O(nodes + arcs).
func (s *Solver) save() {
	n := len(s.core)
	s.parent, s.tree, s.full = resize(s.parent, n), resize(s.tree, n), resize(s.full, n)
	s.atUpper = resize(s.atUpper, len(s.slotOf))
	clear(s.full)
	clear(s.atUpper)
	for v := range n {
		s.parent[v], s.tree[v] = -1, byRoot
	}
	for l, id := range s.ids {
		if id >= 0 {
			s.atUpper[id] = s.turned[l]
		} else {
			s.full[slackNode(id)] = s.turned[l]
		}
	}
	for v, owner := range s.ownerOf {
		n := &s.nodes[v]
		if n.parent != s.root {
			s.parent[owner] = s.ownerOf[n.parent]
		}
		if n.arc < 0 {
			continue
		}
		if id := s.ids[n.arc]; id >= 0 {
			s.tree[owner], s.atUpper[id] = id, false
		} else {
			s.tree[owner], s.full[owner] = bySlack, false
		}
	}
	s.warm = true
}

// weigh chooses the cost of a unit of supply that the partial mode does not send; a unit on an artificial arc costs
// twice that. A simple cycle has fewer arcs than there are nodes, and at most two of them at the root. So the first
// cost outweighs all that the arcs of the problem can gain, and the second outweighs the first.
func (s *Solver) weigh() error {
	s.most = 0
	for i := range s.problem.arcs {
		s.most = max(s.most, magnitude(s.problem.arcs[i].cost))
	}
	roomy := uint64(1)<<bits.Len64(s.most) - 1 // so that a slightly larger cost later needs no new load
	for _, s.most = range []uint64{roomy, s.most} {
		hi, lo := bits.Mul64(s.most, uint64(len(s.problem.supply))+1)
		if hi == 0 && lo < math.MaxInt64/8 {
			s.penalty = int64(lo) + 1
			s.bigM = 2 * s.penalty
			return nil
		}
	}
	return fmt.Errorf("%w: a path over %d nodes with costs of %d", ErrOverflow, len(s.problem.supply), s.most)
}

func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

// loadNodes finds out which nodes the network needs and numbers them, and computes what supply and lower bounds leave
// at each.
func (s *Solver) loadNodes() error {
	p := s.problem
	n := len(p.supply)
	s.core, s.via = resize(s.core, n), resize(s.via, n)
	s.sides = resize(s.sides, n)
	sides := s.sides
	var supply wide
	for v, units := range p.supply {
		sides[v] = side{left: units}
		supply.add(max(units, 0))
	}
	var fits bool
	if s.supply, fits = supply.int64(); !fits {
		return fmt.Errorf("%w: the supplies together", ErrOverflow)
	}
	for id := range p.arcs {
		a := &p.arcs[id]
		if a.from < 0 {
			continue
		}
		width := a.width()
		if width < 0 || width == noLimit && a.upper != Inf {
			return fmt.Errorf("%w: arc %d has bounds %d to %d", ErrOverflow, id, a.lower, a.upper)
		}
		if a.from == a.to {
			continue
		}
		if a.lower != 0 && !move(&sides[a.from].left, &sides[a.to].left, a.lower) {
			return fmt.Errorf("%w: supply and lower bounds at arc %d", ErrOverflow, id)
		}
		if width > 0 {
			sides[a.from].addOut(ArcID(id), width)
			sides[a.to].addIn(ArcID(id), width)
		}
	}
	s.ownerOf = s.ownerOf[:0]
	for v := range sides {
		switch d := &sides[v]; {
		case p.supply[v] != 0 || d.left != 0:
			s.number(v)
		case d.ins+d.outs == 0:
			s.core[v] = idle
		case d.ins == 1 && d.inWidth >= d.outWidth:
			s.core[v], s.via[v] = fan, d.in
		case d.outs == 1 && d.outWidth >= d.inWidth:
			s.core[v], s.via[v] = funnel, d.out
		default:
			s.number(v)
		}
	}
	s.order()
	s.root = int32(len(s.ownerOf))
	k := len(s.ownerOf) + 1
	s.nodes, s.next, s.prev = resize(s.nodes, k), resize(s.next, k), resize(s.prev, k)
	s.pi, s.excess = resize(s.pi, k), resize(s.excess, k)
	s.first, s.sibling = resize(s.first, k), resize(s.sibling, k)
	for v, owner := range s.ownerOf {
		s.excess[v] = sides[owner].left
	}
	s.nodes[s.root].parent, s.nodes[s.root].arc = -1, artUp
	return nil
}

// side is what loadNodes learns about a node: the arcs that can carry something.
type side struct {
	left              int64 // supply minus what the lower bounds take
	inWidth, outWidth int64 // together, at most noLimit
	ins, outs         int32
	in, out           ArcID // one of them
}

func (d *side) addIn(id ArcID, width int64) {
	d.ins++
	d.in = id
	d.inWidth = min(d.inWidth, noLimit-width) + width
}

func (d *side) addOut(id ArcID, width int64) {
	d.outs++
	d.out = id
	d.outWidth = min(d.outWidth, noLimit-width) + width
}

// number makes v a node of the network.
func (s *Solver) number(v int) {
	s.core[v] = int32(len(s.ownerOf))
	s.ownerOf = append(s.ownerOf, int32(v))
}

// joint is a fan or funnel: the potential of v is that of beyond plus sign times the cost of via.
type joint struct {
	v, beyond, end int32 // end: the number of the node of the network that stands for it
	via            ArcID
	cost, sign     int64
}

// beyond returns the other end of the arc that a fan or funnel leaves out.
func (s *Solver) beyond(v int32) int32 {
	a := &s.problem.arcs[s.via[v]]
	return a.from ^ a.to ^ v
}

// order lists fans and funnels so that each comes after the one beyond it. If a fan directly follows a funnel, or if
// fans or funnels form a ring, one becomes a node of the network after all.
func (s *Solver) order() {
	const unseen, open, done = 0, 1, 2
	n := len(s.core)
	state := resize(s.state, n)
	clear(state)
	s.joined = s.joined[:0]
	for start := range s.core {
		mark := len(s.joined)
		v := int32(start)
		for s.core[v] <= fan && state[v] == unseen {
			state[v] = open
			w := s.beyond(v)
			j := joint{v: v, beyond: w, via: s.via[v], sign: 1}
			if s.core[v] == funnel {
				j.sign = -1
			}
			s.joined = append(s.joined, j)
			if s.core[w] <= fan && s.core[w] != s.core[v] || state[w] == open {
				s.number(int(v))
				s.joined = s.joined[:len(s.joined)-1]
				break
			}
			v = w
		}
		for _, j := range s.joined[mark:] {
			state[j.v] = done
		}
		slices.Reverse(s.joined[mark:])
	}
	s.state = state
	s.end, s.offset = resize(s.end, n), resize(s.offset, n)
	copy(s.end, s.core)
	clear(s.offset)
	for i := range s.joined {
		j := &s.joined[i]
		j.cost = s.problem.arcs[j.via].cost
		j.end = s.end[j.beyond]
		s.end[j.v] = j.end
	}
	s.offsets()
}

// offsets computes for every fan and funnel the cost to reach the node of the network that represents it.
func (s *Solver) offsets() {
	offset := s.offset
	for i := range s.joined {
		j := &s.joined[i]
		offset[j.v] = offset[j.beyond] + j.cost
	}
}

// slotCost returns the cost of a unit over the arc and the fans and funnels at its ends.
func (s *Solver) slotCost(id ArcID) int64 {
	a := &s.problem.arcs[id]
	if a.from == a.to {
		return a.cost
	}
	return a.cost + s.offset[a.from] + s.offset[a.to]
}

// path returns the arcs of a slot in order.
func (s *Solver) path(id ArcID) []ArcID {
	a := &s.problem.arcs[id]
	if a.from == a.to {
		return []ArcID{id}
	}
	var ids []ArcID
	for v := a.from; s.core[v] == fan; v = s.beyond(v) {
		ids = append(ids, s.via[v])
	}
	slices.Reverse(ids)
	ids = append(ids, id)
	for v := a.to; s.core[v] == funnel; v = s.beyond(v) {
		ids = append(ids, s.via[v])
	}
	return ids
}

// loadArcs makes the slots, at the bound given by the kept basis. Consecutive arcs in the problem often leave the same
// node and compete. A stride between them makes each block of the search for an entering arc a fair sample, which saved
// up to a tenth of the pivots and a fifth of the time on scheduling graphs.
func (s *Solver) loadArcs() error {
	p := s.problem
	s.arcs, s.caps, s.ids, s.turned = s.arcs[:0], s.caps[:0], s.ids[:0], s.turned[:0]
	s.bent, s.loops = s.bent[:0], s.loops[:0]
	s.slotOf = resize(s.slotOf, len(p.arcs))
	s.lower = resize(s.lower, len(p.arcs))
	stride := max(1, int(math.Sqrt(float64(len(p.arcs)))))
	for begin := range stride {
		for id := begin; id < len(p.arcs); id += stride {
			if err := s.loadArc(ArcID(id)); err != nil {
				return err
			}
		}
	}
	for i, j := range s.joined {
		s.slotOf[j.via] = viaOf(i)
	}
	return s.loadFixed()
}

// loadFixed computes the cost of the lower bounds, which no pivot changes.
func (s *Solver) loadFixed() error {
	s.fixed, s.fixes = wide{}, false
	for id, units := range s.lower {
		s.fixes = s.fixes || units != 0
		if units != 0 && !s.fixed.addProduct(units, s.problem.arcs[id].cost) {
			return fmt.Errorf("%w: cost of arc %d", ErrOverflow, id)
		}
	}
	return nil
}

func (s *Solver) loadArc(id ArcID) error {
	a := &s.problem.arcs[id]
	s.slotOf[id], s.lower[id] = none, a.lower
	if a.from < 0 || a.lower == a.upper || s.isVia(id) {
		return nil
	}
	tail, head, width := s.end[a.from], s.end[a.to], a.width()
	if tail == head {
		s.loops = append(s.loops, id)
		return nil
	}
	upper := s.warm && int(id) < len(s.atUpper) && s.atUpper[id] && width != noLimit
	if upper && !move(&s.excess[tail], &s.excess[head], width) {
		return fmt.Errorf("%w: full arc %d", ErrOverflow, id)
	}
	s.slotOf[id] = int32(len(s.arcs))
	bent := s.core[a.from] < 0 || s.core[a.to] < 0
	s.add(slot{cost: s.slotCost(id), tail: tail, head: head}, width, id, upper, bent)
	return nil
}

// viaOf is stored in slotOf for the arc left out of joined[i], and jointOf finds i again, negative for others.
func viaOf(i int) int32 { return int32(-2 - i) }

func jointOf(l int32) int32 { return -2 - l }

// isVia reports whether a fan or funnel leaves the arc out.
func (s *Solver) isVia(id ArcID) bool {
	a := &s.problem.arcs[id]
	return s.core[a.to] == fan && s.via[a.to] == id || s.core[a.from] == funnel && s.via[a.from] == id
}

func (s *Solver) add(a slot, width int64, id ArcID, upper, bent bool) {
	if upper {
		a = slot{cost: -a.cost, tail: a.head, head: a.tail}
	}
	s.arcs, s.caps = append(s.arcs, a), append(s.caps, width)
	s.ids, s.turned, s.bent = append(s.ids, id), append(s.turned, upper), append(s.bent, bent)
}

// slackID is stored in ids for the slack arc of node v of the problem; no ArcID is negative.
func slackID(v int32) ArcID { return ArcID(-1 - v) }

func slackNode(id ArcID) int32 { return int32(-1 - id) }

// loadSlack adds the slack arcs of the partial mode: unsent supply goes to the root, and unmet demand is supplied from
// there.
func (s *Solver) loadSlack() error {
	s.slackSlot = resize(s.slackSlot, len(s.nodes))
	for v, owner := range s.ownerOf {
		s.slackSlot[v] = none
		units := s.problem.supply[owner]
		if units == 0 {
			continue
		}
		a, width := slot{cost: s.penalty, tail: int32(v), head: s.root}, units
		if units < 0 {
			a.tail, a.head, width = a.head, a.tail, -units
		}
		if width < 0 || width == noLimit {
			return fmt.Errorf("%w: supply of node %d", ErrOverflow, owner)
		}
		upper := s.warm && int(owner) < len(s.full) && s.full[owner]
		var rest int64
		if upper && !move(&s.excess[v], &rest, units) {
			return fmt.Errorf("%w: supply and bounds at node %d", ErrOverflow, owner)
		}
		s.slackSlot[v] = int32(len(s.arcs))
		s.add(a, width, slackID(owner), upper, false)
	}
	return nil
}

// move takes units from one balance and adds them to another, unless either would leave int64.
func move(from, to *int64, units int64) bool {
	f, t := *from-units, *to+units
	if (units > 0) != (f < *from) || (units > 0) != (t > *to) {
		return false
	}
	*from, *to = f, t
	return true
}

// recall rebuilds the parents from the kept basis. A node whose tree arc no longer exists is attached to the root, as
// all nodes are at first.
func (s *Solver) recall() {
	for v, owner := range s.ownerOf {
		n := &s.nodes[v]
		n.parent, n.arc = s.root, artUp
		if !s.warm || int(owner) >= len(s.tree) {
			continue
		}
		id, parent := s.tree[owner], s.root
		if up := s.parent[owner]; up >= 0 {
			parent = s.core[up]
		}
		l := none
		switch {
		case id == bySlack && s.partial:
			l = s.slackSlot[v]
		case id >= 0 && int(id) < len(s.slotOf):
			l = max(s.slotOf[id], none)
		}
		if l == none {
			continue
		}
		if a := &s.arcs[l]; a.tail == int32(v) && a.head == parent || a.head == int32(v) && a.tail == parent {
			n.parent, n.arc = parent, l
		}
	}
}

// zeros returns a with n elements, all zero.
func zeros[T int32 | int64](a []T, n int) []T {
	a = resize(a, n)
	clear(a)
	return a
}

// resize returns a with n elements; new ones are uninitialised.
func resize[T any](a []T, n int) []T {
	if n > cap(a) {
		return append(a[:cap(a)], make([]T, n-cap(a))...)
	}
	return a[:n]
}

// repair computes the flow of each tree arc, leaves first. An arc whose flow is out of its bounds, or would not leave
// the tree strongly feasible, is removed at the bound that it passed, and its node exchanges the rest directly with the
// root. It reports whether any arc was removed. O(nodes).
func (s *Solver) repair() (cut bool, err error) {
	for v := s.prev[s.root]; v != s.root; v = s.prev[v] {
		n, e := &s.nodes[v], s.excess[v]
		l, parent, carry := n.arc, n.parent, int64(0) // units that go up
		fits := false
		if l >= 0 {
			c := s.caps[l]
			if s.arcs[l].tail == v {
				fits = e >= 0 && e < c
				carry = min(max(e, 0), c)
				n.up, n.down = c-carry, carry
			} else {
				fits = e < 0 && e >= -c
				carry = max(min(e, 0), -c)
				n.up, n.down = -carry, c+carry
			}
			if fits {
				carry = e
			} else if carry != 0 {
				if c == noLimit {
					return cut, fmt.Errorf("%w: flow at node %d", ErrOverflow, v)
				}
				s.turn(l)
			}
		}
		if !fits {
			cut = cut || parent != s.root
			if err := s.hang(v, e-carry); err != nil {
				return cut, err
			}
		}
		if carry != 0 && parent != s.root {
			sum := s.excess[parent] + carry
			if (carry > 0) != (sum > s.excess[parent]) {
				return cut, fmt.Errorf("%w: flow at node %d", ErrOverflow, parent)
			}
			s.excess[parent] = sum
		}
	}
	return cut, nil
}

// hang attaches node v to the root, over its slack arc if that can carry the excess, else over an artificial one.
func (s *Solver) hang(v int32, e int64) error {
	n := &s.nodes[v]
	n.parent = s.root
	if s.partial && s.slackSlot[v] != none && !s.turned[s.slackSlot[v]] {
		l := s.slackSlot[v]
		c := s.caps[l]
		switch up := s.arcs[l].tail == v; {
		case up && e >= 0 && e < c:
			n.arc, n.up, n.down = l, c-e, e
			return nil
		case up && e >= c:
			s.turn(l)
			e -= c
		case !up && e < 0 && e >= -c:
			n.arc, n.up, n.down = l, -e, c+e
			return nil
		case !up && e < -c:
			s.turn(l)
			e += c
		}
	}
	switch {
	case e == math.MinInt64:
		return fmt.Errorf("%w: flow at node %d", ErrOverflow, v)
	case e >= 0:
		n.arc, n.up, n.down = artUp, noLimit-e, e
	default:
		n.arc, n.up, n.down = artDown, -e, noLimit+e
	}
	return nil
}
