package placement

import (
	"fmt"

	"github.com/littoral-project/littoral/shared/placement/solver"
)

// linkLatency: the link to a partner in another cluster must be fast enough; an unknown link is not.
type linkLatency struct{}

func (linkLatency) rule() Rule { return RuleLatency }

func (k linkLatency) broken(s *state, c, n int32, add func(Rule)) {
	s.linksOf(c, n, func(e *solver.Edge, l solver.Link, known bool) {
		if k.breaks(e, l, known) {
			add(RuleLatency)
		}
	})
}

func (linkLatency) breaks(e *solver.Edge, l solver.Link, known bool) bool {
	return e.MaxLatency > 0 && (!known || l.Latency > e.MaxLatency)
}

func (k linkLatency) why(s *state, c, n int32) []Failure {
	var out []Failure
	s.linksOf(c, n, func(e *solver.Edge, l solver.Link, known bool) {
		if !k.breaks(e, l, known) {
			return
		}
		name, has := s.m.called(e.To, c), noLink
		if known {
			has = l.Latency.String()
		}
		f := Failure{
			Rule: RuleLatency, Needed: "at most " + e.MaxLatency.String(), Available: has,
			Detail: fmt.Sprintf("needs at most %s to %s, there is %s", e.MaxLatency, name, has),
		}
		out = append(out, f.about(s.m.comps[e.To].ID, name))
	})
	return out
}

func (linkLatency) relax(_ *misfit, f Failure) change {
	return dropLimit("latency", f, func(a *Affinity) { a.MaxLatency = 0 })
}

const noLink = "no known link"

// linksOf calls each for the limited affinities of a component at a node to placed partners in other clusters.
func (s *state) linksOf(c, n int32, each func(e *solver.Edge, l solver.Link, known bool)) {
	m := s.m
	k := m.Nodes[n].Cluster
	for i := range m.Edges[c] {
		e := &m.Edges[c][i]
		if at := s.At[e.To]; at >= 0 && e.Limited() && m.Nodes[at].Cluster != k {
			l, known := m.Links[solver.Between(k, m.Nodes[at].Cluster)]
			each(e, l, known)
		}
	}
}

// dropLimit drops a limit on the link to a partner.
func dropLimit(what string, f Failure, do func(*Affinity)) change {
	return change{
		Change: Change{From: f.Needed, To: "none", Detail: fmt.Sprintf("drop the %s limit to %s", what, f.Key)}, cost: 1,
		apply: func(p *Problem, i int) {
			self := p.Components[i].ID
			for k := range p.Affinities {
				if a := &p.Affinities[k]; (a.A == self && a.B == f.of()) || (a.B == self && a.A == f.of()) {
					do(a)
				}
			}
		},
	}
}
