package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/littoral-project/littoral/shared/problem"
)

// model is a problem prepared for solving. Components are numbered by id and nodes by target, so the order in which a
// caller lists them does not matter.
type model struct {
	p       *Problem
	comps   []member
	nodes   []have
	tastes  []taste
	classes []class
	dims    []dim
	free    []int64 // of each node and dim: free[node*len(dims)+dim]
	edges   [][]edge
	wires   map[int64]wire // by between(cluster, cluster)
	spreads []spread
	groups  []group
	move    float64
	orchs   []string
	// clusters[k] is the first node of cluster k and clusters[k+1] the one after its last.
	clusters []int32
	orchOf   []int32          // orchestrator of each cluster
	last     *Solver          // what is known from the problem before
	isWhole  int              // 1 if all points are whole numbers, -1 if not, 0 if not yet checked
	work     int64            // units spent on filtering and scoring
	room     *room            // memory for sorting classes
	current  map[Target]int32 // first node that matches a current place, see stood
}

// member is one component.
type member struct {
	*Component
	index int // in Problem.Components
	class int32
	// home lists the nodes that match Current and may take it. Staying there earns model.move, which is the same as
	// charging for a move but leaves 0 as the value of being unplaced.
	home    []int32
	apart   []int32 // components that must be on other nodes
	spreads []int32 // spreads it belongs to
	group   int32   // in model.groups
	limited bool    // one of its affinities has hard limits
}

// group is one application: a Group, or, as the first one, all components that are in none.
type group struct {
	Group
	weights Weights // sum 1
	members []int32
}

// class is a set of components with equal requirements; they share candidates and scores.
type class struct {
	key       string // equal for equal classes
	want      *request
	weights   Weights   // sum 1
	given     []float64 // Problem.Scores of its first member, by index in Problem.Nodes; nil to compute scores
	demand    []amount
	taste     int32
	points    []float64 // by node: its weighted score, negative if it is not a candidate
	most      float64   // of the points, 0 without a candidate
	few       float64   // the fewest of them
	count     int       // of candidates
	order     []int32   // the first candidates by falling points, ties by node; as many as were needed so far
	room      *room
	inCluster []int32 // number of candidates in each cluster
	inOrch    []int32
	least     float64 // least watts per core among the candidates
	rejected  map[Rule]int
	home      []int32 // candidates that match a Current with empty fields; then Current is part of the requirements
}

// may reports whether the node is a candidate.
func (cl *class) may(n int32) bool { return cl.points[n] >= 0 }

// taste is all requirements of a component except cpu and memory, and the nodes that meet them. Most components differ
// only in cpu and memory.
type taste struct {
	want  *request
	suits []bool
}

// dim is one thing that nodes have a limited amount of.
type dim struct {
	rule Rule
	key  string
}

type amount struct {
	dim    int
	amount int64
}

// spread is a Spread over numbered components, with the domain of every node.
type spread struct {
	*Spread
	members int
	limit   int32
	domain  []int32
	names   []string
}

func newModel(p *Problem, nodes *lineup) (*model, error) {
	m := &model{p: p, move: p.MoveCost, last: &Solver{}, room: &room{}}
	if m.move == 0 {
		m.move = DefaultMoveCost
	}
	m.number()
	m.enlist()
	number := make(map[string]int32, len(m.comps))
	for i := range m.comps {
		number[m.comps[i].ID] = int32(i)
	}
	m.classify()
	if len(m.classes)*len(p.Nodes) > MaxPairs {
		return nil, tooMany("components", "%d different requirements times %d nodes", len(m.classes), len(p.Nodes))
	}
	m.measure()
	if len(m.dims)*len(p.Nodes) > MaxPairs {
		return nil, tooMany("nodes", "%d kinds of resources times %d nodes", len(m.dims), len(p.Nodes))
	}
	m.seat(nodes)
	if len(m.spreads)*len(m.nodes) > MaxPairs || len(p.Spreads)*len(m.nodes) > MaxPairs {
		return nil, tooMany("spreads", "%d spreads times %d nodes", len(p.Spreads), len(m.nodes))
	}
	m.fill()
	m.candidates()
	m.connect(number)
	return m, nil
}

func tooMany(path, format string, args ...any) error {
	detail := fmt.Sprintf(format, args...)
	return &problem.Error{
		Kind: problem.Invalid, Detail: "the placement problem is too large",
		Fields: []problem.Field{{Path: path, Detail: fmt.Sprintf("%s are more than %d", detail, MaxPairs)}},
	}
}

// number sorts components by id.
func (m *model) number() {
	m.comps = make([]member, len(m.p.Components))
	for i := range m.p.Components {
		m.comps[i] = member{Component: &m.p.Components[i], index: i}
	}
	slices.SortFunc(m.comps, func(a, b member) int { return cmp.Compare(a.ID, b.ID) })
}

