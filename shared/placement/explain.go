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
	s := m.restore(m.places(plan))
	out := Explanation{
		Components: make([]ComponentExplanation, len(m.comps)),
		Objective:  plan.Objective, Bound: plan.Bound, Gap: plan.Gap, Exact: plan.Exact, Prices: plan.Prices,
	}
	out.Placed = s.placed
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
	out := ComponentExplanation{Component: comp.ID, Placed: s.at[c] >= 0}
	at := s.at[c]
	if at >= 0 {
		out.Target = m.nodes[at].Target()
		s.take(c)
		defer s.put(c, at)
	}
	show := max(1, MaxExplained/asked)
	out.Omitted = max(0, len(m.nodes)-show)
	nodes := m.promising(c, at, max(show, maxLooked/asked))
	all := make([]view, len(nodes))
	for i, n := range nodes {
		all[i] = m.view(s, c, n)
		all[i].chosen = n == at
		if !all[i].fails {
			out.Fit++
		}
	}
	slices.SortFunc(all, view.compare)
	for _, v := range all[:min(show, len(all))] {
		out.Nodes = append(out.Nodes, m.detail(s, c, v))
	}
	if at < 0 {
		out.Summary, out.Rejections = m.whyUnplaced(s, c)
		out.Relaxation = m.relax(s, c)
		return out
	}
	out.Rejections = make(map[Rule]int)
	for _, v := range all {
		if v.fails {
			for _, r := range s.broken(c, v.node) {
				out.Rejections[r]++
			}
		}
	}
	won := all[0]
	switch {
	case len(all) == 1:
		out.Summary = fmt.Sprintf("%s is the only node", place(out.Target))
	case all[1].fails:
		out.Summary = fmt.Sprintf("%s is the only one of %s that can take it", place(out.Target),
			plural(len(all), "node"))
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
	case m.isHome(c, at):
		out.Summary += "; it stays where it is"
	default:
		out.Summary += "; a move away from " + place(*current) // the summary is stored, and read after the move
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

// maxLooked limits how many nodes are examined, over all components, to find those worth showing.
const maxLooked = 5_000_000

// promising returns the nodes to examine: all of them or, if there are too many, the chosen one, the candidates by
// falling points, and then others in order.
func (m *model) promising(c, at int32, limit int) []int32 {
	cl := &m.classes[m.comps[c].class]
	out := make([]int32, 0, min(limit, len(m.nodes))+1)
	if at >= 0 {
		out = append(out, at)
	}
	for k := range min(limit, cl.count) {
		if n := cl.candidate(k); n != at {
			out = append(out, n)
		}
	}
	for n := range int32(len(m.nodes)) {
		if len(out) >= limit {
			break
		}
		if n != at && !cl.may(n) {
			out = append(out, n)
		}
	}
	return out[:min(len(out), limit)]
}

func (m *model) view(s *state, c, n int32) view {
	v := view{node: n, fails: !s.fits(c, n)}
	if m.classes[m.comps[c].class].may(n) {
		v.total = s.value(c, n) - m.stake(c)
	}
	return v
}

// stake is what a component with a current place loses by leaving it.
func (m *model) stake(c int32) float64 {
	if m.comps[c].Current == nil {
		return 0
	}
	return m.move
}

// detail explains one node.
func (m *model) detail(s *state, c int32, v view) NodeExplanation {
	n := v.node
	out := NodeExplanation{Target: m.nodes[n].Target(), Chosen: v.chosen, Total: v.total}
	if v.fails {
		out.Failures = s.failuresBeside(c, n)
	}
	cl := &m.classes[m.comps[c].class]
	if !cl.may(n) {
		return out
	}
	out.Score = m.scoreAt(cl, n)
	if !m.isHome(c, n) {
		out.Move = m.stake(c)
	}
	for i := range m.edges[c] {
		e := &m.edges[c][i]
		term := AffinityTerm{With: m.comps[e.to].ID, Closeness: "unplaced", Weight: e.weight}
		if at := s.at[e.to]; at >= 0 {
			term.Closeness, term.Points = m.closenessName(e, n, at), e.weight*m.closeness(e, n, at)
		}
		out.Affinity = append(out.Affinity, term)
	}
	return out
}

// broken returns the rules that exclude an unplaced component from any node, each once: those that do so wherever the
// others are or, on a candidate, because of where they are.
func (s *state) broken(c, n int32) []Rule {
	cl := &s.m.classes[s.m.comps[c].class]
	if cl.may(n) {
		return s.obstacles(c, n)
	}
	var out []Rule
	for i := range filters {
		if f := &filters[i]; !f.keep(cl.want, &s.m.nodes[n]) {
			out = append(out, f.rule)
		}
	}
	return out
}

// obstacles returns the rules that exclude an unplaced component from a candidate because of where others are.
func (s *state) obstacles(c, n int32) []Rule {
	m, comp := s.m, &s.m.comps[c]
	var out []Rule
	add := func(r Rule) {
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	free := s.free[int(n)*len(m.dims):]
	for _, d := range m.classes[comp.class].demand {
		if d.amount > free[d.dim] {
			add(m.dims[d.dim].rule)
		}
	}
	for _, x := range comp.apart {
		if s.at[x] == n {
			add(RuleAntiAffinity)
		}
	}
	for _, i := range comp.spreads {
		if sp := &m.spreads[i]; s.spread[i][sp.domain[n]] >= sp.limit {
			add(RuleSpread)
		}
	}
	if s.foreign(c, n) {
		add(RuleOneOrchestrator)
	}
	for _, f := range s.unwired(c, n) {
		add(f.Rule)
	}
	return out
}

// failuresBeside returns every constraint that excludes a component from a node, given all others.
func (s *state) failuresBeside(c, n int32) []Failure {
	if at := s.at[c]; at >= 0 {
		s.take(c)
		defer s.put(c, at)
	}
	m, comp := s.m, &s.m.comps[c]
	r, h := m.classes[comp.class].want, &m.nodes[n]
	out := failures(r, h, false)
	free := s.free[int(n)*len(m.dims):]
	for _, d := range m.classes[comp.class].demand {
		if d.amount > free[d.dim] {
			short := s.capacity(r, n, d.dim)
			out = append(out, short.failure())
		}
	}
	for _, x := range comp.apart {
		if s.at[x] == n {
			id := m.comps[x].ID
			out = append(out, Failure{
				Rule: RuleAntiAffinity, Key: id, Detail: "must not share a node with " + id + ", which is here",
				Needed: "a node without " + id, Available: "a node with " + id,
			})
		}
	}
	for _, i := range comp.spreads {
		sp := &m.spreads[i]
		if has := s.spread[i][sp.domain[n]]; has >= sp.limit {
			where := sp.By + " " + orNone(sp.names[sp.domain[n]])
			out = append(out, Failure{
				Rule: RuleSpread, Key: sp.By,
				Detail: fmt.Sprintf("%s may hold %d of a set of %d, it has %d", where, sp.limit, sp.members, has),
				Needed: fmt.Sprintf("at most %d per %s", sp.limit, sp.By), Available: fmt.Sprintf("%d there", has),
			})
		}
	}
	out = append(out, s.unwired(c, n)...)
	if s.foreign(c, n) {
		out = append(out, elsewhere(m.orchs[s.bound[comp.group].orch], h.Orchestrator))
	}
	return out
}

// capacity returns one amount on the node with the shares of other components in the plan.
func (s *state) capacity(r *request, n int32, d int) *capacity {
	m, h := s.m, &s.m.nodes[n]
	var out *capacity
	switch what := m.dims[d]; what.rule {
	case RuleDevice:
		out = deviceOf(r, h, what.key)
	case RuleResource:
		out = resourceOf(r, h, what.key)
	default:
		out = capacityOf(r, h, what.rule)
	}
	out.free = s.free[int(n)*len(m.dims)+d]
	for _, x := range s.on(n) {
		for _, a := range m.classes[m.comps[x].class].demand {
			if a.dim == d {
				out.held = append(out.held, holding{by: m.comps[x].ID, how: "taken by", amount: a.amount})
			}
		}
	}
	return out
}
