package placement

import "slices"

// antiAffinity: two components must not share a node.
type antiAffinity struct{}

func (antiAffinity) rule() Rule { return RuleAntiAffinity }

func (antiAffinity) broken(s *state, c, n int32, add func(Rule)) {
	for _, x := range s.m.Components[c].Apart {
		if s.At[x] == n {
			add(RuleAntiAffinity)
		}
	}
}

func (antiAffinity) why(s *state, c, n int32) []Failure {
	var out []Failure
	for _, x := range s.m.Components[c].Apart {
		if s.At[x] == n {
			name := s.m.called(x, c)
			f := Failure{
				Rule: RuleAntiAffinity, Detail: "must not share a node with " + name + ", which is here",
				Needed: "a node without " + name, Available: "a node with " + name,
			}
			out = append(out, f.about(s.m.comps[x].ID, name))
		}
	}
	return out
}

// relax allows both on one node, whichever of them declared the anti-affinity.
func (antiAffinity) relax(_ *misfit, f Failure) change {
	id := f.of()
	return change{
		Change: Change{From: "apart from " + f.Key, To: "none", Detail: "allow it on the node of " + f.Key}, cost: 1,
		apply: func(p *Problem, i int) {
			self := p.Components[i].ID
			for k := range p.Components {
				x := &p.Components[k]
				x.AntiAffinity = slices.DeleteFunc(slices.Clone(x.AntiAffinity), func(other string) bool {
					return (k == i && other == id) || (x.ID == id && other == self)
				})
			}
		},
	}
}
