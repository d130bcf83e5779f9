package flow

import (
	"errors"
	"fmt"
	"math"
)

// minBlock is the least number of slots that the search for an entering arc reads at once. A warm solve reads
// warmBlocks as many: few arcs can enter then, and it pays to take a good one, as each pivot moves a large part of the
// tree.
const (
	minBlock   = 20
	warmBlocks = 8
)

// Solver solves one Problem, and solves it again faster after edits: it keeps the last basis (a spanning tree, and for
// each other arc the bound it is at) and starts from what is left of it. It is not safe for concurrent use.
type Solver struct {
	// Partial asks for as much of the supply as can be sent, at least cost, instead of all of it. Supplies need not
	// equal demands then; Solution.Unmet tells what stays.
	Partial bool
	// PivotLimit ends a Solve with ErrLimit after so many pivots; 0 is no limit. The next Solve goes on from there.
	PivotLimit int64

	problem *Problem
	rule    func(*Solver) int32 // finds the entering slot, -1 for none

	// The basis by the problem's own numbers, written when the network below is about to be built anew.
	warm    bool
	parent  []int32 // by node of the problem: its parent, -1 for the root and for a node that is not in the tree
	tree    []ArcID // by node of the problem: the tree arc, byRoot or bySlack
	atUpper []bool  // by ArcID
	full    []bool  // by node of the problem: its slack arc is at the upper bound

	// The network that is solved: see load.go.
	loaded   bool
	shape    uint64 // of the problem when it was loaded
	recosted int    // entries of problem.recosted that were looked at
	partial  bool
	penalty  int64   // cost of a unit not sent in the partial mode
	bigM     int64   // cost of a unit on an artificial arc
	most     uint64  // largest cost, signs aside, that penalty and bigM are good for
	core     []int32 // by node of the problem: its number here, or idle, fan, funnel
	ownerOf  []int32 // the other way round
	via      []ArcID // by node of the problem: the arc left out of a fan or funnel
	joined   []joint // the fans and funnels, each after the one beyond
	end      []int32 // by node of the problem: the number of the node where a fan begins or a funnel ends
	offset   []int64 // by node of the problem: cost of the way between the two
	slotOf   []int32 // by ArcID: its slot, or none
	lower    []int64 // by ArcID
	fixed    wide    // cost of the lower bounds
	fixes    bool    // some lower bound is not 0
	supply   int64   // all of it
	loops    []ArcID // arcs that begin and end at the same node here; each is full if that pays, else empty

	arcs      []slot
	caps      []int64 // by slot: capacity above the lower bound
	ids       []ArcID // by slot: the arc, or slackID of its node
	turned    []bool  // by slot: it stands backwards
	bent      []bool  // by slot: it goes over a fan or funnel
	slackSlot []int32 // by node, none for no slack arc
	nodes     []node
	next      []int32 // by node: the one after it in preorder, apart because shifting potentials reads nothing else
	prev      []int32 // by node: the one before it
	pi        []int64 // by node: potential, up to a constant
	excess    []int64 // by node: what must leave over tree arcs
	root      int32   // the last node, not one of the problem
	at, block int     // where the next search for an entering arc begins, and how many slots it reads
	pivots    int64

	first, sibling []int32 // for rethread and loadNodes
	sides          []side  // for loadNodes
	state          []uint8 // for order
	flow, through  []int64 // for solution, by slot and by node of the problem
}

// NewSolver returns a solver for p, which may be edited between the calls of Solve.
func NewSolver(p *Problem) *Solver { return &Solver{problem: p, rule: blockSearch} }

// Reset forgets the basis: the next Solve is cold.
func (s *Solver) Reset() { s.warm, s.loaded, s.at = false, false, 0 }

// Solve returns a flow of least cost. The errors are ErrInfeasible, ErrUnbounded, ErrOverflow, ErrMalformed and
// ErrLimit.
func (s *Solver) Solve() (*Solution, error) {
	sol := &Solution{}
	if err := s.SolveInto(sol); err != nil {
		return nil, err
	}
	return sol, nil
}

