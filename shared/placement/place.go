package placement

import (
	"fmt"
	"math"
	"slices"

	"github.com/littoral-project/littoral/shared/placement/solver"
)

// Place finds a place for as many components as it can: the best plan that it can prove or find within the budget. An
// error means a malformed problem: a *problem.Error of kind Invalid with every fault. A component that fits nowhere is
// part of a plan, with the reason.
func Place(p Problem) (Plan, error) { return new(Solver).Place(p) }

// Admitted reports for each component whether any of the nodes could take it alone. An error is that of Place.
func Admitted(p Problem) ([]bool, error) {
	nodes, err := validate(&p)
	if err != nil {
		return nil, err
	}
	m, err := newModel(&p, nodes)
	if err != nil {
		return nil, err
	}
	out := make([]bool, len(m.comps))
	for c := range m.comps {
		out[m.comps[c].index] = m.ClassOf(int32(c)).Count() > 0
	}
	return out, nil
}

// Solver places one problem after the other and begins each with the results of the last one. Its results are as valid
// as those of Place, but it may choose another one among equals, or find more or less within the budget. The zero
// Solver is ready; it is not safe for concurrent use.
type Solver struct{ memory solver.Memory }

// Place is the function Place with the memory of earlier calls.
func (s *Solver) Place(p Problem) (Plan, error) {
	nodes, err := validate(&p)
	if err != nil {
		return Plan{}, err
	}
	m, err := newModel(&p, nodes)
	if err != nil {
		return Plan{}, err
	}
	return m.plan(s.memory.Solve(m.Model)), nil
}

// state is who is where, as the solver keeps it, with the words to explain it.
type state struct {
	*solver.State
	m *model
}

// restore returns the state of a known placement; a component that does not fit in its place is left out.
func (m *model) restore(at, via []int32) *state { return &state{m.Restore(at, via), m} }

// plan converts a solution into a Plan.
func (m *model) plan(sol solver.Solution) Plan {
	s := m.restore(sol.At, sol.Via)
	out := Plan{
		Assignments: make([]Assignment, len(m.comps)), PlacedBound: sol.PlacedBound, Exact: sol.Exact, Work: sol.Work,
		Prices: m.prices(sol.Prices),
	}
	for c := range m.comps {
		a := m.assignment(s, int32(c))
		out.Assignments[m.comps[c].index] = a
		if a.Placed {
			out.Placed++
			out.ScoreTotal += a.Score.points()
		}
		if m.comps[c].Current != nil && !a.Stayed {
			out.MoveTotal += m.MoveCost
		}
		for i := range m.Edges[c] {
			e := &m.Edges[c][i]
			if d := int(e.To); d > c && s.At[c] >= 0 && s.At[d] >= 0 {
				out.AffinityTotal += e.Weight * m.Closeness(e, s.At[c], s.At[d])
			}
		}
	}
	if len(m.p.Channels) > 0 {
		out.Channels = m.channelAssignments(s)
	}
	out.Objective = out.ScoreTotal + out.AffinityTotal - out.MoveTotal
	out.Bound = sol.Bound - m.baseline()
	if out.Exact || out.Bound < out.Objective { // only lower because the sum was rounded in another order
		out.Bound = out.Objective
	}
	out.Gap = (out.Bound - out.Objective) / math.Max(1, math.Abs(out.Bound))
	if m.p.OneOrchestrator && sol.Orchestrator >= 0 && out.Placed > 0 {
		out.Orchestrator = m.orchestrators[sol.Orchestrator]
	}
	return out
}

// baseline is the difference between the solver's objective and the plan's: the solver earns the move cost for staying,
// where the plan pays it for leaving.
func (m *model) baseline() float64 {
	var sum float64
	for c := range m.comps {
		if m.comps[c].Current != nil {
			sum += m.MoveCost
		}
	}
	return sum
}

func (m *model) assignment(s *state, c int32) Assignment {
	comp, n := &m.comps[c], s.At[c]
	a := Assignment{Component: comp.ID}
	if n < 0 {
		a.Reason, a.Rejections = m.whyUnplaced(s, c)
		return a
	}
	a.Placed, a.Target = true, m.nodes[n].Target()
	a.Score = m.scoreAt(&m.classes[m.Components[c].Class], n)
	for i := range m.Edges[c] {
		e := &m.Edges[c][i]
		if at := s.At[e.To]; at >= 0 {
			a.Affinity += e.Weight * m.Closeness(e, n, at)
		}
	}
	if comp.Current != nil {
		a.Stayed = m.IsHome(c, n)
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
	cl, solverClass := &m.classes[m.Components[c].Class], m.ClassOf(c)
	alone := solverClass.Count()
	if cl.rejected == nil {
		cl.rejected = make(map[Rule]int)
		for n := range m.nodes {
			for _, k := range constraints {
				if !k.admits(cl.request, &m.nodes[n]) {
					cl.rejected[k.rule()]++
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
		for _, rule := range s.obstacles(c, solverClass.Candidate(k)) {
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
	seen := m.formerNode(*comp.Current)
	if seen == nil {
		return fmt.Sprintf("its place %s is not among the nodes", at)
	}
	home := m.Components[c].Home
	if len(home) == 0 {
		why := failures(m.request(c), seen, true)
		return fmt.Sprintf("cannot stay at %s: %s", at, details(why))
	}
	if why := s.failures(c, home[0]); len(why) > 0 {
		return fmt.Sprintf("cannot stay at %s: %s", at, details(why))
	}
	gain := s.Value(c, s.At[c]) - s.Value(c, home[0])
	return fmt.Sprintf("leaving %s gains %s points after the move cost of %s", at, number(gain), number(m.MoveCost))
}

// formerNode returns the first node that matches a current place, or nil.
func (m *model) formerNode(t Target) *nodeInfo {
	n, known := m.former[t]
	switch {
	case t.whole():
		n = m.find(t)
	case !known:
		n = int32(slices.IndexFunc(m.nodes, func(n nodeInfo) bool { return t.matches(n.Node) }))
		if m.former == nil {
			m.former = make(map[Target]int32)
		}
		m.former[t] = n
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
