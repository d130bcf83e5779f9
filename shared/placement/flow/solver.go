package flow

import (
	"errors"
	"math"
)

// minBlock is the minimum number of slots that the search for an entering arc reads at once.
const minBlock = 20

// Solver solves one Problem, and solves it again faster after edits: it keeps the last basis (a spanning tree, and for
// each other arc the bound it is at) and starts from its remains. It is not safe for concurrent use.
type Solver struct {
	// Partial asks for as much of the supply as can be sent, at least cost, instead of all of it. Supplies need not
	// equal demands then; Solution.Unmet has the rest.
	Partial bool
	// PivotLimit ends a Solve with ErrLimit after so many pivots; 0 is no limit. The next Solve continues from there.
	PivotLimit int64

	problem *Problem
	rule    func(*Solver) int32 // finds the entering slot, -1 for none

	// The basis in the problem's own numbering, written when the network below is about to be rebuilt.
	warm    bool
	parent  []int32 // by node of the problem: its parent, -1 for the root and for a node that is not in the tree
	tree    []ArcID // by node of the problem: the tree arc, byRoot or bySlack
	atUpper []bool  // by ArcID
	full    []bool  // by node of the problem: its slack arc is at the upper bound

	// The network that is solved: see load.go.
	loaded   bool
	shape    uint64 // of the problem when it was loaded
	recosted int    // entries of problem.recosted that were handled
	partial  bool
	penalty  int64   // cost of a unit not sent in the partial mode
	bigM     int64   // cost of a unit on an artificial arc
	most     uint64  // largest absolute cost for which penalty and bigM are valid
	core     []int32 // by node of the problem: its number in the network, or idle, fan, funnel
	ownerOf  []int32 // the inverse
	via      []ArcID // by node of the problem: the arc left out of a fan or funnel
	joined   []joint // the fans and funnels, each after the one beyond
	end      []int32 // by node of the problem: the number of the node where a fan begins or a funnel ends
	offset   []int64 // by node of the problem: cost of the path between the two
	slotOf   []int32 // by ArcID: its slot, or none
	lower    []int64 // by ArcID
	fixed    wide    // cost of the lower bounds
	fixes    bool    // some lower bound is not 0
	supply   int64   // all of it
	loops    []ArcID // arcs that begin and end at the same node here; each is full if that pays, else empty

	arcs      []slot
	caps      []int64 // by slot: capacity above the lower bound
	ids       []ArcID // by slot: the arc, or slackID of its node
	turned    []bool  // by slot: it is stored backwards
	bent      []bool  // by slot: it goes over a fan or funnel
	slackSlot []int32 // by node, none for no slack arc
	nodes     []node
	next      []int32 // by node: the one after it in preorder, apart because shifting potentials reads nothing else
	prev      []int32 // by node: the one before it
	pi        []int64 // by node: potential, up to a constant
	excess    []int64 // by node: what must leave over tree arcs
	top       int32   // the node that the last pivot attached to another
	listed    bool
	part      []int32 // nodes of the subtree of top, if listed
	place     []int32 // by node in part: its index there
	root      int32   // the last node, not one of the problem
	at, block int     // where the next search for an entering arc begins, and how many slots it reads
	pivots    int64

	first, sibling []int32 // for rethread and loadNodes
	sides          []side  // for loadNodes
	state          []uint8 // for order
	through        []int64 // for writing a solution, by node of the problem
	bends          []int32 // for recost
	tilt           []int64 // by node: added by recost to its potential and to those below it; all 0 between solves
	bearing        bearing
	ledger         ledger
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

// SolveInto is Solve with the memory of an earlier solution, which it replaces; after an error sol is invalid. If sol
// is the last solution that the solver wrote and only costs were edited since, it writes only the differences.
func (s *Solver) SolveInto(sol *Solution) error {
	if s.problem.err != nil {
		return s.problem.err
	}
	s.pivots = 0
	warm := s.warm || s.loaded
	err := s.solve(sol)
	if warm && errors.Is(err, ErrOverflow) { // perhaps it only occurs on the way from the old basis
		s.Reset()
		err = s.solve(sol)
	}
	return err
}

func (s *Solver) solve(sol *Solution) error {
	s.ledger.open(sol)
	if s.recost() {
		s.tiltPotentials()
	} else {
		s.ledger.close()
		if err := s.load(); err != nil {
			s.Reset()
			return err
		}
		s.potentials()
	}
	s.block = max(minBlock, int(math.Sqrt(float64(len(s.arcs)))))
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
		s.ledger.close()
		return err
	}
	return s.write(sol)
}

// artificialFlow reports whether an artificial arc carries flow: then not all supplies and bounds are met.
func (s *Solver) artificialFlow() bool {
	for v := range s.nodes[:s.root] {
		if s.artificial(int32(v)) != 0 {
			return true
		}
	}
	return false
}

// artificial returns the units that node v sends to the root (> 0) or gets from there (< 0) over an artificial arc.
func (s *Solver) artificial(v int32) int64 {
	switch n := &s.nodes[v]; n.arc {
	case artUp:
		return n.down
	case artDown:
		return -n.up
	}
	return 0
}

// feasible looks for any flow. It is used if the cost can fall without end before any flow is known.
func (s *Solver) feasible() error {
	for i := range s.arcs {
		s.arcs[i].cost = 0
	}
	s.shape-- // the costs were overwritten: load again next time
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
