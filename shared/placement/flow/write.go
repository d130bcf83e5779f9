package flow

import "fmt"

// ledger records what was written into the last solution, and which parts of it pivots and edits of costs have touched
// since, so that the same solution can be updated in time proportional to these.
type ledger struct {
	sol     *Solution // the last one written, nil if it cannot be brought up to date
	writes  int       // sol.writes at that time
	kept    bool      // the present solve updates it
	flow    []int64   // by slot: its flow above the lower bound in sol
	cost    wide      // the cost in sol
	touched []int32   // slots whose flow may differ
	isIn    []bool    // by slot: it is in touched
	joints  []int32   // those with a changed offset
	wild    bool      // a cost exceeded the range of wide
}

// open begins a solve into sol.
func (g *ledger) open(sol *Solution) {
	g.kept = g.sol == sol && g.writes == sol.writes
	if !g.kept {
		g.close()
	}
}

// close makes the next solution be written as a whole.
func (g *ledger) close() { g.sol, g.kept = nil, false }

// begin records a solution that was written as a whole.
func (g *ledger) begin(sol *Solution, cost wide) {
	g.sol, g.writes, g.cost, g.wild = sol, sol.writes, cost, false
	g.touched, g.joints = g.touched[:0], g.joints[:0]
	g.isIn = resize(g.isIn, len(g.flow))
	clear(g.isIn)
}

// touch records the arcs of the cycle that the slot e closes.
func (g *ledger) touch(s *Solver, e, join int32) {
	g.add(e)
	for _, v := range [2]int32{s.arcs[e].tail, s.arcs[e].head} {
		for ; v != join; v = s.nodes[v].parent {
			if l := s.nodes[v].arc; l >= 0 {
				g.add(l)
			}
		}
	}
}

func (g *ledger) add(l int32) {
	if !g.isIn[l] {
		g.isIn[l] = true
		g.touched = append(g.touched, l)
	}
}

// recost records that a unit on the slot, in its present direction, costs so much more.
func (g *ledger) recost(s *Solver, l int32, more int64) {
	if !g.kept || g.flow[l] == 0 {
		return
	}
	if s.turned[l] {
		more = -more
	}
	g.wild = !g.cost.addProduct(g.flow[l], more) || g.wild
}

// write writes the answer of the basis: the changes if sol is the last solution written, else all.
func (s *Solver) write(sol *Solution) error {
	kept := s.ledger.kept && s.update(sol)
	s.ledger.close()
	if !kept {
		return s.writeAll(sol)
	}
	s.ledger.sol = sol
	return nil
}

// tame limits the flows that update adds up, so that no sum overflows int64.
const tame = int64(1) << 61

// update updates the last solution, unless numbers get so large that only writeAll can check whether they fit. O(nodes
// of the network + what was touched).
func (s *Solver) update(sol *Solution) bool {
	g := &s.ledger
	if g.wild {
		return false
	}
	for _, l := range g.touched {
		g.isIn[l] = false
		id, units := s.ids[l], s.units(l)
		more := units - g.flow[l]
		if more == 0 {
			continue
		}
		cost := s.arcs[l].cost
		if s.turned[l] {
			cost = -cost
		}
		if units > tame || !g.cost.addProduct(more, cost) || !s.addFlow(sol, id, more) {
			return false
		}
		g.flow[l] = units
	}
	var fits bool
	if sol.Cost, fits = g.cost.int64(); !fits {
		return false
	}
	g.touched = g.touched[:0]
	for _, i := range g.joints {
		j := &s.joined[i]
		sol.offset[j.v] = j.sign * s.offset[j.v]
	}
	g.joints = g.joints[:0]
	s.writeBase(sol)
	sol.Pivots = s.pivots
	sol.writes++
	g.writes = sol.writes
	return true
}

// addFlow adds units, possibly negative, to the arc of a slot and to its fans and funnels.
func (s *Solver) addFlow(sol *Solution, id ArcID, units int64) bool {
	tamed := true
	add := func(id ArcID) {
		f := &sol.flow[id]
		*f += units
		tamed = tamed && -tame <= *f && *f <= tame
	}
	add(id)
	a := &s.problem.arcs[id]
	for v := a.from; tamed && s.core[v] == fan; v = s.beyond(v) {
		add(s.via[v])
	}
	for v := a.to; tamed && s.core[v] == funnel; v = s.beyond(v) {
		add(s.via[v])
	}
	return tamed
}

