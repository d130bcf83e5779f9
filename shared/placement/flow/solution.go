package flow

import (
	"errors"
	"fmt"
	"math/bits"
)

// ErrUnproved is returned by Verify for an answer that is wrong, or that its potentials do not prove optimal.
var ErrUnproved = errors.New("not proved optimal")

// Solution is a flow of least cost with the potentials that prove it. It does not change when the problem does.
type Solution struct {
	Cost    int64 // of the flow; unsent units of the partial mode cost nothing here
	Sent    int64 // units that left their supply nodes
	Pivots  int64
	Partial bool

	penalty int64   // price of a unit that the partial mode did not send
	flow    []int64 // by ArcID
	unmet   []int64 // by node

	// The potential of a node is that of a node of the network plus a constant: what one solve changes is little then.
	base   []int64 // by node of the network
	rep    []int32 // by node: the one of the network, negative for none
	offset []int64 // by node

	writes int // increases with each change, so that a solver knows whether its last write is still valid
}

// Flow returns the units on the arc, 0 for one that the problem did not have.
func (s *Solution) Flow(id ArcID) int64 { return at(s.flow, int(id)) }

// Potential returns the price of a unit at the node, up to a constant that is the same for all nodes connected to it.
// An arc is full if its cost plus Potential(from) is less than Potential(to), and at its lower bound if it is more.
func (s *Solution) Potential(node int) int64 {
	if node < 0 || node >= len(s.rep) {
		return 0
	}
	return s.potential(int32(node))
}

func (s *Solution) potential(v int32) int64 {
	if rep := s.rep[v]; rep >= 0 {
		return s.base[rep] + s.offset[v]
	}
	return s.offset[v]
}

// Unmet returns the units of the node's supply (> 0) or demand (< 0) that the partial mode left.
func (s *Solution) Unmet(node int) int64 { return at(s.unmet, node) }

func at(a []int64, i int) int64 {
	if i < 0 || i >= len(a) {
		return 0
	}
	return a[i]
}

// Verify proves in O(nodes + arcs), and without the solver, that s is an optimum of p: the flow is within the bounds,
// in and out agree with the supply at every node, and the potentials satisfy complementary slackness (Ahuja, Magnanti
// and Orlin, Network Flows, theorem 9.4): an arc of positive reduced cost is at its lower bound, one of negative
// reduced cost at its upper bound. In the partial mode the supply left at a node is one more arc, to or from a node of
// potential 0.
func (s *Solution) Verify(p *Problem) error {
	if len(s.flow) != len(p.arcs) || len(s.rep) != len(p.supply) || s.Partial && len(s.unmet) != len(p.supply) {
		return unproved("the problem has other nodes or arcs")
	}
	if s.Partial {
		if err := s.verifyPenalty(p); err != nil {
			return err
		}
	}
	balance := make([]wide, len(p.supply))
	for v, units := range p.supply {
		balance[v].add(units)
		if s.Partial {
			if err := s.verifyUnmet(int32(v), units); err != nil {
				return err
			}
			balance[v].sub(s.unmet[v])
		}
	}
	for id := range p.arcs {
		a := &p.arcs[id]
		if a.from < 0 {
			continue
		}
		f := s.flow[id]
		if f < a.lower || f > a.upper {
			return unproved("arc %d carries %d, bounds %d to %d", id, f, a.lower, a.upper)
		}
		balance[a.from].sub(f)
		balance[a.to].add(f)
		var reduced wide
		reduced.add(a.cost)
		reduced.add(s.potential(a.from))
		reduced.sub(s.potential(a.to))
		if sign := reduced.sign(); sign > 0 && f != a.lower || sign < 0 && (f != a.upper || f == Inf) {
			return unproved("arc %d carries %d, between bounds %d to %d, against its price", id, f, a.lower, a.upper)
		}
	}
	for v := range balance {
		if balance[v] != (wide{}) {
			return unproved("in and out differ at node %d", v)
		}
	}
	if cost, ok := totalCost(p, s.flow); !ok || cost != s.Cost {
		return unproved("the cost is %d, not %d", cost, s.Cost)
	}
	if sent, ok := s.totalSent(p); !ok || sent != s.Sent {
		return unproved("%d units were sent, not %d", sent, s.Sent)
	}
	return nil
}

// verifyPenalty proves that sending one more unit was worth any detour: the price of an unsent unit is above the cost
// of any path over all nodes.
func (s *Solution) verifyPenalty(p *Problem) error {
	for i := range p.arcs {
		hi, lo := bits.Mul64(magnitude(p.arcs[i].cost), uint64(len(p.supply))+1)
		if s.penalty < 0 || hi != 0 || lo >= uint64(s.penalty) {
			return unproved("a unit left has price %d, arc %d costs %d", s.penalty, i, p.arcs[i].cost)
		}
	}
	return nil
}

