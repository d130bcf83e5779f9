package solver

import (
	"fmt"
	"slices"
	"strings"
)

// maxExact is the number of components times nodes up to which branch and bound is tried.
const maxExact = 400

func (s *State) small() bool {
	return len(s.m.Components)*len(s.m.Nodes) <= maxExact && len(s.m.Components) <= 200
}

// exact searches for a better placement than sol by branch and bound, depth first, and reports whether the search was
// complete within the budget. sol gets the best result in either case.
//
// At every step each open component has a value for each node on which it still fits: its points, its affinity with all
// placed partners, and half of its affinity with open ones at the largest factor they can still reach. The sum of the
// best of these is a bound for all placements below.
func (s *State) exact(sol *Solution) bool {
	s.clear()
	e := &depthFirst{s: s, sol: sol, equal: s.m.equalNodes()}
	first := make([][]float64, len(s.m.Components))
	e.reach = make([][][]float64, len(s.m.Components))
	for c := range first {
		cl := &s.m.Classes[s.m.Components[c].Class]
		first[c] = make([]float64, cl.count)
		e.reach[c] = make([][]float64, len(s.m.Edges[c]))
		for i := range e.reach[c] {
			e.reach[c][i] = make([]float64, cl.count)
		}
		for k, n := range cl.ranked() {
			v := s.m.points(int32(c), n)
			for i := range s.m.Edges[c] {
				ed := &s.m.Edges[c][i]
				r := s.m.reach(int32(c), ed, n)
				e.reach[c][i][k] = r
				v += ed.Weight / 2 * r
			}
			first[c][k] = v
		}
	}
	e.values = [][][]float64{first}
	e.closed = make([]bool, len(first))
	e.descend(0, 0, 0)
	s.resetTo(sol)
	return !e.stopped
}

type depthFirst struct {
	s       *State
	sol     *Solution
	equal   []int32       // the first of several equal nodes, as long as nothing is placed on them
	reach   [][][]float64 // [component][edge][candidate]
	values  [][][]float64 // [depth][component][candidate]
	closed  []bool        // placed, or decided to be unplaced
	stopped bool
}

// option is one node for the component to branch on.
type option struct {
	node  int32
	value float64
}

// hopeless reports that nothing with these bounds is better than the best known plan.
func (e *depthFirst) hopeless(placed int, value float64) bool {
	return !better(placed, value, e.sol.Placed, e.sol.Value)
}

// descend decides about one more component; placed and value are those of the components decided so far.
func (e *depthFirst) descend(depth, placed int, value float64) {
	s := e.s
	if e.stopped = e.stopped || s.spent(); e.stopped {
		return
	}
	pick, regret, pickBest := int32(-1), -1.0, 0.0
	placedBound, bound := placed, value
	for c := range e.closed {
		if e.closed[c] {
			continue
		}
		best, second, options := e.bestValues(depth, int32(c))
		if options == 0 {
			continue // no place below this step
		}
		placedBound++
		bound += best
		r := best - second
		if options == 1 {
			r = 1e18
		}
		if r > regret {
			pick, regret, pickBest = int32(c), r, best
		}
	}
	if e.hopeless(placedBound, bound) {
		return
	}
	if pick < 0 { // better than the best so far, and nothing left to decide
		e.sol.At, e.sol.Placed, e.sol.Value = slices.Clone(s.At), placed, value
		return
	}
	e.closed[pick] = true
	defer func() { e.closed[pick] = false }()
	for _, o := range e.options(depth, pick) {
		if e.hopeless(placedBound, bound-pickBest+o.value) {
			break
		}
		gain := s.Value(pick, o.node)
		s.Put(pick, o.node)
		e.updateValues(depth, pick, o.node)
		e.descend(depth+1, placed+1, value+gain)
		s.Remove(pick)
		if e.stopped {
			return
		}
	}
	if !e.hopeless(placedBound-1, bound-pickBest) {
		e.updateValues(depth, pick, -1)
		e.descend(depth+1, placed, value)
	}
}