// seat prepares the nodes in their order, and finds out which tastes each one suits. It reads them in the order in
// which they are listed, since each is large.
func (m *model) seat(l *lineup) {
	m.clusters = l.clusters
	m.orchOf = make([]int32, len(l.of))
	for k, t := range l.of {
		if k == 0 || t.Orchestrator != l.of[k-1].Orchestrator {
			m.orchs = append(m.orchs, m.p.Nodes[l.order[l.clusters[k]]].Orchestrator)
		}
		m.orchOf[k] = int32(len(m.orchs) - 1)
	}
	seat := make([]int32, len(l.order))
	cluster := make([]int32, len(l.order))
	for k := range m.orchOf {
		for n := l.clusters[k]; n < l.clusters[k+1]; n++ {
			seat[l.order[n]], cluster[l.order[n]] = n, int32(k)
		}
	}
	m.nodes = make([]have, len(seat))
	for t := range m.tastes {
		m.tastes[t].suits = make([]bool, len(seat))
	}
	kinds := make(map[[3]string]*form)
	var last [3]string
	var same *form // the same as for the node before
	for i, n := range seat {
		node, h := &m.p.Nodes[i], &m.nodes[n]
		if words := [3]string{node.Orchestrator, node.Engine, node.Architecture}; same == nil || words != last {
			if last, same = words, kinds[words]; same == nil {
				same = &form{
					orchestrator: strings.ToLower(node.Orchestrator), engine: strings.ToLower(node.Engine),
					arch: CanonicalArchitecture(node.Architecture),
				}
				kinds[words] = same
			}
		}
		*h = have{Node: node, form: same, index: int32(i), cluster: cluster[i], orch: m.orchOf[cluster[i]]}
		h.measure()
		for t := range m.tastes {
			m.tastes[t].suits[n] = suits(m.tastes[t].want, h)
		}
	}
}

// enlist puts every component into its group.
func (m *model) enlist() {
	m.groups = make([]group, 1, len(m.p.Groups)+1)
	m.groups[0].Group = Group{
		Weights: m.p.Weights, OneOrchestrator: m.p.OneOrchestrator, StaleAfter: m.p.StaleAfter,
	}
	for _, g := range m.p.Groups {
		m.groups = append(m.groups, group{Group: g})
	}
	number := map[string]int32{}
	for i := range m.groups {
		m.groups[i].weights = m.groups[i].Weights.normalised()
		number[m.groups[i].ID] = int32(i)
	}
	for i := range m.comps {
		g := number[m.comps[i].Group]
		m.comps[i].group = g
		m.groups[g].members = append(m.groups[g].members, int32(i))
	}
}

// classify puts components with the same requirements into classes.
func (m *model) classify() {
	known := make(map[string]int32, len(m.comps))
	tastes := make(map[string]int32)
	rows := make(map[*float64]int)
	for i := range m.comps {
		c := &m.comps[i]
		g := &m.groups[c.group]
		wish := requirements(c.Component) + g.StaleAfter.String()
		key := fmt.Sprint(wish, c.CPU, c.Memory, g.weights)
		var given []float64
		if m.p.Scores != nil {
			given = m.p.Scores[c.index]
			if len(given) > 0 {
				row, seen := rows[&given[0]]
				if !seen {
					row = len(rows)
					rows[&given[0]] = row
				}
				key += fmt.Sprintf(" row %d", row)
			}
		}
		k, ok := known[key]
		if !ok {
			k = int32(len(m.classes))
			known[key] = k
			want := newRequest(c.Component, g.StaleAfter)
			t, ok := tastes[wish]
			if !ok {
				t = int32(len(m.tastes))
				tastes[wish] = t
				m.tastes = append(m.tastes, taste{want: want})
			}
			m.classes = append(m.classes, class{
				key: key, want: want, weights: g.weights, given: given, taste: t, room: m.room,
			})
		}
		c.class = k
	}
}

// requirements writes everything that filters check except cpu and memory, so that equal text means equal taste.
func requirements(c *Component) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q%q%q%q %d %d %v %v %v %q %q", c.Engines, c.Orchestrators, c.Shared, c.Architecture, c.MinFreeMemory,
		c.MinSecurity, c.MaxCPUUsage, c.MaxMemoryUsage, c.Stays, c.Targets, c.Excluded)
	devices := slices.Clone(c.Devices)
	slices.Sort(devices)
	fmt.Fprintf(&b, "%q", devices)
	for _, k := range sortedKeys(c.Resources) {
		fmt.Fprintf(&b, "%q=%d", k, c.Resources[k])
	}
	for _, k := range sortedKeys(c.Labels) {
		fmt.Fprintf(&b, "%q=%q", k, c.Labels[k])
	}
	if c.Current != nil && !c.Current.whole() {
		fmt.Fprintf(&b, "at %q", *c.Current)
	}
	return b.String()
}