// verifyUnmet checks what is left at one node against its price.
func (s *Solution) verifyUnmet(v int32, units int64) error {
	left := s.unmet[v]
	var reduced wide
	reduced.add(s.penalty)
	if units > 0 {
		reduced.add(s.potential(v))
	} else {
		reduced.sub(s.potential(v))
	}
	sign := reduced.sign()
	if left < min(units, 0) || left > max(units, 0) || sign > 0 && left != 0 || sign < 0 && left != units {
		return unproved("node %d leaves %d of %d, against its price", v, left, units)
	}
	return nil
}

// VerifyCut proves that no flow meets the supplies and bounds of p, in the partial mode even if supply may stay: the
// nodes in e.Cut have e.Short units more than can leave them or, if e.Demand, need as many more than can come. O(nodes
// + arcs).
func (e *InfeasibleError) VerifyCut(p *Problem, partial bool) error {
	in := make([]bool, len(p.supply))
	var rest wide // minimum that stays in the cut (maximum for a demand)
	for _, v := range e.Cut {
		if v < 0 || v >= len(in) || in[v] {
			return unproved("node %d in the cut", v)
		}
		in[v] = true
		if units := p.supply[v]; !partial || e.Demand == (units > 0) {
			rest.add(units)
		}
	}
	for i := range p.arcs {
		a := &p.arcs[i]
		if a.from < 0 || in[a.from] == in[a.to] {
			continue
		}
		units := a.lower
		if in[a.from] != e.Demand {
			units = a.upper
		}
		switch {
		case units == Inf:
			return unproved("arc %d has no limit", i)
		case in[a.from]:
			rest.sub(units)
		default:
			rest.add(units)
		}
	}
	if e.Demand {
		rest = rest.negated()
	}
	if short := rest.capped(); rest.sign() <= 0 || short != e.Short {
		return unproved("the cut is short of %d, not %d", short, e.Short)
	}
	return nil
}

func unproved(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrUnproved}, args...)...)
}

// totalCost returns the cost of the flow, false if it does not fit into 64 bits.
func totalCost(p *Problem, flow []int64) (int64, bool) {
	var sum wide
	for id, units := range flow {
		if units != 0 && !sum.addProduct(units, p.arcs[id].cost) {
			return 0, false
		}
	}
	return sum.int64()
}

// totalSent returns the units that left the supply nodes, false if that does not fit into 64 bits.
func (s *Solution) totalSent(p *Problem) (int64, bool) {
	var sum wide
	for v, units := range p.supply {
		if units > 0 {
			sum.add(units)
			sum.sub(at(s.unmet, v))
		}
	}
	return sum.int64()
}

// wide is a signed 128-bit sum in two's complement; 2^31 terms of at most 2^96 fit.
type wide struct{ hi, lo uint64 }

func (w *wide) add(x int64) {
	var carry uint64
	w.lo, carry = bits.Add64(w.lo, uint64(x), 0)
	w.hi, _ = bits.Add64(w.hi, uint64(x>>63), carry)
}

func (w *wide) sub(x int64) {
	var borrow uint64
	w.lo, borrow = bits.Sub64(w.lo, uint64(x), 0)
	w.hi, _ = bits.Sub64(w.hi, uint64(x>>63), borrow)
}

func (w *wide) addWide(x wide) {
	var carry uint64
	w.lo, carry = bits.Add64(w.lo, x.lo, 0)
	w.hi, _ = bits.Add64(w.hi, x.hi, carry)
}

func (w *wide) subWide(x wide) { w.addWide(x.negated()) }

// addProduct adds x times y, and returns false if that is beyond 2^96.
func (w *wide) addProduct(x, y int64) bool {
	hi, lo := bits.Mul64(magnitude(x), magnitude(y))
	if hi >= 1<<32 {
		return false
	}
	if (x < 0) != (y < 0) {
		var carry uint64
		lo, carry = bits.Add64(^lo, 1, 0)
		hi = ^hi + carry
	}
	var carry uint64
	w.lo, carry = bits.Add64(w.lo, lo, 0)
	w.hi, _ = bits.Add64(w.hi, hi, carry)
	return true
}

func (w *wide) sign() int {
	switch {
	case int64(w.hi) < 0:
		return -1
	case w.hi|w.lo != 0:
		return 1
	}
	return 0
}

func (w wide) negated() wide {
	lo, borrow := bits.Sub64(0, w.lo, 0)
	hi, _ := bits.Sub64(0, w.hi, borrow)
	return wide{hi: hi, lo: lo}
}

// capped returns a sum that is not negative, Inf if it is more.
func (w *wide) capped() int64 {
	if x, ok := w.int64(); ok {
		return x
	}
	return Inf
}

func (w *wide) int64() (int64, bool) {
	x := int64(w.lo)
	return x, w.hi == uint64(x>>63)
}