// units returns what a slot carries above its lower bound.
func (s *Solver) units(l int32) int64 {
	a := &s.arcs[l]
	for _, v := range [2]int32{a.tail, a.head} {
		if n := &s.nodes[v]; n.arc == l {
			if s.forwards(l, v) {
				return n.down
			}
			return n.up
		}
	}
	if s.turned[l] {
		return s.caps[l]
	}
	return 0
}

// writeAll computes flow and potentials from the basis. O(nodes + arcs).
func (s *Solver) writeAll(sol *Solution) error {
	p := s.problem
	sol.writes++
	sol.Pivots, sol.Partial, sol.Sent, sol.penalty = s.pivots, s.partial, s.supply, s.penalty
	sol.flow = append(sol.flow[:0], s.lower...)
	sol.unmet = sol.unmet[:0]
	if s.partial {
		sol.unmet = zeros(sol.unmet, len(p.supply))
	}
	s.writePotentials(sol)

	// Flow through a node counts on the arc that its fan or funnel left out.
	through := zeros(s.through, len(p.supply))
	s.through = through
	cost, fits := s.fixed, true
	calm := !s.partial && len(s.loops) == 0
	carry := func(id ArcID, units, price int64, bent bool) {
		calm = calm && units <= tame
		fits = put(&sol.flow[id], units) && fits
		fits = cost.addProduct(units, price) && fits
		if a := &p.arcs[id]; bent {
			if s.core[a.from] == fan {
				fits = put(&through[a.from], units) && fits
			}
			if s.core[a.to] == funnel {
				fits = put(&through[a.to], units) && fits
			}
		}
	}
	for l, units := range s.slotFlow() {
		switch id := s.ids[l]; {
		case units == 0:
		case id >= 0 && s.turned[l]:
			carry(id, units, -s.arcs[l].cost, s.bent[l])
		case id >= 0:
			carry(id, units, s.arcs[l].cost, s.bent[l])
		case p.supply[slackNode(id)] < 0:
			sol.unmet[slackNode(id)] = -units
		default:
			sol.unmet[slackNode(id)] = units
			sol.Sent -= units
		}
	}
	for _, id := range s.loops {
		if price := s.slotCost(id); price < 0 {
			carry(id, p.arcs[id].width(), price, p.arcs[id].from != p.arcs[id].to)
		}
	}
	for i := len(s.joined) - 1; i >= 0; i-- {
		j := &s.joined[i]
		units := through[j.v]
		if units == 0 {
			continue
		}
		calm = calm && units <= tame
		fits = put(&sol.flow[j.via], units) && fits
		if s.core[j.beyond] < 0 {
			fits = put(&through[j.beyond], units) && fits
		}
	}
	if !fits {
		return fmt.Errorf("%w: flow or cost on an arc", ErrOverflow)
	}
	if sol.Cost, fits = cost.int64(); !fits {
		return fmt.Errorf("%w: total cost", ErrOverflow)
	}
	if calm {
		s.ledger.begin(sol, cost)
	}
	return nil
}

// writePotentials computes them from the tree, with 0 at the root, and adds the fans and funnels.
func (s *Solver) writePotentials(sol *Solution) {
	s.writeBase(sol)
	sol.rep = append(sol.rep[:0], s.end...)
	sol.offset = zeros(sol.offset, len(s.end))
	for i := range s.joined {
		j := &s.joined[i]
		sol.offset[j.v] = j.sign * s.offset[j.v]
	}
}

func (s *Solver) writeBase(sol *Solution) {
	zero := s.pi[s.root]
	sol.base = resize(sol.base, int(s.root))
	for v := range sol.base {
		sol.base[v] = s.pi[v] - zero
	}
}

// slotFlow returns what each slot carries above its lower bound.
func (s *Solver) slotFlow() []int64 {
	flow := resize(s.ledger.flow, len(s.arcs))
	for l, turned := range s.turned {
		flow[l] = 0
		if turned {
			flow[l] = s.caps[l]
		}
	}
	for v := range s.nodes[:s.root] {
		if n := &s.nodes[v]; n.arc >= 0 {
			flow[n.arc] = n.up
			if s.forwards(n.arc, int32(v)) {
				flow[n.arc] = n.down
			}
		}
	}
	s.ledger.flow = flow
	return flow
}

// put adds units >= 0 to a flow, and reports whether the sum fits into 64 bits.
func put(flow *int64, units int64) bool {
	before := *flow
	*flow += units
	return *flow >= before
}
