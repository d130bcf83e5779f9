package flow

import (
	"fmt"
	"math"
)

// Inf as an upper bound means that the arc has no capacity limit.
const Inf = math.MaxInt64

// maxNodes and maxArcs let every index fit into an int32, with room for the root, the slack arcs and the marks.
const (
	maxNodes = 1 << 29
	maxArcs  = 1 << 30
)

// ArcID names an arc of one Problem. The id of a removed arc is given to a later one.
type ArcID int32

// NoArc is the id of an arc that was refused.
const NoArc ArcID = -1

// arc is what a caller said about one arc; from is negative once it is removed.
type arc struct {
	from, to           int32
	lower, upper, cost int64
}

// width is the capacity above the lower bound: noLimit for no upper bound, negative if the difference overflows.
func (a *arc) width() int64 {
	if a.upper == Inf {
		return noLimit
	}
	return a.upper - a.lower
}

// Problem is a directed graph with arc bounds and costs per unit, and supplies (positive) or demands (negative) at its
// nodes, which are numbered from 0. Parallel arcs, self loops and negative costs and bounds are permitted.
//
// An invalid call (a node that does not exist, bounds in the wrong order) changes nothing and is remembered: Err and
// each later Solve return the first one. The zero Problem has no nodes and is ready to use.
type Problem struct {
	arcs   []arc
	free   []ArcID
	supply []int64
	err    error

	// What solvers must read again: everything if shape has changed, else the arcs in recosted.
	shape    uint64
	recosted []ArcID
}

// NewProblem returns a problem with the nodes 0 to nodes-1, no arcs and no supplies.
func NewProblem(nodes int) *Problem {
	p := &Problem{}
	if nodes < 0 || nodes > maxNodes {
		p.fail("%d nodes, want 0 to %d", nodes, maxNodes)
		return p
	}
	p.supply = make([]int64, nodes)
	return p
}

// Err returns the first invalid call, which wraps ErrMalformed, or nil.
func (p *Problem) Err() error { return p.err }

// Nodes returns the number of nodes.
func (p *Problem) Nodes() int { return len(p.supply) }

// Arcs returns the number of arcs, removed ones left out.
func (p *Problem) Arcs() int { return len(p.arcs) - len(p.free) }

// MaxArc returns one more than the largest ArcID ever given, for loops and tables.
func (p *Problem) MaxArc() ArcID { return ArcID(len(p.arcs)) }

// AddNode adds a node and returns its number, -1 if there are too many.
func (p *Problem) AddNode(supply int64) int {
	if len(p.supply) >= maxNodes {
		p.fail("more than %d nodes", maxNodes)
		return -1
	}
	p.supply = append(p.supply, supply)
	p.reshape()
	return len(p.supply) - 1
}

// SetSupply sets what the node puts into the network: units > 0 are supply, < 0 demand.
func (p *Problem) SetSupply(node int, units int64) {
	if p.node(node) && p.supply[node] != units {
		p.supply[node] = units
		p.reshape()
	}
}

// Supply returns the node's supply, 0 for a node that does not exist.
func (p *Problem) Supply(node int) int64 {
	if node < 0 || node >= len(p.supply) {
		return 0
	}
	return p.supply[node]
}

// AddArc adds an arc that carries lower to upper units at cost each; upper may be Inf.
func (p *Problem) AddArc(from, to int, lower, upper, cost int64) ArcID {
	if !p.node(from) || !p.node(to) || !p.bounds(lower, upper) {
		return NoArc
	}
	p.reshape()
	a := arc{from: int32(from), to: int32(to), lower: lower, upper: upper, cost: cost}
	if k := len(p.free); k > 0 {
		id := p.free[k-1]
		p.free = p.free[:k-1]
		p.arcs[id] = a
		return id
	}
	if len(p.arcs) >= maxArcs {
		p.fail("more than %d arcs", maxArcs)
		return NoArc
	}
	p.arcs = append(p.arcs, a)
	return ArcID(len(p.arcs) - 1)
}

// RemoveArc takes the arc out; its id may be given to an arc added later.
func (p *Problem) RemoveArc(id ArcID) {
	if p.arc(id) {
		p.arcs[id] = arc{from: -1, to: -1}
		p.free = append(p.free, id)
		p.reshape()
	}
}

// SetCost sets the arc's cost per unit.
func (p *Problem) SetCost(id ArcID, cost int64) {
	if !p.arc(id) || p.arcs[id].cost == cost {
		return
	}
	p.arcs[id].cost = cost
	if len(p.recosted) < len(p.arcs) {
		p.recosted = append(p.recosted, id)
	} else {
		p.reshape()
	}
}

// SetBounds sets the least and the most units the arc carries.
func (p *Problem) SetBounds(id ArcID, lower, upper int64) {
	if !p.arc(id) || !p.bounds(lower, upper) {
		return
	}
	if a := &p.arcs[id]; a.lower != lower || a.upper != upper {
		p.arcs[id].lower, p.arcs[id].upper = lower, upper
		p.reshape()
	}
}

// Arc returns the properties of an arc, and false if it does not exist.
func (p *Problem) Arc(id ArcID) (from, to int, lower, upper, cost int64, ok bool) {
	if id < 0 || int(id) >= len(p.arcs) || p.arcs[id].from < 0 {
		return 0, 0, 0, 0, 0, false
	}
	a := &p.arcs[id]
	return int(a.from), int(a.to), a.lower, a.upper, a.cost, true
}

// reshape makes every solver of the problem read all of it again.
func (p *Problem) reshape() {
	p.shape++
	p.recosted = p.recosted[:0]
}

func (p *Problem) node(v int) bool {
	if v < 0 || v >= len(p.supply) {
		p.fail("node %d, want 0 to %d", v, len(p.supply)-1)
		return false
	}
	return true
}

func (p *Problem) arc(id ArcID) bool {
	if id < 0 || int(id) >= len(p.arcs) || p.arcs[id].from < 0 {
		p.fail("arc %d does not exist", id)
		return false
	}
	return true
}

func (p *Problem) bounds(lower, upper int64) bool {
	if lower > upper || lower == Inf {
		p.fail("bounds %d to %d", lower, upper)
		return false
	}
	return true
}

func (p *Problem) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
	}
}
