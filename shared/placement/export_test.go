package placement

import "math"

// Relaxed returns, for a component that the plan leaves without a place, the problem with all changes of its relaxation
// and the problems with one change left out; ok is false if it has no verified relaxation.
func Relaxed(p Problem, plan Plan, component int) (all Problem, short []Problem, ok bool) {
	m, err := newModel(&p, lineUp(p.Nodes))
	if err != nil {
		return Problem{}, nil, false
	}
	s := m.restore(m.places(plan))
	for c := range m.comps {
		if m.comps[c].index != component {
			continue
		}
		changes, r := m.relaxation(s, int32(c))
		if r == nil || !r.Verified {
			return Problem{}, nil, false
		}
		apply := func(but int) Problem {
			q := p
			q.Components = append([]Component(nil), p.Components...)
			q.Spreads = append([]Spread(nil), p.Spreads...)
			q.Affinities = append([]Affinity(nil), p.Affinities...)
			q.Groups = append([]Group(nil), p.Groups...)
			for i, ch := range changes {
				if i != but {
					ch.apply(&q, component)
				}
			}
			return q
		}
		for i := range changes {
			short = append(short, apply(i))
		}
		return apply(-1), short, true
	}
	return Problem{}, nil, false
}

// DualBound returns the bound of the Lagrangian relaxation alone, in the objective of plans, with that many nodes of
// each cluster as separate labels. It is valid for plans that place as many components as placed.
func DualBound(p Problem, perCluster, placed int, each bool) float64 {
	m, err := newModel(&p, lineUp(p.Nodes))
	if err != nil {
		panic(err)
	}
	d := m.newDual(-1, nil, perCluster, each)
	d.must = placed == m.placeable(-1)
	x := d.newDescent(d.start())
	x.run(0, 50, func() bool { return false }, func() float64 { return 0 })
	return x.bound - m.baseline()
}

// Branched runs branch alone on a first solution, and returns objective and bound in the terms of plans; ok is false if
// branch does not apply.
func Branched(p Problem, budget int64) (objective, bound float64, exact, ok bool) {
	m, err := newModel(&p, lineUp(p.Nodes))
	if err != nil {
		panic(err)
	}
	s := m.newState(-1, math.MaxInt64)
	sol := solution{orch: -1, placedBound: s.placedBound(), bound: math.Inf(1)}
	s.starts(&sol)
	if sol.placed != m.placeable(-1) {
		return 0, 0, false, false
	}
	s.budget = s.work + budget
	exact = s.branch(&sol)
	return sol.value - m.baseline(), sol.bound - m.baseline(), exact, true
}

// Candidates returns the candidates of a class with these points by node (negative for no candidate), as returned by
// candidate up to the k-th, and then by ranked.
func Candidates(points []float64, k int) (first, all []int32) {
	cl := class{points: points, few: math.Inf(1), room: &room{}}
	for _, v := range points {
		if v >= 0 {
			cl.count++
			cl.most, cl.few = max(cl.most, v), min(cl.few, v)
		}
	}
	for i := range min(k, cl.count) {
		first = append(first, cl.candidate(i))
	}
	return first, cl.ranked()
}
