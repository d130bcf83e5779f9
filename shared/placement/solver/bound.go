package solver

import (
	"math"
	"slices"
)

// lagrangian finds the bound of the solution, and better solutions near those of the relaxed problem.
func (s *State) lagrangian(sol *Solution, budget int64) {
	whole := s.budget
	s.budget = min(whole, s.work+budget)
	defer func() { s.budget = whole }()
	sol.Bound = s.looseBound()
	if sol.proven() || s.spent() {
		return
	}
	d := s.m.newDual(s.orch, sol.At, shortlist, false)
	if d == nil {
		return
	}
	d.must = sol.Placed == s.m.placeable(s.orch)
	y := d.start()
	d.recall(y)
	x := d.newDescent(y)
	order := s.hardest()
	lowest, spent := math.Inf(1), int64(len(d.node)*len(order)) // bound at the last start, and the work of that start
	try := func() {
		lowest, spent = x.bound, s.work
		s.buildFromPrices(d, x.best, order)
		sol.improveTo(s)
		spent = d.work + s.work - spent // spend no more on starts than on bounds
	}
	x.run(sol.Value, maxRounds, func() bool { return s.work+d.work > s.budget }, func() float64 {
		if x.bound < lowest && d.work >= spent {
			try()
		}
		return sol.Value
	})
	try()
	s.work += d.work
	sol.Bound = min(sol.Bound, s.m.rounded(x.bound+slack(x.bound)))
	sol.Prices, sol.capacity = d.scarce(x.best), d.capacity(x.best)
}

// shortlist is how many nodes of each cluster, per class, get their own label in the relaxation.
const shortlist = 64

// placeable returns how many components have a candidate.
func (m *Model) placeable(orch int32) int {
	able := 0
	for c := range m.Components {
		if cl := &m.Classes[m.Components[c].Class]; (orch < 0 && cl.count > 0) || (orch >= 0 && cl.inOrch[orch] > 0) {
			able++
		}
	}
	return able
}

// placedBound returns an upper limit of the components that can be placed: those with a candidate, and no more than the
// smallest demands of each kind that fit into the total of the nodes.
func (s *State) placedBound() int {
	m := s.m
	var able []int32
	for c := range m.Components {
		cl := &m.Classes[m.Components[c].Class]
		if (s.orch < 0 && cl.count > 0) || (s.orch >= 0 && cl.inOrch[s.orch] > 0) {
			able = append(able, int32(c))
		}
	}
	needs := make([][]int64, m.Dims)
	for _, c := range able {
		for _, a := range m.Classes[m.Components[c].Class].Demand {
			needs[a.Dim] = append(needs[a.Dim], a.Amount)
		}
	}
	most := len(able)
	for d, need := range needs {
		var whole, sum int64
		for k, o := range m.OrchestratorOf {
			if s.orch >= 0 && o != s.orch {
				continue
			}
			for n := m.Clusters[k]; n < m.Clusters[k+1]; n++ {
				whole = AddUp(whole, m.Free[int(n)*m.Dims+d])
			}
		}
		slices.Sort(need)
		for i, v := range need {
			if sum = AddUp(sum, v); sum > whole {
				most = min(most, len(able)-len(need)+i)
				break
			}
		}
	}
	return most
}

// looseBound returns a value that no placement can exceed: every component at its best candidate, with half of each
// affinity counted at both ends with the largest factor that the partner's candidates allow.
//
//	bound = sum over c of max over n of (points(c,n) + 1/2 sum over partners d of w(c,d) * reach(c,d,n))
func (s *State) looseBound() float64 {
	m := s.m
	var sum float64
	for c := range m.Components {
		c := int32(c)
		cl := &m.Classes[m.Components[c].Class]
		var all float64 // half of every weight: the most that affinities can add
		for _, e := range m.Edges[c] {
			all += e.Weight / 2
		}
		best := 0.0
		look := func(n int32) {
			if s.orch >= 0 && m.Nodes[n].Orchestrator != s.orch {
				return
			}
			v := m.points(c, n)
			if s.spent() {
				v += all
			} else {
				for i := range m.Edges[c] {
					e := &m.Edges[c][i]
					v += e.Weight / 2 * m.reach(c, e, n)
				}
				s.work += int64(1 + len(m.Edges[c]))
			}
			best = max(best, v)
		}
		for _, n := range m.Components[c].Home {
			if s.spent() {
				best = max(best, cl.most+m.MoveCost+all)
				break
			}
			look(n)
		}
		for k := range cl.count {
			n := cl.Candidate(k)
			if cl.Points[n]+all <= best {
				break
			}
			look(n)
		}
		sum += best
	}
	return sum
}
