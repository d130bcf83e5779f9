package flow

import "fmt"

// ledger knows what was written into the last solution and which parts of it pivots and edits of costs have touched
// since, so that the same solution can be brought up to date in time for these alone.
type ledger struct {
	sol     *Solution // the last one written, nil if it cannot be brought up to date
	writes  int       // sol.writes when it was
	kept    bool      // the solve that goes on brings it up to date
	flow    []int64   // by slot: what it says that the slot carries above its lower bound
	cost    wide      // the cost it states
	touched []int32   // slots whose flow may differ
	isIn    []bool    // by slot: it is in touched
	joints  []int32   // whose offsets differ
	wild    bool      // a cost left what wide can add up
}

// open begins a solve into sol.
func (g *ledger) open(sol *Solution) {
	g.kept = g.sol == sol && g.writes == sol.writes
	if !g.kept {
		g.close()
	}
}

// close forgets: the next solution is written as a whole.
func (g *ledger) close() { g.sol, g.kept = nil, false }

// begin keeps what has just been written as a whole.
func (g *ledger) begin(sol *Solution, cost wide) {
	g.sol, g.writes, g.cost, g.wild = sol, sol.writes, cost, false
	g.touched, g.joints = g.touched[:0], g.joints[:0]
	g.isIn = resize(g.isIn, len(g.flow))
	clear(g.isIn)
}

// touch notes the arcs of the cycle that the slot e closes.
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

// recost notes that a unit on the slot, in the direction it stands, costs so much more.
func (g *ledger) recost(s *Solver, l int32, more int64) {
	if !g.kept || g.flow[l] == 0 {
		return
	}
	if s.turned[l] {
		more = -more
	}
	g.wild = !g.cost.addProduct(g.flow[l], more) || g.wild
}

// write writes the answer that the basis stands for: what has changed if sol is the last solution written, else all.
func (s *Solver) write(sol *Solution) error {
	kept := s.ledger.kept && s.update(sol)
	s.ledger.close()
	if !kept {
		return s.writeAll(sol)
	}
	s.ledger.sol = sol
	return nil
}

// tame bounds the flows that update adds up, so that no sum leaves int64.
const tame = int64(1) << 61

// update brings the last solution up to date, unless numbers get so large that only writeAll can tell whether they fit.
// O(nodes of the network + what was touched).
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
		if units > tame || !g.cost.addProduct(more, cost) || !s.carry(sol, id, more) {
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

// carry adds units, fewer than none perhaps, to the arc of a slot and to the fans and funnels it goes over.
func (s *Solver) carry(sol *Solution, id ArcID, units int64) bool {
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

// writeAll reads flow and potentials off the basis. O(nodes + arcs).
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

	// What goes through a node counts on the arc that a fan or funnel left out.
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

// writePotentials takes them off the tree, the root being 0, and adds the fans and funnels.
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

// put adds units, none negative, to a flow, and tells whether the sum fits into 64 bits.
func put(flow *int64, units int64) bool {
	before := *flow
	*flow += units
	return *flow >= before
}
