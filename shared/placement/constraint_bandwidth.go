package placement

import (
	"fmt"

	"github.com/littoral-project/littoral/shared/placement/solver"
)

// linkBandwidth: all that is sent over a link must fit in what is free of it; an unknown link has none.
type linkBandwidth struct{}

func (linkBandwidth) rule() Rule { return RuleBandwidth }

func (k linkBandwidth) broken(s *state, c, n int32, add func(Rule)) {
	s.linksOf(c, n, func(e *solver.Edge, l solver.Link, known bool) {
		if _, breaks := k.sent(s, c, n, e, l, known); breaks {
			add(RuleBandwidth)
		}
	})
}

// sent returns what is sent over the link with the component at the node, and whether that is too much.
func (linkBandwidth) sent(s *state, c, n int32, e *solver.Edge, l solver.Link, known bool) (int64, bool) {
	if e.Bandwidth == 0 {
		return 0, false
	}
	k := s.m.Nodes[n].Cluster
	sent := s.SentWith(c, k, solver.Between(k, s.m.Nodes[s.At[e.To]].Cluster))
	return sent, !known || sent > l.Bandwidth
}

func (k linkBandwidth) why(s *state, c, n int32) []Failure {
	var out []Failure
	s.linksOf(c, n, func(e *solver.Edge, l solver.Link, known bool) {
		sent, breaks := k.sent(s, c, n, e, l, known)
		if !breaks {
			return
		}
		name, has := s.m.called(e.To, c), noLink
		if known {
			has = fmt.Sprintf("%d in all", l.Bandwidth)
		}
		f := Failure{
			Rule: RuleBandwidth, Needed: fmt.Sprint(e.Bandwidth), Available: has,
			Detail: fmt.Sprintf("needs bandwidth %d to %s, %d with all else on the way, there is %s", e.Bandwidth, name,
				sent, has),
		}
		out = append(out, f.about(s.m.comps[e.To].ID, name))
	})
	return out
}

func (linkBandwidth) relax(_ *misfit, f Failure) change {
	return dropLimit("bandwidth", f, func(a *Affinity) { a.Bandwidth = 0 })
}
