package placement

import (
	"cmp"
	"fmt"
	"slices"
)

// Explain returns, for each component, what every node would have meant: each failed constraint with its numbers, or
// the score and affinity that it would earn there with every other component in its place in the plan. A component
// without a place gets a smallest relaxation. The plan should be one of this problem; places in it that do not exist or
// do not fit count as none. A malformed problem gives the zero Explanation.
func Explain(p Problem, plan Plan) Explanation {
	return ExplainOnly(p, plan, func(int) bool { return true })
}

// ExplainOnly is Explain for the components for which asked returns true, by their index in the problem. The others get
// the zero ComponentExplanation.
func ExplainOnly(p Problem, plan Plan, asked func(i int) bool) Explanation {
	nodes, err := validate(&p)
	if err != nil {
		return Explanation{}
	}
	m, err := newModel(&p, nodes)
	if err != nil {
		return Explanation{}
	}
	at := m.places(plan)
	s := m.restore(at, m.vias(plan, at))
	out := Explanation{
		Components: make([]ComponentExplanation, len(m.comps)),
		Objective:  plan.Objective, Bound: plan.Bound, Gap: plan.Gap, Exact: plan.Exact, Prices: plan.Prices,
	}
	out.Placed = s.Placed()
	var chosen []int32
	for c := range m.comps {
		if asked(m.comps[c].index) {
			chosen = append(chosen, int32(c))
		}
	}
	for _, c := range chosen {
		out.Components[m.comps[c].index] = m.explain(s, c, len(chosen))
	}
	return out
}

// Cut removes all nodes after the first keep, for an explanation that is stored with others.
func (c *ComponentExplanation) Cut(keep int) {
	if more := len(c.Nodes) - keep; more > 0 {
		c.Nodes, c.Omitted = slices.Clone(c.Nodes[:keep]), c.Omitted+more
	}
}

// places reads where the plan has each component; -1 for none.
func (m *model) places(plan Plan) []int32 {
	by := make(map[string]Target, len(plan.Assignments))
	for _, a := range plan.Assignments {
		if a.Placed {
			by[a.Component] = a.Target
		}
	}
	at := make([]int32, len(m.comps))
	for c := range at {
		at[c] = -1
		if t, ok := by[m.comps[c].ID]; ok {
			at[c] = m.find(t)
		}
	}
	return at
}

// explain explains one of asked components, with the others in their places.
func (m *model) explain(s *state, c int32, asked int) ComponentExplanation {
	comp := &m.comps[c]
	out := ComponentExplanation{Component: comp.ID, Placed: s.At[c] >= 0, Preferences: m.reasons(c)}
	at := s.At[c]
	if at >= 0 {
		out.Target = m.nodes[at].Target()
		s.Remove(c)
		defer s.Put(c, at)
	}
	show := max(1, MaxExplained/asked)
	absent := m.absent(s, c)
	nodes := m.promising(c, at, max(show, maxExamined/asked))
	all := make([]view, len(nodes))
	for i, n := range nodes {
		all[i] = m.view(s, c, n)
		all[i].chosen = n == at
		if !all[i].fails {
			out.Fit++
		}
	}
	out.Fit += absent.fit
	slices.SortFunc(all, view.compare)
	for i, v := range all[:min(show, len(all))] {
		if v.fails && i+absent.fit >= show { // those that fit come first
			break
		}
		out.Nodes = append(out.Nodes, m.detail(s, c, v))
	}
	out.Omitted = len(m.nodes) + absent.nodes - len(out.Nodes)
	if at < 0 {
		out.Summary, out.Rejections = m.whyUnplaced(s, c)
		out.Relaxation = m.relax(s, c)
		return out
	}
	out.Rejections = absent.broken
	for _, v := range all {
		if v.fails {
			for _, r := range s.broken(c, v.node) {
				out.Rejections[r]++
			}
		}
	}
	won := all[0]
	switch {
	case len(all)+absent.nodes == 1:
		out.Summary = fmt.Sprintf("%s is the only node", place(out.Target))
	case len(all) == 1 || all[1].fails:
		out.Summary = fmt.Sprintf("%s is the only one of %s that can take it", place(out.Target),
			plural(len(all)+absent.nodes, "node"))
	default:
		next := m.nodes[all[1].node].Target()
		out.RunnerUp, out.Margin = &next, won.total-all[1].total
		out.Summary = fmt.Sprintf("%s wins with %s points, %s ahead of %s", place(out.Target), number(won.total),
			number(out.Margin), place(next))
		if out.Margin < 0 {
			out.Summary = fmt.Sprintf("%s earns %s points, %s less than %s would, for the good of the other components",
				place(out.Target), number(won.total), number(-out.Margin), place(next))
		}
	}
	switch current := m.comps[c].Current; {
	case !out.Placed || current == nil:
	case m.IsHome(c, at):
		out.Summary += "; it stays where it is"
	default:
		out.Summary += "; a move away from " + place(*current) // the summary is stored, and read after the move
	}
	return out
}

// left is what Problem.Absent says for one component.
type left struct {
	nodes, fit int
	broken     map[Rule]int
}