// measure collects what the components demand.
func (m *model) measure() {
	number := make(map[dim]int)
	for i := range m.classes {
		cl := &m.classes[i]
		need := func(d dim, v int64) {
			if v == 0 {
				return
			}
			if _, ok := number[d]; !ok {
				number[d] = len(m.dims)
				m.dims = append(m.dims, d)
			}
			cl.demand = append(cl.demand, amount{number[d], v})
		}
		need(dim{rule: RuleCPU}, cl.want.CPU)
		need(dim{rule: RuleMemory}, cl.want.Memory)
		for _, path := range sortedKeys(cl.want.devices) {
			need(dim{RuleDevice, path}, cl.want.devices[path])
		}
		for _, key := range sortedKeys(cl.want.Resources) {
			need(dim{RuleResource, key}, cl.want.Resources[key])
		}
	}
}

// fill writes the free amounts of each node.
func (m *model) fill() {
	dims := len(m.dims)
	m.free = make([]int64, len(m.nodes)*dims)
	for d, what := range m.dims {
		for n := range m.nodes {
			free := &m.free[n*dims+d]
			switch what.rule {
			case RuleCPU:
				*free = m.nodes[n].freeCPU
			case RuleMemory:
				*free = m.nodes[n].freeMemory
			case RuleDevice:
				*free = int64(m.nodes[n].Devices[what.key])
			default:
				*free = m.nodes[n].Resources[what.key]
			}
		}
	}
}

// connect adds what joins components: affinities, anti-affinities, spreads; and their current places.
func (m *model) connect(number map[string]int32) {
	for i := range m.comps {
		c := &m.comps[i]
		for _, id := range c.AntiAffinity {
			other := number[id]
			c.apart = append(c.apart, other)
			m.comps[other].apart = append(m.comps[other].apart, int32(i))
		}
	}
	for i := range m.comps {
		c := &m.comps[i]
		slices.Sort(c.apart)
		c.apart = slices.Compact(c.apart)
		c.home = m.homes(c)
	}
	m.join(number)
	m.lay()
	for i := range m.p.Spreads {
		s := &m.p.Spreads[i]
		if len(s.Components) == 0 {
			continue
		}
		m.spreads = append(m.spreads, m.spread(s))
		for _, id := range s.Components {
			c := &m.comps[number[id]]
			c.spreads = append(c.spreads, int32(len(m.spreads)-1))
		}
	}
}

// whole reports whether the target can match only one node.
func (t Target) whole() bool { return t.Orchestrator != "" && t.Cluster != "" && t.Node != "" }

// homes returns the candidates that match the component's current place, in order.
func (m *model) homes(c *member) []int32 {
	cl := &m.classes[c.class]
	if c.Current == nil || !c.Current.whole() {
		return cl.home
	}
	if n := m.find(*c.Current); n >= 0 && cl.may(n) {
		return []int32{n}
	}
	return nil
}

// find returns the node at an exact target, or -1.
func (m *model) find(t Target) int32 {
	t.Orchestrator = strings.ToLower(t.Orchestrator)
	n, ok := slices.BinarySearchFunc(m.nodes, t, func(h have, t Target) int {
		return cmp.Or(cmp.Compare(h.orchestrator, t.Orchestrator), cmp.Compare(h.Cluster, t.Cluster),
			cmp.Compare(h.Name, t.Node))
	})
	if !ok {
		return -1
	}
	return int32(n)
}

// matching returns the candidates, in order of node, that match a current place with empty fields.
func (m *model) matching(cl *class) []int32 {
	if cl.want.Current == nil || cl.want.Current.whole() {
		return nil
	}
	var out []int32
	for n := range int32(len(m.nodes)) {
		if cl.may(n) && cl.want.Current.matches(m.nodes[n].Node) {
			out = append(out, n)
		}
	}
	return out
}

func (m *model) spread(s *Spread) spread {
	out := spread{Spread: s, members: len(s.Components), limit: s.limit(), domain: make([]int32, len(m.nodes))}
	number := make(map[string]int32)
	for n := range m.nodes {
		h := &m.nodes[n]
		var name string
		switch s.By {
		case "node":
			name = place(h.Target())
		case "cluster":
			name = place(Target{Orchestrator: h.orchestrator, Cluster: h.Cluster})
		case "orchestrator":
			name = h.orchestrator
		default:
			name = h.Labels[s.By]
		}
		k, ok := number[name]
		if !ok {
			k = int32(len(out.names))
			number[name] = k
			out.names = append(out.names, name)
		}
		out.domain[n] = k
	}
	return out
}

// limit returns how many members one domain may hold: Max, or the share of the members rounded down, at least one.
func (s *Spread) limit() int32 {
	if s.Max > 0 {
		return int32(min(s.Max, MaxComponents))
	}
	// The small addend prevents a share such as 0.29 of 100 from losing a member to rounding.
	return max(1, int32(s.MaxShare*float64(len(s.Components))+1e-9))
}

// points returns the value of the component at the candidate node, without affinities.
func (m *model) points(c, n int32) float64 {
	cl := &m.classes[m.comps[c].class]
	v := cl.points[n]
	if m.isHome(c, n) {
		v += m.move
	}
	return v
}

func (m *model) isHome(c, n int32) bool {
	home := m.comps[c].home
	if len(home) == 0 {
		return false
	}
	_, ok := slices.BinarySearch(home, n)
	return ok
}
