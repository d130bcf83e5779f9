package placement

import (
	"cmp"
	"math"
	"slices"
)

// solution is the result of a search, in the solver's terms: staying home earns the move cost.
type solution struct {
	at          []int32
	placed      int
	value       float64
	placedBound int
	bound       float64
	exact       bool
	orch        int32
	work        int64
	prices      []Price
	capacity    map[scarce]float64 // for the next problem
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
func (m *model) solve() solution {
	budget := m.p.Budget
	if budget == 0 {
		budget = min(MaxBudget, DefaultBudget+BudgetPerComponent*int64(len(m.comps))+BudgetPerNode*int64(len(m.nodes)))
	}
	if len(m.p.Groups) > 0 || !m.p.OneOrchestrator || len(m.orchs) <= 1 {
		sol := m.solveWithin(-1, budget)
		if len(m.orchs) == 1 {
			sol.orch = 0
		}
		sol.work += m.work + m.room.work
		return sol
	}
	var out solution
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
		work += sol.work
		exact = exact && sol.exact
		placedBound, bound = max(placedBound, sol.placedBound), max(bound, sol.bound)
		if i == 0 || better(sol.placed, sol.value, out.placed, out.value) {
			out = sol
		}
	}
	out.work = work + m.work + m.room.work
	out.exact, out.placedBound, out.bound = exact, placedBound, bound
	if out.placed == placedBound && bound <= out.value+slack(out.value) {
		out.exact = true
	}
	if out.exact {
		out.placedBound, out.bound = out.placed, out.value
	}
	return out
}

// maxOrchestrators is how many types are tried when all components must share one; there are three in practice.
const maxOrchestrators = 16

// likeliest orders the orchestrators by how many components have a candidate there, ties by name.
func (m *model) likeliest() []int32 {
	members := make([]int, len(m.classes))
	for i := range m.comps {
		members[m.comps[i].class]++
	}
	able, order := make([]int, len(m.orchs)), make([]int32, len(m.orchs))
	for o := range m.orchs {
		order[o] = int32(o)
		for i := range m.classes {
			if m.classes[i].inOrch[o] > 0 {
				able[o] += members[i]
			}
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(able[b], able[a]) })
	return order
}

// solveWithin runs the stages: greedy starts, the Lagrangian bound with the starts that it suggests, local search, and
// branch and bound when the problem is small.
func (m *model) solveWithin(orch int32, budget int64) solution {
	split := len(m.comps)*len(m.nodes) <= maxBranched
	s := m.newState(orch, budget)
	if split {
		s.budget = budget * 5 / 8
	}
	if sol, ok := m.last.unit.solve(s); ok {
		return sol
	}
	sol := solution{orch: orch, placedBound: s.placedBound(), bound: math.Inf(1)}
	s.starts(&sol)
	s.lagrangian(&sol, budget*3/8)
	s.reset(sol.at)
	if !sol.proven() {
		s.improve()
		sol.take(s)
	}
	sol.exact = sol.proven()
	if !sol.exact && s.small() {
		s.budget = budget
		sol.exact = s.exact(&sol)
	}
	if !sol.exact && split && sol.placed == m.placeable(orch) {
		s.budget = budget
		sol.exact = s.branch(&sol)
	}
	if sol.exact {
		sol.placedBound, sol.bound = sol.placed, sol.value
	}
	sol.work = s.work
	return sol
}

// proven reports whether the bounds leave nothing to gain.
func (sol *solution) proven() bool {
	return sol.placed == sol.placedBound && sol.bound <= sol.value+slack(sol.value)
}

// take stores the state as the solution if it is better.
func (sol *solution) take(s *state) bool {
	placed, value := s.total()
	if sol.at != nil && !better(placed, value, sol.placed, sol.value) {
		return false
	}
	sol.at, sol.placed, sol.value = append(sol.at[:0], s.at...), placed, value
	return true
}
