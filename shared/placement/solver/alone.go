package solver

import "math"

// DualBound runs the Lagrangian relaxation alone, with that many nodes of each cluster as separate labels, and returns
// its bound for solutions that place as many components as placed. Tests compare it with the best of all solutions.
func (m *Model) DualBound(perCluster, placed int, each bool) float64 {
	d := m.newDual(-1, nil, perCluster, each)
	d.must = placed == m.placeable(-1)
	x := d.newDescent(d.start())
	x.run(0, 50, func() bool { return false }, func() float64 { return 0 })
	return x.bound
}

// BranchAlone runs branch and bound on a first solution; ok is false if it does not apply. Tests compare it with the
// best of all solutions.
func (m *Model) BranchAlone(budget int64) (sol Solution, ok bool) {
	m.last = &Memory{}
	s := m.newState(-1, math.MaxInt64)
	sol = Solution{Orchestrator: -1, PlacedBound: s.placedBound(), Bound: math.Inf(1)}
	s.starts(&sol)
	if sol.Placed != m.placeable(-1) {
		return sol, false
	}
	s.budget = s.work + budget
	sol.Exact = s.branch(&sol)
	return sol, true
}
