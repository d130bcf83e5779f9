package placement

// Relaxed returns, for a component that the plan leaves without a place, the problem with all changes of its relaxation
// and the problems with one of them left out; ok is false when it has no relaxation that is verified.
func Relaxed(p Problem, plan Plan, component int) (all Problem, short []Problem, ok bool) {
	m, err := newModel(&p)
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
