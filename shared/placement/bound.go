package placement

import (
	"math"
	"slices"
)

// lagrangian finds the bound of the solution, and better solutions near those of the relaxed problem.
func (s *state) lagrangian(sol *solution, budget int64) {
	whole := s.budget
	s.budget = min(whole, s.work+budget)
	defer func() { s.budget = whole }()
	sol.bound = s.looseBound()
	if sol.proven() || s.spent() {
		return
	}
	d := s.m.newDual(s.orch, sol.at, shortlist, false)
	if d == nil {
		return
	}
	d.must = sol.placed == s.m.placeable(s.orch)
	y := d.start()
	d.recall(y)
	x := d.newDescent(y)
	order := s.hardest()
	lowest, spent := math.Inf(1), int64(len(d.node)*len(order)) // bound at the last start, and the work of that start
	try := func() {
		lowest, spent = x.bound, s.work
		s.plant(d, x.best, order)
		sol.take(s)
		spent = d.work + s.work - spent // spend no more on starts than on bounds
	}
	x.run(sol.value, maxRounds, func() bool { return s.work+d.work > s.budget }, func() float64 {
		if x.bound < lowest && d.work >= spent {
			try()
		}
		return sol.value
	})
	try()
	s.work += d.work
	sol.bound = min(sol.bound, s.m.rounded(x.bound+slack(x.bound)))
	sol.prices, sol.capacity = d.priced(x.best), d.capacity(x.best)
}

// shortlist is how many nodes of each cluster, per class, get their own label in the relaxation.
const shortlist = 64

// placeable returns how many components have a candidate.
func (m *model) placeable(orch int32) int {
	able := 0
	for c := range m.comps {
		if cl := &m.classes[m.comps[c].class]; (orch < 0 && cl.count > 0) || (orch >= 0 && cl.inOrch[orch] > 0) {
			able++
		}
	}
	return able
}

// placedBound returns an upper limit of the components that can be placed: those with a candidate, and no more than the
// smallest demands of each kind that fit into the total of the nodes.
func (s *state) placedBound() int {
	m := s.m
	var able []int32
	for c := range m.comps {
		cl := &m.classes[m.comps[c].class]
		if (s.orch < 0 && cl.count > 0) || (s.orch >= 0 && cl.inOrch[s.orch] > 0) {
			able = append(able, int32(c))
		}
	}
	needs := make([][]int64, len(m.dims))
	for _, c := range able {
		for _, a := range m.classes[m.comps[c].class].demand {
			needs[a.dim] = append(needs[a.dim], a.amount)
		}
	}
	most := len(able)
	for d, need := range needs {
		var whole, sum int64
		for k, o := range m.orchOf {
			if s.orch >= 0 && o != s.orch {
				continue
			}
			for n := m.clusters[k]; n < m.clusters[k+1]; n++ {
				whole = addUp(whole, m.free[int(n)*len(m.dims)+d])
			}
		}
		slices.Sort(need)
		for i, v := range need {
			if sum = addUp(sum, v); sum > whole {
				most = min(most, len(able)-len(need)+i)
				break
			}
		}
	}
	return most
}

// addUp adds without overflow; the largest number stands for itself and everything above.
func addUp(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// looseBound returns a value that no placement can exceed: every component at its best candidate, with half of each
// affinity counted at both ends with the largest factor that the partner's candidates allow.
//
//	bound = sum over c of max over n of (points(c,n) + 1/2 sum over partners d of w(c,d) * reach(c,d,n))
func (s *state) looseBound() float64 {
	m := s.m
	var sum float64
	for c := range m.comps {
		c := int32(c)
		cl := &m.classes[m.comps[c].class]
		var all float64 // half of every weight: the most that affinities can add
		for _, e := range m.edges[c] {
			all += e.weight / 2
		}
		best := 0.0
		look := func(n int32) {
			if s.orch >= 0 && m.nodes[n].orch != s.orch {
				return
			}
			v := m.points(c, n)
			if s.spent() {
				v += all
			} else {
				for i := range m.edges[c] {
					e := &m.edges[c][i]
					v += e.weight / 2 * m.reach(c, e, n)
				}
				s.work += int64(1 + len(m.edges[c]))
			}
			best = max(best, v)
		}
		for _, n := range m.comps[c].home {
			if s.spent() {
				best = max(best, cl.most+m.move+all)
				break
			}
			look(n)
		}
		for k := range cl.count {
			n := cl.candidate(k)
			if cl.points[n]+all <= best {
				break
			}
			look(n)
		}
		sum += best
	}
	return sum
}