// SolveInto is Solve with the memory of an earlier solution, which it replaces; after an error sol is of no use.
func (s *Solver) SolveInto(sol *Solution) error {
	if s.problem.err != nil {
		return s.problem.err
	}
	s.pivots = 0
	warm := s.warm || s.loaded
	err := s.solve(sol)
	if warm && errors.Is(err, ErrOverflow) { // perhaps only on the way from the old basis
		s.Reset()
		err = s.solve(sol)
	}
	return err
}

func (s *Solver) solve(sol *Solution) error {
	warm := s.warm || s.loaded
	if !s.recost() {
		if err := s.load(); err != nil {
			s.Reset()
			return err
		}
	}
	s.potentials()
	s.block = max(minBlock, int(math.Sqrt(float64(len(s.arcs)))))
	if warm {
		s.block *= warmBlocks
	}
	err := s.simplex()
	switch {
	case errors.Is(err, ErrUnbounded) && s.artificialFlow():
		if e := s.feasible(); e != nil {
			err = e
		}
	case err == nil && s.artificialFlow():
		err = s.infeasible()
	case err == nil:
		err = s.endlessLoop()
	}
	if err != nil {
		return err
	}
	return s.solution(sol)
}

// artificialFlow tells whether an artificial arc carries anything: the supplies and bounds are not all met.
func (s *Solver) artificialFlow() bool {
	for v := range s.nodes[:s.root] {
		if s.artificial(int32(v)) != 0 {
			return true
		}
	}
	return false
}

// artificial returns the units that node v sends to the root (> 0) or takes from there (< 0) over an artificial arc.
func (s *Solver) artificial(v int32) int64 {
	switch n := &s.nodes[v]; n.arc {
	case artUp:
		return n.down
	case artDown:
		return -n.up
	}
	return 0
}

// feasible looks for any flow, for a problem whose cost was found to fall without end before one was known.
func (s *Solver) feasible() error {
	for i := range s.arcs {
		s.arcs[i].cost = 0
	}
	s.shape-- // the costs are lost: load again next time
	s.potentials()
	if err := s.simplex(); err != nil {
		return err
	}
	if s.artificialFlow() {
		return s.infeasible()
	}
	return nil
}

// endlessLoop returns an error if there is a loop on which the cost falls without end.
func (s *Solver) endlessLoop() error {
	for _, id := range s.loops {
		if s.slotCost(id) < 0 && s.problem.arcs[id].upper == Inf {
			return &UnboundedError{Cycle: s.path(id)}
		}
	}
	return nil
}

// solution reads flow and potentials off the basis. O(nodes + arcs).
func (s *Solver) solution(sol *Solution) error {
	p := s.problem
	sol.Pivots, sol.Partial, sol.Sent, sol.penalty = s.pivots, s.partial, s.supply, s.penalty
	sol.flow = append(sol.flow[:0], s.lower...)
	sol.potential = zeros(sol.potential, len(p.supply))
	sol.unmet = sol.unmet[:0]
	if s.partial {
		sol.unmet = zeros(sol.unmet, len(p.supply))
	}
	s.readPotentials(sol)

	// What goes through a node counts on the arc that a fan or funnel left out.
	through := zeros(s.through, len(p.supply))
	s.through = through
	cost, fits := s.fixed, true
	carry := func(id ArcID, units, price int64, bent bool) {
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
	return nil
}

// readPotentials takes them off the tree, the root being 0, and adds the fans and funnels.
func (s *Solver) readPotentials(sol *Solution) {
	zero := s.pi[s.root]
	for v, owner := range s.ownerOf {
		sol.potential[owner] = s.pi[v] - zero
	}
	for i := range s.joined {
		j := &s.joined[i]
		sol.potential[j.v] = s.pi[j.end] - zero + j.sign*s.offset[j.v]
	}
}

// slotFlow returns what each slot carries above its lower bound.
func (s *Solver) slotFlow() []int64 {
	flow := resize(s.flow, len(s.arcs))
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
	s.flow = flow
	return flow
}

// put adds units, none negative, to a flow, and tells whether the sum fits into 64 bits.
func put(flow *int64, units int64) bool {
	before := *flow
	*flow += units
	return *flow >= before
}
