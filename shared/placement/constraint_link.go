package placement

import (
	"fmt"

	"github.com/littoral-project/littoral/shared/placement/solver"
)

// linkable: a partner that it talks to must be in the same cluster, or in one that a link can reach from there.
type linkable struct{}

func (linkable) rule() Rule { return RuleLink }

func (k linkable) broken(s *state, c, n int32, add func(Rule)) {
	k.each(s, c, n, func(*solver.Edge) { add(RuleLink) })
}

// each calls with every affinity of a component at the node to a placed partner that no link can reach.
func (linkable) each(s *state, c, n int32, with func(e *solver.Edge)) {
	m := s.m
	for i := range m.Edges[c] {
		e := &m.Edges[c][i]
		if at := s.At[e.To]; at >= 0 && e.NeedsLink && !m.Joined(m.Nodes[n].Cluster, m.Nodes[at].Cluster) {
			with(e)
		}
	}
}

func (k linkable) why(s *state, c, n int32) []Failure {
	var out []Failure
	k.each(s, c, n, func(e *solver.Edge) {
		name, here, there := s.m.called(e.To, c), &s.m.nodes[n], &s.m.nodes[s.At[e.To]]
		f := Failure{
			Rule: RuleLink, Needed: "a link to " + there.Cluster, Available: "no link",
			Detail: fmt.Sprintf("talks to %s in cluster %s, and no link can be made between %s", name, there.Cluster,
				s.m.outside(s.m.Nodes[n].Cluster, here.Cluster, s.m.Nodes[s.At[e.To]].Cluster, there.Cluster)),
		}
		out = append(out, f.about(s.m.comps[e.To].ID, name))
	})
	return out
}

// outside says which of two clusters no link can reach.
func (m *model) outside(k int32, here string, l int32, there string) string {
	switch is := func(k int32) bool { return m.Peers != nil && m.Peers[k] }; {
	case is(k):
		return fmt.Sprintf("%s and %s: %s is no peer that can be reached", here, there, there)
	case is(l):
		return fmt.Sprintf("%s and %s: %s is no peer that can be reached", here, there, here)
	}
	return fmt.Sprintf("%s and %s: neither is a peer that can be reached", here, there)
}

// relax lets the two do without a link.
func (linkable) relax(_ *misfit, f Failure) change {
	out := dropLimit("link", f, func(a *Affinity) { a.NeedsLink = false })
	out.Detail = "let it do without a link to " + f.Key
	return out
}
