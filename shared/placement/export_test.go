package placement

// Relaxed returns, for a component that the plan leaves without a place, the problem with all changes of its relaxation
// and the problems with one change left out; ok is false if it has no verified relaxation.
func Relaxed(p Problem, plan Plan, component int) (all Problem, short []Problem, ok bool) {
	m, err := newModel(&p, indexNodes(p.Nodes))
	if err != nil {
		return Problem{}, nil, false
	}
	at := m.places(plan)
	s := m.restore(at, m.vias(plan, at))
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
			q.Channels = append([]Channel(nil), p.Channels...)
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
	m := modelOf(&p)
	return m.DualBound(perCluster, placed, each) - m.baseline()
}

// Branched runs branch and bound alone on a first solution, and returns objective and bound in the terms of plans; ok
// is false if it does not apply.
func Branched(p Problem, budget int64) (objective, bound float64, exact, ok bool) {
	m := modelOf(&p)
	sol, ok := m.BranchAlone(budget)
	return sol.Value - m.baseline(), sol.Bound - m.baseline(), sol.Exact, ok
}

func modelOf(p *Problem) *model {
	m, err := newModel(p, indexNodes(p.Nodes))
	if err != nil {
		panic(err)
	}
	return m
}

// Key returns the text by which components count as equal, if they ask the same of the group's settings.
func Key(c *Component) string {
	return string(memory{}.key(append(cpu{}.key(append(setKey(nil, c), ' '), c), ' '), c))
}

// Constraints returns the rules of all constraints.
func Constraints() []Rule {
	var out []Rule
	for _, k := range constraints {
		out = append(out, k.rule())
	}
	for _, k := range peerConstraints {
		out = append(out, k.rule())
	}
	return out
}
