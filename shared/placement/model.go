package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/placement/solver"
	"github.com/littoral-project/littoral/shared/problem"
)

// model is a problem prepared for solving: the numbers that the solver needs, and what they stand for. Components are
// numbered by id and nodes by target, so the order in which a caller lists them does not matter. The lists in lower
// case have the same numbers as those of the solver.
type model struct {
	*solver.Model
	p             *Problem
	comps         []component
	nodes         []nodeInfo
	classes       []class
	sets          []constraintSet
	dims          []dim
	spreads       []spread
	groups        []Weights // of each group, sum 1
	orchestrators []string
	routes        *network.Routes  // of Problem.Network, if there are channels
	sites         []string         // network nodes that nodes are attached to
	channels      []int            // of each of the solver: its index in Problem.Channels
	former        map[Target]int32 // first node that matches a current place, see formerNode
}

// component is one component.
type component struct {
	*Component
	index int // in Problem.Components
}

// class is a set of components with equal requirements, weights, given scores and preferences.
type class struct {
	request     *request
	weights     Weights   // sum 1
	given       []float64 // Problem.Scores of its first member, by index in Problem.Nodes; nil to compute scores
	preferences []int     // of Problem.Preferences
	set         int32
	watts       float64 // least watts per core among the candidates
	rejected    map[Rule]int
	home        []int32 // candidates that match a Current with empty fields; then Current is part of the requirements
}

// spread is a Spread with the names of its domains.
type spread struct {
	*Spread
	names []string
}

