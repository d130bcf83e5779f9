package placement

import (
	"fmt"
	"strings"
)

// spreadLimit: a domain may hold so many members of a set.
type spreadLimit struct{}

func (spreadLimit) rule() Rule { return RuleSpread }

func (spreadLimit) broken(s *state, c, n int32, add func(Rule)) {
	for _, i := range s.m.Components[c].Spreads {
		if s.InDomain(i, n) >= s.m.Spreads[i].Limit {
			add(RuleSpread)
		}
	}
}

func (spreadLimit) why(s *state, c, n int32) []Failure {
	var out []Failure
	for _, i := range s.m.Components[c].Spreads {
		sp, limit := &s.m.spreads[i], s.m.Spreads[i].Limit
		if has := s.InDomain(i, n); has >= limit {
			where := sp.By + " " + orNone(sp.names[s.m.Spreads[i].Domain[n]])
			out = append(out, Failure{
				Rule: RuleSpread, Key: sp.By,
				Detail: fmt.Sprintf("%s may hold %d of a set of %d, it has %d", where, limit, len(sp.Components), has),
				Needed: fmt.Sprintf("at most %d per %s", limit, sp.By), Available: fmt.Sprintf("%d there", has),
			})
		}
	}
	return out
}

// relax lets one more member of every full spread of that kind share the node's domain.
func (spreadLimit) relax(at *misfit, f Failure) change {
	m, by := at.m, f.Key
	out := change{cost: 1}
	limits := make(map[*Spread]int)
	for _, i := range m.Components[at.c].Spreads {
		limit := m.Spreads[i].Limit
		if has := at.s.InDomain(i, at.n); m.spreads[i].By == by && has >= limit {
			limits[m.spreads[i].Spread] = int(has) + 1
			out.From = fmt.Sprintf("at most %d per %s", limit, by)
			out.To = fmt.Sprintf("at most %d per %s", has+1, by)
		}
	}
	out.Detail = fmt.Sprintf("allow %s instead of %s", strings.TrimPrefix(out.To, "at most "), out.From)
	out.apply = func(p *Problem, _ int) {
		for k := range p.Spreads {
			if most, ok := limits[&m.p.Spreads[k]]; ok {
				p.Spreads[k].Max, p.Spreads[k].MaxShare = max(most, p.Spreads[k].Max), 0
			}
		}
	}
	return out
}