// bestValues returns the best and second best value of an open component over the nodes on which it still fits, and their
// number.
func (e *depthFirst) bestValues(depth int, c int32) (best, second float64, options int) {
	cl := &e.s.m.Classes[e.s.m.Components[c].Class]
	for k, n := range cl.ranked() {
		v := e.values[depth][c][k]
		if options >= 2 && v <= second {
			e.s.work++
			continue
		}
		if !e.s.Fits(c, n) {
			continue
		}
		options++
		switch {
		case options == 1 || v > best:
			best, second = v, best
		case options == 2 || v > second:
			second = v
		}
	}
	return best, second, options
}

// options returns the nodes a component fits on by falling value, one of each set of untouched twins.
func (e *depthFirst) options(depth int, c int32) []option {
	cl := &e.s.m.Classes[e.s.m.Components[c].Class]
	var out []option
	for k, n := range cl.ranked() {
		if e.s.Fits(c, n) {
			out = append(out, option{n, e.values[depth][c][k]})
		}
	}
	slices.SortFunc(out, func(a, b option) int {
		switch {
		case a.value > b.value:
			return -1
		case a.value < b.value:
			return 1
		default:
			return int(a.node - b.node)
		}
	})
	seen := make(map[int32]bool)
	return slices.DeleteFunc(out, func(o option) bool {
		if e.s.top[o.node] != 0 {
			return false
		}
		t := e.equal[o.node]
		twice := seen[t]
		seen[t] = true
		return twice
	})
}

// updateValues writes the values one step deeper, now that component c is at node n, or unplaced if n is negative.
func (e *depthFirst) updateValues(depth int, c, n int32) {
	m := e.s.m
	if len(e.values) == depth+1 {
		next := make([][]float64, len(e.closed))
		for d := range next {
			next[d] = make([]float64, len(e.values[depth][d]))
		}
		e.values = append(e.values, next)
	}
	for d := range e.closed {
		if !e.closed[d] {
			copy(e.values[depth+1][d], e.values[depth][d])
			e.s.work += int64(len(e.values[depth][d])) / 8
		}
	}
	for j := range m.Edges[c] {
		ed := &m.Edges[c][j]
		d, i := ed.To, ed.Back
		if e.closed[d] {
			continue
		}
		row := e.values[depth+1][d]
		for k, at := range m.Classes[m.Components[d].Class].ranked() {
			row[k] -= ed.Weight / 2 * e.reach[d][i][k]
			if n >= 0 {
				row[k] += ed.Weight * m.Closeness(ed, at, n)
			}
		}
		e.s.work += int64(len(row))
	}
}

// equalNodes returns for each node the first one that is equal in everything that matters for placement: cluster, free
// amounts, the points of every class, spread domains other than the node itself. A node that is the current place of a
// component has no twin.
func (m *Model) equalNodes() []int32 {
	home := make([]bool, len(m.Nodes))
	for c := range m.Components {
		for _, n := range m.Components[c].Home {
			home[n] = true
		}
	}
	first := make(map[string]int32, len(m.Nodes))
	out := make([]int32, len(m.Nodes))
	for n := range m.Nodes {
		out[n] = int32(n)
		if home[n] {
			continue
		}
		var b strings.Builder
		fmt.Fprint(&b, m.Nodes[n].Cluster, m.Free[n*m.Dims:(n+1)*m.Dims])
		for i := range m.Classes {
			cl := &m.Classes[i]
			if cl.May(int32(n)) {
				fmt.Fprint(&b, " ", cl.Points[n])
			} else {
				b.WriteString(" -")
			}
		}
		for i := range m.Spreads {
			if !m.Spreads[i].ByNode {
				fmt.Fprint(&b, " ", m.Spreads[i].Domain[n])
			}
		}
		if t, ok := first[b.String()]; ok {
			out[n] = t
		} else {
			first[b.String()] = int32(n)
		}
	}
	return out
}
