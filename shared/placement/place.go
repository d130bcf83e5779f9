package placement

import (
	"fmt"
	"math"
	"slices"
)

// Place finds a place for as many components as it can: the best plan that it can prove or find within the budget. An
// error means a malformed problem: a *problem.Error of kind Invalid with every fault. A component that fits nowhere is
// part of a plan, with the reason.
func Place(p Problem) (Plan, error) { return new(Solver).Place(p) }

// plan converts a solution into a Plan.
func (m *model) plan(sol solution) Plan {
	s := m.restore(sol.at)
	out := Plan{
		Assignments: make([]Assignment, len(m.comps)), PlacedBound: sol.placedBound, Exact: sol.exact, Work: sol.work,
		Prices: dearest(sol.prices),
	}
	for c := range m.comps {
		a := m.assignment(s, int32(c))
		out.Assignments[m.comps[c].index] = a
		if a.Placed {
			out.Placed++
			out.ScoreTotal += a.Score.Weighted
		}
		if m.comps[c].Current != nil && !a.Stayed {
			out.MoveTotal += m.move
		}
		for i := range m.edges[c] {
			e := &m.edges[c][i]
			if d := int(e.to); d > c && s.at[c] >= 0 && s.at[d] >= 0 {
				out.AffinityTotal += e.weight * m.closeness(e, s.at[c], s.at[d])
			}
		}
	}
	out.Objective = out.ScoreTotal + out.AffinityTotal - out.MoveTotal
	out.Bound = sol.bound - m.baseline()
	if out.Exact || out.Bound < out.Objective { // only lower because the sum was rounded in another order
		out.Bound = out.Objective
	}
	out.Gap = (out.Bound - out.Objective) / math.Max(1, math.Abs(out.Bound))
	if m.p.OneOrchestrator && sol.orch >= 0 && out.Placed > 0 {
		out.Orchestrator = m.orchs[sol.orch]
	}
	return out
}

// baseline is the difference between the solver's objective and the plan's: the solver earns the move cost for staying,
// where the plan pays it for leaving.
func (m *model) baseline() float64 {
	var sum float64
	for c := range m.comps {
		if m.comps[c].Current != nil {
			sum += m.move
		}
	}
	return sum
}

func (m *model) assignment(s *state, c int32) Assignment {
	comp, n := &m.comps[c], s.at[c]
	a := Assignment{Component: comp.ID}
	if n < 0 {
		a.Reason, a.Rejections = m.whyUnplaced(s, c)
		return a
	}
	a.Placed, a.Target = true, m.nodes[n].Target()
	a.Score = m.scoreAt(&m.classes[comp.class], n)
	for i := range m.edges[c] {
		e := &m.edges[c][i]
		if at := s.at[e.to]; at >= 0 {
			a.Affinity += e.weight * m.closeness(e, n, at)
		}
	}
	if comp.Current != nil {
		a.Stayed = m.isHome(c, n)
		a.Moved = !a.Stayed
	}
	if a.Moved {
		a.Reason = m.whyMoved(s, c)
	}
	return a
}

// whyUnplaced returns why a component has no place, and counts the nodes that each rule excludes.
func (m *model) whyUnplaced(s *state, c int32) (string, map[Rule]int) {
	if len(m.nodes) == 0 {
		return "there are no nodes", nil
	}
	cl := &m.classes[m.comps[c].class]
	alone := cl.count
	if cl.rejected == nil {
		cl.rejected = make(map[Rule]int)
		for n := range m.nodes {
			for i := range filters {
				if !filters[i].keep(cl.want, &m.nodes[n]) {
					cl.rejected[filters[i].rule]++
				}
			}
		}
	}
	rejected := make(map[Rule]int, len(cl.rejected)+2)
	for rule, n := range cl.rejected {
		rejected[rule] = n
	}
	if alone == 0 {
		return fmt.Sprintf("none of %s meets its requirements: %s", plural(len(m.nodes), "node"), counts(rejected)),
			rejected
	}
	beside := make(map[Rule]int)
	for k := range min(alone, max(8, maxBeside/len(m.comps))) {
		for _, rule := range s.obstacles(c, cl.candidate(k)) {
			beside[rule]++
			rejected[rule]++
		}
	}
	return fmt.Sprintf("%s of %d could take it alone, but not beside the other components: %s",
		plural(alone, "node"), len(m.nodes), counts(beside)), rejected
}

// maxBeside limits how many candidates are examined, over all components, to find out why those without a place have
// none.
const maxBeside = 1_000_000

// whyMoved returns why a component is not where it was.
func (m *model) whyMoved(s *state, c int32) string {
	comp := &m.comps[c]
	at := place(*comp.Current)
	seen := m.stood(*comp.Current)
	if seen == nil {
		return fmt.Sprintf("its place %s is not among the nodes", at)
	}
	if len(comp.home) == 0 {
		why := failures(m.classes[comp.class].want, seen, true)
		return fmt.Sprintf("cannot stay at %s: %s", at, details(why))
	}
	if why := s.failuresBeside(c, comp.home[0]); len(why) > 0 {
		return fmt.Sprintf("cannot stay at %s: %s", at, details(why))
	}
	gain := s.value(c, s.at[c]) - s.value(c, comp.home[0])
	return fmt.Sprintf("leaving %s gains %s points after the move cost of %s", at, number(gain), number(m.move))
}

// stood returns the first node that matches a current place, or nil.
func (m *model) stood(t Target) *have {
	n, known := m.current[t]
	switch {
	case t.whole():
		n = m.find(t)
	case !known:
		n = int32(slices.IndexFunc(m.nodes, func(h have) bool { return t.matches(h.Node) }))
		if m.current == nil {
			m.current = make(map[Target]int32)
		}
		m.current[t] = n
	}
	if n < 0 {
		return nil
	}
	return &m.nodes[n]
}

func details(fs []Failure) string {
	var out string
	for i, f := range fs {
		if i > 0 {
			out += "; "
		}
		out += f.Detail
	}
	return out
}