func newModel(p *Problem, index *nodeIndex) (*model, error) {
	m := &model{p: p, Model: &solver.Model{MoveCost: p.MoveCost, Budget: p.Budget}}
	m.Names = m
	if m.MoveCost == 0 {
		m.MoveCost = DefaultMoveCost
	}
	if m.Budget == 0 {
		m.Budget = min(MaxBudget, DefaultBudget+BudgetPerComponent*int64(len(p.Components))+
			BudgetPerNode*int64(len(p.Nodes)))
	}
	m.sortComponents()
	m.readGroups()
	number := make(map[string]int32, len(m.comps))
	for i := range m.comps {
		number[m.comps[i].ID] = int32(i)
	}
	m.classify()
	if len(m.classes)*len(p.Nodes) > MaxPairs {
		return nil, tooMany("components", "%d different requirements times %d nodes", len(m.classes), len(p.Nodes))
	}
	m.collectDemand()
	if len(m.dims)*len(p.Nodes) > MaxPairs {
		return nil, tooMany("nodes", "%d kinds of resources times %d nodes", len(m.dims), len(p.Nodes))
	}
	m.readNodes(index)
	if len(p.Spreads)*len(m.nodes) > MaxPairs {
		return nil, tooMany("spreads", "%d spreads times %d nodes", len(p.Spreads), len(m.nodes))
	}
	m.fillFree()
	m.findCandidates()
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

// sortComponents numbers the components by id.
func (m *model) sortComponents() {
	m.comps = make([]component, len(m.p.Components))
	for i := range m.p.Components {
		m.comps[i] = component{Component: &m.p.Components[i], index: i}
	}
	slices.SortFunc(m.comps, func(a, b component) int { return cmp.Compare(a.ID, b.ID) })
	m.Components = make([]solver.Component, len(m.comps))
}

// readNodes prepares the nodes in their order, and finds out which constraint sets each one meets. It reads them in the
// order in which they are listed, since each is large.
func (m *model) readNodes(l *nodeIndex) {
	m.Clusters = l.clusters
	m.OrchestratorOf = make([]int32, len(l.of))
	for k, t := range l.of {
		if k == 0 || t.Orchestrator != l.of[k-1].Orchestrator {
			m.orchestrators = append(m.orchestrators, m.p.Nodes[l.order[l.clusters[k]]].Orchestrator)
		}
		m.OrchestratorOf[k] = int32(len(m.orchestrators) - 1)
	}
	m.Orchestrators = len(m.orchestrators)
	number := make([]int32, len(l.order))
	m.Nodes = make([]solver.Node, len(l.order))
	for k, o := range m.OrchestratorOf {
		for n := l.clusters[k]; n < l.clusters[k+1]; n++ {
			number[l.order[n]], m.Nodes[n] = n, solver.Node{Cluster: int32(k), Orchestrator: o}
		}
	}
	m.nodes = make([]nodeInfo, len(number))
	for t := range m.sets {
		m.sets[t].met = make([]bool, len(number))
	}
	kinds := make(map[[3]string]*nodeWords)
	var last [3]string
	var same *nodeWords // the same as for the node before
	for i, n := range number {
		node, info := &m.p.Nodes[i], &m.nodes[n]
		if words := [3]string{node.Orchestrator, node.Engine, node.Architecture}; same == nil || words != last {
			if last, same = words, kinds[words]; same == nil {
				same = &nodeWords{
					orchestrator: strings.ToLower(node.Orchestrator), engine: strings.ToLower(node.Engine),
					architecture: CanonicalArchitecture(node.Architecture),
				}
				kinds[words] = same
			}
		}
		*info = nodeInfo{Node: node, nodeWords: same, index: int32(i)}
		info.compute()
		for t := range m.sets {
			m.sets[t].met[n] = m.sets[t].request.meets(info)
		}
	}
}

// readGroups puts every component into its group. The first group is all components that are in none.
func (m *model) readGroups() {
	all := append([]Group{{Weights: m.p.Weights, OneOrchestrator: m.p.OneOrchestrator}}, m.p.Groups...)
	m.OneOrchestrator = m.p.OneOrchestrator && len(m.p.Groups) == 0
	m.Groups = make([]solver.Group, len(all))
	number := map[string]int32{}
	for i := range all {
		m.Groups[i].OneOrchestrator = all[i].OneOrchestrator
		m.groups = append(m.groups, all[i].Weights.normalised())
		number[all[i].ID] = int32(i)
	}
	for i := range m.comps {
		g := number[m.comps[i].Group]
		m.Components[i].Group = g
		m.Groups[g].Members = append(m.Groups[g].Members, int32(i))
	}
}

// staleAfter returns the age at which telemetry is stale for a group.
func (m *model) staleAfter(group int32) time.Duration {
	if group == 0 {
		return m.p.StaleAfter
	}
	return m.p.Groups[group-1].StaleAfter
}

// classify puts components with the same requirements into classes. What belongs to a class's key is what its
// constraints read (see constraint.key), the settings of the group, given scores and preferences.
func (m *model) classify() {
	known := make(map[string]int32, len(m.comps))
	sets := make(map[string]int32)
	rows := make(map[*float64]int64)
	weights := make(map[Weights]int64)
	preferences := m.preferences()
	var key []byte
	for i := range m.comps {
		c, group := &m.comps[i], m.Components[i].Group
		stale := m.staleAfter(group)
		key = setKey(appendInt(key[:0], int64(stale)), c.Component)
		ofSet := len(key)
		key = append(cpu{}.key(append(key, "cpu "...), c.Component), ' ')
		key = append(memory{}.key(key, c.Component), ' ')
		w, seen := weights[m.groups[group]]
		if !seen {
			w = int64(len(weights))
			weights[m.groups[group]] = w
		}
		key = append(strconv.AppendInt(key, w, 10), ' ')
		var given []float64
		if m.p.Scores != nil {
			given = m.p.Scores[c.index]
			if len(given) > 0 {
				row, seen := rows[&given[0]]
				if !seen {
					row = int64(len(rows))
					rows[&given[0]] = row
				}
				key = strconv.AppendInt(key, row, 10)
			}
		}
		preferred := preferences[c.ID]
		for _, i := range preferred {
			key = strconv.AppendInt(append(key, " +"...), int64(i), 10)
		}
		k, ok := known[string(key)]
		if !ok {
			k = int32(len(m.classes))
			known[string(key)] = k
			r := newRequest(c.Component, stale)
			t, ok := sets[string(key[:ofSet])]
			if !ok {
				t = int32(len(m.sets))
				sets[string(key[:ofSet])] = t
				m.sets = append(m.sets, constraintSet{request: r})
			}
			m.classes = append(m.classes, class{request: r, weights: m.groups[group], given: given, preferences: preferred, set: t})
			m.Classes = append(m.Classes, solver.Class{Key: string(key)})
		}
		m.Components[i].Class = k
	}
}

// preferences are those of each component, by its id.
func (m *model) preferences() map[string][]int {
	of := make(map[string][]int)
	for i := range m.p.Preferences {
		for _, id := range m.p.Preferences[i].Components {
			of[id] = append(of[id], i)
		}
	}
	return of
}

// collectDemand collects what the components demand.
func (m *model) collectDemand() {
	number := make(map[dim]int)
	for i := range m.classes {
		for _, kind := range amountConstraints {
			kind.demand(m.classes[i].request, func(key string, v int64) {
				d, ok := number[dim{kind, key}]
				if !ok {
					d = len(m.dims)
					number[dim{kind, key}] = d
					m.dims = append(m.dims, dim{kind, key})
				}
				m.Classes[i].Demand = append(m.Classes[i].Demand, solver.Amount{Dim: d, Amount: v})
			})
		}
	}
	m.Dims = len(m.dims)
}

// fillFree writes the free amounts of each node.
func (m *model) fillFree() {
	dims := len(m.dims)
	m.Free = make([]int64, len(m.nodes)*dims)
	for d, what := range m.dims {
		for n := range m.nodes {
			m.Free[n*dims+d] = what.kind.free(&m.nodes[n], what.key)
		}
	}
}

// connect adds what joins components: affinities, anti-affinities, spreads; and their current places.
func (m *model) connect(number map[string]int32) {
	for i := range m.comps {
		c := &m.Components[i]
		for _, id := range m.comps[i].AntiAffinity {
			other := number[id]
			c.Apart = append(c.Apart, other)
			m.Components[other].Apart = append(m.Components[other].Apart, int32(i))
		}
	}
	for i := range m.comps {
		c := &m.Components[i]
		slices.Sort(c.Apart)
		c.Apart = slices.Compact(c.Apart)
		c.Home = m.homes(int32(i))
	}
	m.readAffinities(number)
	m.readLinks()
	m.readChannels(number)
	for i := range m.p.Spreads {
		s := &m.p.Spreads[i]
		if len(s.Components) == 0 {
			continue
		}
		m.readSpread(s)
		for _, id := range s.Components {
			c := &m.Components[number[id]]
			c.Spreads = append(c.Spreads, int32(len(m.spreads)-1))
		}
	}
}

// whole reports whether the target can match only one node.
func (t Target) whole() bool { return t.Orchestrator != "" && t.Cluster != "" && t.Node != "" }

// homes returns the candidates that match the component's current place, in order.
func (m *model) homes(c int32) []int32 {
	current := m.comps[c].Current
	if current == nil || !current.whole() {
		return m.classes[m.Components[c].Class].home
	}
	if n := m.find(*current); n >= 0 && m.ClassOf(c).May(n) {
		return []int32{n}
	}
	return nil
}

// request returns what the component asks for.
func (m *model) request(c int32) *request { return m.classes[m.Components[c].Class].request }

// find returns the node at an exact target, or -1.
func (m *model) find(t Target) int32 {
	t.Orchestrator = strings.ToLower(t.Orchestrator)
	n, ok := slices.BinarySearchFunc(m.nodes, t, func(n nodeInfo, t Target) int {
		return cmp.Or(cmp.Compare(n.orchestrator, t.Orchestrator), cmp.Compare(n.Cluster, t.Cluster),
			cmp.Compare(n.Name, t.Node))
	})
	if !ok {
		return -1
	}
	return int32(n)
}

// The following methods make the model the solver's Names.

func (m *model) ComponentID(c int32) string { return m.comps[c].ID }

func (m *model) NodeID(n int32) solver.NodeID {
	return solver.NodeID{m.nodes[n].orchestrator, m.nodes[n].Cluster, m.nodes[n].Name}
}

func (m *model) DimID(d int) string { return string(m.dims[d].kind.rule()) + " " + m.dims[d].key }

func (m *model) FindNode(id solver.NodeID) int32 { return m.find(Target{id[0], id[1], id[2]}) }

// matching returns the candidates, in order of node, that match a current place with empty fields.
func (m *model) matching(class int) []int32 {
	current := m.classes[class].request.Current
	if current == nil || current.whole() {
		return nil
	}
	var out []int32
	for n := range int32(len(m.nodes)) {
		if m.Classes[class].May(n) && current.matches(m.nodes[n].Node) {
			out = append(out, n)
		}
	}
	return out
}

func (m *model) readSpread(s *Spread) {
	out := solver.Spread{Limit: s.limit(), Domain: make([]int32, len(m.nodes)), ByNode: s.By == "node"}
	var names []string
	number := make(map[string]int32)
	for n := range m.nodes {
		node := &m.nodes[n]
		var name string
		switch s.By {
		case "node":
			name = place(node.Target())
		case "cluster":
			name = place(Target{Orchestrator: node.orchestrator, Cluster: node.Cluster})
		case "orchestrator":
			name = node.orchestrator
		default:
			name = node.Labels[s.By]
		}
		k, ok := number[name]
		if !ok {
			k = int32(len(names))
			number[name] = k
			names = append(names, name)
		}
		out.Domain[n] = k
	}
	out.Domains = len(names)
	m.Spreads = append(m.Spreads, out)
	m.spreads = append(m.spreads, spread{Spread: s, names: names})
}

// limit returns how many members one domain may hold: Max, or the share of the members rounded down, at least one.
func (s *Spread) limit() int32 {
	if s.Max > 0 {
		return int32(min(s.Max, MaxComponents))
	}
	// The small addend prevents a share such as 0.29 of 100 from losing a member to rounding.
	return max(1, int32(s.MaxShare*float64(len(s.Components))+1e-9))
}