// absent sums up the nodes that were left out, for an unplaced component with the others in their places. None of those is
// there, so that what it shares with them excludes no node but for the orchestrator.
func (m *model) absent(s *state, c int32) left {
	out := left{broken: make(map[Rule]int)}
	for i := range m.p.Absent {
		a := &m.p.Absent[i]
		if !slices.Contains(a.Components, m.comps[c].ID) {
			continue
		}
		out.nodes += a.Nodes
		broken := a.Broken
		if like := slices.IndexFunc(m.nodes, func(n nodeInfo) bool { return n.orchestrator == a.Orchestrator }); len(broken) == 0 &&
			like >= 0 && s.Foreign(c, int32(like)) {
			broken = []Rule{RuleOneOrchestrator}
		}
		if len(broken) == 0 {
			out.fit += a.Nodes
		}
		for _, r := range broken {
			out.broken[r] += a.Nodes
		}
	}
	return out
}

// reasons are the preferences for a component.
func (m *model) reasons(c int32) map[string]string {
	var out map[string]string
	for _, i := range m.classes[m.Components[c].Class].preferences {
		if out == nil {
			out = make(map[string]string)
		}
		out[m.p.Preferences[i].Name] = m.p.Preferences[i].About
	}
	return out
}

// view is the part of a node's explanation that sorting needs.
type view struct {
	node          int32
	chosen, fails bool
	total         float64
}

func (v view) compare(w view) int {
	rank := func(v view) int {
		switch {
		case v.chosen:
			return 0
		case !v.fails:
			return 1
		default:
			return 2
		}
	}
	if c := cmp.Compare(rank(v), rank(w)); c != 0 || v.fails {
		return cmp.Or(c, cmp.Compare(v.node, w.node))
	}
	return cmp.Or(cmp.Compare(w.total, v.total), cmp.Compare(v.node, w.node))
}

// maxExamined limits how many nodes are examined, over all components, to find those worth showing.
const maxExamined = 5_000_000

// promising returns the nodes to examine: all of them or, if there are too many, the chosen one, the candidates by
// falling points, and then others in order.
func (m *model) promising(c, at int32, limit int) []int32 {
	cl := m.ClassOf(c)
	out := make([]int32, 0, min(limit, len(m.nodes))+1)
	if at >= 0 {
		out = append(out, at)
	}
	for k := range min(limit, cl.Count()) {
		if n := cl.Candidate(k); n != at {
			out = append(out, n)
		}
	}
	for n := range int32(len(m.nodes)) {
		if len(out) >= limit {
			break
		}
		if n != at && !cl.May(n) {
			out = append(out, n)
		}
	}
	return out[:min(len(out), limit)]
}

func (m *model) view(s *state, c, n int32) view {
	v := view{node: n, fails: !s.Fits(c, n)}
	if m.ClassOf(c).May(n) {
		v.total = s.Value(c, n) - m.moveStake(c)
	}
	return v
}

// moveStake is what a component with a current place loses by leaving it.
func (m *model) moveStake(c int32) float64 {
	if m.comps[c].Current == nil {
		return 0
	}
	return m.MoveCost
}

// detail explains one node.
func (m *model) detail(s *state, c int32, v view) NodeExplanation {
	n := v.node
	out := NodeExplanation{Target: m.nodes[n].Target(), Chosen: v.chosen, Total: v.total}
	if v.fails {
		out.Failures = s.failures(c, n)
	}
	cl := m.ClassOf(c)
	if !cl.May(n) {
		return out
	}
	out.Score = m.scoreAt(&m.classes[m.Components[c].Class], n)
	for _, i := range m.classes[m.Components[c].Class].preferences {
		one := &m.p.Preferences[i]
		out.Preferred = append(out.Preferred, PreferenceTerm{one.Name, one.Points[m.nodes[n].index]})
	}
	if !m.IsHome(c, n) {
		out.Move = m.moveStake(c)
	}
	for i := range m.Edges[c] {
		e := &m.Edges[c][i]
		term := AffinityTerm{With: m.called(e.To, c), Closeness: "unplaced", Weight: e.Weight}
		if at := s.At[e.To]; at >= 0 {
			term.Closeness, term.Points = m.closeness(e, n, at), e.Weight*m.Closeness(e, n, at)
		}
		out.Affinity = append(out.Affinity, term)
	}
	return out
}

// broken returns the rules that exclude an unplaced component from any node, each once: those that do so wherever the
// others are or, on a candidate, because of where they are.
func (s *state) broken(c, n int32) []Rule {
	if s.m.ClassOf(c).May(n) {
		return s.obstacles(c, n)
	}
	var out []Rule
	for _, k := range constraints {
		if !k.admits(s.m.request(c), &s.m.nodes[n]) {
			out = append(out, k.rule())
		}
	}
	return out
}

// obstacles returns the rules, each once, that exclude an unplaced component from a candidate because of where others
// are.
func (s *state) obstacles(c, n int32) []Rule {
	var out []Rule
	for _, k := range peerConstraints {
		k.broken(s, c, n, func(r Rule) {
			if !slices.Contains(out, r) {
				out = append(out, r)
			}
		})
	}
	return out
}

// failures returns every constraint that excludes a component from a node, given all others.
func (s *state) failures(c, n int32) []Failure {
	if at := s.At[c]; at >= 0 {
		s.Remove(c)
		defer s.Put(c, at)
	}
	out := failures(s.m.request(c), &s.m.nodes[n], false)
	for _, k := range peerConstraints {
		out = append(out, k.why(s, c, n)...)
	}
	return out
}
