package placement

import (
	"cmp"
	"slices"
	"time"

	"github.com/littoral-project/littoral/shared/placement/solver"
)

// The share of a graded affinity's weight that two components earn by their places: all on the same node, none when
// apart.
const (
	SameCluster      = 0.7
	SameOrchestrator = 0.2

	// NearLatency is the latency of a link that halves what a graded affinity earns across it.
	NearLatency = 10 * time.Millisecond
)

// scopes has the factors of each Affinity.Scope; the empty one is graded.
var scopes = map[string]*solver.Scope{
	"":             {Node: 1, Cluster: SameCluster, Orchestrator: SameOrchestrator, Linked: true},
	"node":         {Name: "node", Node: 1},
	"cluster":      {Name: "cluster", Node: 1, Cluster: 1},
	"orchestrator": {Name: "orchestrator", Node: 1, Cluster: 1, Orchestrator: 1},
}

// readAffinities makes edges of the affinities. Several with the same pair and scope become one, with the sum of the
// weights and the strictest limits.
func (m *model) readAffinities(number map[string]int32) {
	m.Edges = make([][]solver.Edge, len(m.comps))
	for _, a := range m.p.Affinities {
		x, y := number[a.A], number[a.B]
		e := solver.Edge{Weight: a.Weight, Scope: scopes[a.Scope], MaxLatency: a.MaxLatency, Bandwidth: a.Bandwidth, NeedsLink: a.NeedsLink}
		if x == y || (e.Weight == 0 && !e.Limited()) {
			continue
		}
		e.To = y
		m.Edges[x] = append(m.Edges[x], e)
		e.To = x
		m.Edges[y] = append(m.Edges[y], e)
	}
	for _, ch := range m.p.Channels { // they earn nothing, but what talks is searched together
		if x, y := number[ch.From], number[ch.To]; x != y {
			e := solver.Edge{Scope: scopes[""]}
			e.To = y
			m.Edges[x] = append(m.Edges[x], e)
			e.To = x
			m.Edges[y] = append(m.Edges[y], e)
		}
	}
	for c, es := range m.Edges {
		slices.SortFunc(es, func(a, b solver.Edge) int {
			return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.Scope.Name, b.Scope.Name),
				cmp.Compare(a.Weight, b.Weight))
		})
		out := es[:0]
		for _, e := range es {
			if k := len(out) - 1; k >= 0 && out[k].To == e.To && out[k].Scope == e.Scope {
				add(&out[k], &e)
			} else {
				out = append(out, e)
			}
		}
		m.Edges[c] = out
	}
	next := make([]int32, len(m.comps)) // number of edges of d to components below c, which come first
	for c := range m.Edges {
		for i := range m.Edges[c] {
			e := &m.Edges[c][i]
			m.Components[c].Limited = m.Components[c].Limited || e.Limited()
			e.Back = next[e.To]
			next[e.To]++
		}
	}
}

// add adds another affinity of the same pair.
func add(e, other *solver.Edge) {
	e.Weight += other.Weight
	e.NeedsLink = e.NeedsLink || other.NeedsLink
	e.Bandwidth = solver.AddUp(e.Bandwidth, other.Bandwidth)
	if other.MaxLatency > 0 && (e.MaxLatency == 0 || other.MaxLatency < e.MaxLatency) {
		e.MaxLatency = other.MaxLatency
	}
}

// readLinks reads the links and which clusters can be linked. One to a cluster without nodes is ignored.
func (m *model) readLinks() {
	if len(m.p.Links)+len(m.p.Peers) == 0 {
		return
	}
	number := make(map[Target]int32, len(m.Clusters))
	for k, n := range m.Clusters[:len(m.Clusters)-1] {
		number[Target{Orchestrator: m.nodes[n].orchestrator, Cluster: m.nodes[n].Cluster}] = int32(k)
	}
	m.Peers = make([]bool, len(m.OrchestratorOf))
	for _, t := range m.p.Peers {
		if k, known := number[t.lower()]; known {
			m.Peers[k] = true
		}
	}
	if len(m.p.Links) == 0 {
		return
	}
	m.Links = make(map[int64]solver.Link, len(m.p.Links))
	for i := range m.p.Links {
		l := &m.p.Links[i]
		a, knownA := number[l.A.lower()]
		b, knownB := number[l.B.lower()]
		if knownA && knownB {
			f := SameCluster / (1 + float64(l.Latency)/float64(NearLatency)) / (1 + l.Cost)
			m.Links[solver.Between(a, b)] = solver.Link{Latency: l.Latency, Bandwidth: l.Bandwidth, Factor: f}
		}
	}
}

// closeness names how close two nodes are to an affinity.
func (m *model) closeness(e *solver.Edge, a, b int32) string {
	na, nb := &m.Nodes[a], &m.Nodes[b]
	_, linked := m.Links[solver.Between(na.Cluster, nb.Cluster)]
	switch {
	case a == b:
		return "same-node"
	case na.Cluster == nb.Cluster:
		return "same-cluster"
	case linked && e.Scope.Linked:
		return "linked"
	case na.Orchestrator == nb.Orchestrator:
		return "same-orchestrator"
	default:
		return "apart"
	}
}
