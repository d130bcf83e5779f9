package solver

import (
	"cmp"
	"math"
	"slices"
)

// Solution is the result of a search; staying home earns the move cost.
type Solution struct {
	At          []int32 // node of each component, -1 none
	Via         []int32 // route of each channel, see NoRoute
	Placed      int
	Value       float64
	PlacedBound int     // no solution places more
	Bound       float64 // no solution that places as many is worth more
	Exact       bool    // no solution is better
	// Orchestrator is the one that all components share, or -1 if nothing demanded that.
	Orchestrator int32
	Work         int64
	Prices       []Price
	capacity     map[dimAt]float64 // for the next problem
}

// better compares by placed, then by value; differences within the rounding error do not count.
func better(placed int, value float64, thanPlaced int, thanValue float64) bool {
	if placed != thanPlaced {
		return placed > thanPlaced
	}
	return value > thanValue+slack(thanValue)
}

// slack is the expected rounding error in a sum of about v points.
func slack(v float64) float64 { return 1e-9 * max(1, math.Abs(v)) }

// solve finds a placement for the whole problem: once, or once for each orchestrator when all must share one.
func (m *Model) solve() Solution {
	budget := m.Budget
	if !m.OneOrchestrator || m.Orchestrators <= 1 {
		sol := m.solveWithin(-1, budget)
		if m.Orchestrators == 1 {
			sol.Orchestrator = 0
		}
		sol.Work += m.buffer.work
		return sol
	}
	var out Solution
	exact, placedBound, bound, work := true, 0, 0.0, int64(0)
	tried := m.likeliest()
	if left := len(tried) - maxOrchestrators; left > 0 { // bounds without the rule are also valid for the rest
		tried = tried[:maxOrchestrators]
		s := m.newState(-1, budget/4)
		exact, placedBound, bound = false, s.placedBound(), s.looseBound()
		work += s.work
	}
	for i, o := range tried {
		sol := m.solveWithin(o, budget/int64(len(tried)))
		work += sol.Work
		exact = exact && sol.Exact
		placedBound, bound = max(placedBound, sol.PlacedBound), max(bound, sol.Bound)
		if i == 0 || better(sol.Placed, sol.Value, out.Placed, out.Value) {
			out = sol
		}
	}
	out.Work = work + m.buffer.work
	out.Exact, out.PlacedBound, out.Bound = exact, placedBound, bound
	if out.Placed == placedBound && bound <= out.Value+slack(out.Value) {
		out.Exact = true
	}
	if out.Exact {
		out.PlacedBound, out.Bound = out.Placed, out.Value
	}
	return out
}

// maxOrchestrators is how many types are tried when all components must share one; there are three in practice.
const maxOrchestrators = 16

// likeliest orders the orchestrators by how many components have a candidate there, ties by name.
func (m *Model) likeliest() []int32 {
	members := make([]int, len(m.Classes))
	for i := range m.Components {
		members[m.Components[i].Class]++
	}
	able, order := make([]int, m.Orchestrators), make([]int32, m.Orchestrators)
	for o := range m.Orchestrators {
		order[o] = int32(o)
		for i := range m.Classes {
			if m.Classes[i].inOrch[o] > 0 {
				able[o] += members[i]
			}
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(able[b], able[a]) })
	return order
}

// solveWithin runs the stages: greedy starts, the Lagrangian bound with the starts that it suggests, local search, and
// branch and bound when the problem is small.
func (m *Model) solveWithin(orch int32, budget int64) Solution {
	// Both exact searches rule places out by Fits, which is no proof where channels need routes.
	split := len(m.Components)*len(m.Nodes) <= maxBranched && len(m.Channels) == 0
	s := m.newState(orch, budget)
	if split {
		s.budget = budget * 5 / 8
	}
	if sol, ok := m.last.slots.solve(s); ok {
		return sol
	}
	sol := Solution{Orchestrator: orch, PlacedBound: s.placedBound(), Bound: math.Inf(1)}
	part := budget
	if m.settled() {
		part = min(budget/settledPart, max(leastSettled, eachSettled*int64(len(m.Components)*len(m.Nodes))))
		s.budget = part
	}
	s.starts(&sol)
	s.lagrangian(&sol, part*3/8)
	s.resetTo(&sol)
	if !sol.proven() {
		s.improve()
		sol.improveTo(s)
	}
	s.budget = budget
	s.withChannels(&sol, part)
	sol.Exact = sol.proven()
	if !sol.Exact && s.small() && len(m.Channels) == 0 {
		s.budget = budget
		sol.Exact = s.exact(&sol)
	}
	if !sol.Exact && split && sol.Placed == m.placeable(orch) {
		s.budget = budget
		sol.Exact = s.branch(&sol)
	}
	if sol.Exact {
		sol.PlacedBound, sol.Bound = sol.Placed, sol.Value
	}
	sol.Work = s.work
	return sol
}

// Work where a network's channels run already: only what cannot stay is looked at anew.
const (
	settledPart  = 16      // of the whole budget, at most this part
	eachSettled  = 100     // and for each pair of component and node
	leastSettled = 100_000 // but as much where these are few
)

// settled reports whether most components of a problem with channels may stay where they are: a link that degrades does not cost a
// whole plan.
func (m *Model) settled() bool {
	stay := 0
	for i := range m.Components {
		if len(m.Components[i].Home) > 0 {
			stay++
		}
	}
	return len(m.Channels) > 0 && 2*stay > len(m.Components)
}

// proven reports whether the bounds leave nothing to gain.
func (sol *Solution) proven() bool {
	return sol.Placed == sol.PlacedBound && sol.Bound <= sol.Value+slack(sol.Value)
}

// take stores the state as the solution if it is better.
func (sol *Solution) improveTo(s *State) bool {
	if s.unrouted > 0 {
		return false
	}
	placed, value := s.total()
	if sol.At != nil && !better(placed, value, sol.Placed, sol.Value) {
		return false
	}
	sol.At, sol.Placed, sol.Value = append(sol.At[:0], s.At...), placed, value
	sol.Via = append(sol.Via[:0], s.Via...)
	return true
}
