package placement

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// The share of a graded affinity's weight that two components earn by their places: all on the same node, none when
// apart.
const (
	SameCluster      = 0.7
	SameOrchestrator = 0.2

	// NearLatency is the latency of a link that halves what a graded affinity earns across it.
	NearLatency = 10 * time.Millisecond
)

// scope has the factors of an affinity on the same node, in the same cluster and under the same orchestrator. Each
// level includes the next, so node >= cluster >= orch.
type scope struct {
	name                string
	node, cluster, orch float64
}

var graded = &scope{"", 1, SameCluster, SameOrchestrator}

var scopes = map[string]*scope{
	"":             graded,
	"node":         {"node", 1, 0, 0},
	"cluster":      {"cluster", 1, 1, 0},
	"orchestrator": {"orchestrator", 1, 1, 1},
}

// edge is one affinity seen from one of its two components.
type edge struct {
	to     int32
	back   int32 // index of the same affinity among the edges of to
	weight float64
	scope  *scope
	// maxLatency and bandwidth are hard limits, 0 for none.
	maxLatency time.Duration
	bandwidth  int64
}

func (e *edge) limited() bool { return e.maxLatency > 0 || e.bandwidth > 0 }

// join reads the affinities. Several with the same pair and scope become one, with the sum of the weights and the
// strictest limits.
func (m *model) join(number map[string]int32) {
	m.edges = make([][]edge, len(m.comps))
	for _, a := range m.p.Affinities {
		x, y := number[a.A], number[a.B]
		e := edge{weight: a.Weight, scope: scopes[a.Scope], maxLatency: a.MaxLatency, bandwidth: a.Bandwidth}
		if x == y || (e.weight == 0 && !e.limited()) {
			continue
		}
		e.to = y
		m.edges[x] = append(m.edges[x], e)
		e.to = x
		m.edges[y] = append(m.edges[y], e)
	}
	for c, es := range m.edges {
		slices.SortFunc(es, func(a, b edge) int {
			return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.scope.name, b.scope.name),
				cmp.Compare(a.weight, b.weight))
		})
		out := es[:0]
		for _, e := range es {
			if k := len(out) - 1; k >= 0 && out[k].to == e.to && out[k].scope == e.scope {
				out[k].add(&e)
			} else {
				out = append(out, e)
			}
		}
		m.edges[c] = out
	}
	next := make([]int32, len(m.comps)) // number of edges of d to components below c, which come first
	for c := range m.edges {
		for i := range m.edges[c] {
			e := &m.edges[c][i]
			m.comps[c].limited = m.comps[c].limited || e.limited()
			e.back = next[e.to]
			next[e.to]++
		}
	}
}

func (e *edge) add(other *edge) {
	e.weight += other.weight
	e.bandwidth = addUp(e.bandwidth, other.bandwidth)
	if other.maxLatency > 0 && (e.maxLatency == 0 || other.maxLatency < e.maxLatency) {
		e.maxLatency = other.maxLatency
	}
}

// wire is a link between two numbered clusters.
type wire struct {
	*Link
	factor float64
}

// between is the key of a pair of clusters, in either order.
func between(k, l int32) int64 { return int64(min(k, l))<<32 | int64(max(k, l)) }

// lay reads the links. A link to a cluster without nodes is ignored.
func (m *model) lay() {
	if len(m.p.Links) == 0 {
		return
	}
	number := make(map[Target]int32, len(m.clusters))
	for k, n := range m.clusters[:len(m.clusters)-1] {
		number[Target{Orchestrator: m.nodes[n].orchestrator, Cluster: m.nodes[n].Cluster}] = int32(k)
	}
	m.wires = make(map[int64]wire, len(m.p.Links))
	for i := range m.p.Links {
		l := &m.p.Links[i]
		a, knownA := number[l.A.lower()]
		b, knownB := number[l.B.lower()]
		if knownA && knownB {
			f := SameCluster / (1 + float64(l.Latency)/float64(NearLatency)) / (1 + l.Cost)
			m.wires[between(a, b)] = wire{l, f}
		}
	}
}

// closeness returns the factor of the affinity between two nodes.
func (m *model) closeness(e *edge, a, b int32) float64 {
	na, nb := &m.nodes[a], &m.nodes[b]
	switch {
	case a == b:
		return e.scope.node
	case na.cluster == nb.cluster:
		return e.scope.cluster
	default:
		return m.across(e, na.cluster, nb.cluster)
	}
}

// across returns the factor between two different clusters.
func (m *model) across(e *edge, k, l int32) float64 {
	if m.wires != nil && e.scope == graded {
		if w, ok := m.wires[between(k, l)]; ok {
			return w.factor
		}
	}
	if m.orchOf[k] == m.orchOf[l] {
		return e.scope.orch
	}
	return 0
}

func (m *model) closenessName(e *edge, a, b int32) string {
	na, nb := &m.nodes[a], &m.nodes[b]
	_, linked := m.wires[between(na.cluster, nb.cluster)]
	switch {
	case a == b:
		return "same-node"
	case na.cluster == nb.cluster:
		return "same-cluster"
	case linked && e.scope == graded:
		return "linked"
	case na.orch == nb.orch:
		return "same-orchestrator"
	default:
		return "apart"
	}
}

// reach returns the largest factor that component c on node n can still reach over its affinity e, given the nodes that
// the partner may use by itself: the same node if both fit there together, else the partner's other candidates in the
// cluster, else beyond. It never underestimates, so bounds may rely on it.
func (m *model) reach(c int32, e *edge, n int32) float64 {
	cl := &m.classes[m.comps[e.to].class]
	k, o := m.nodes[n].cluster, m.nodes[n].orch
	inCluster, inOrch := cl.inCluster[k], cl.inOrch[o]
	if cl.may(n) {
		if m.together(c, e.to, n) {
			return e.scope.node
		}
		inCluster, inOrch = inCluster-1, inOrch-1
	}
	var most float64
	switch {
	case inCluster > 0:
		return e.scope.cluster
	case inOrch > 0:
		most = e.scope.orch
	}
	if m.wires != nil && e.scope == graded {
		for l, candidates := range cl.inCluster {
			if candidates > 0 && int32(l) != k {
				most = max(most, m.across(e, k, int32(l)))
			}
		}
	}
	return most
}

// together reports whether c and d would fit on node n if it were otherwise empty.
func (m *model) together(c, d, n int32) bool {
	if _, apart := slices.BinarySearch(m.comps[c].apart, d); apart {
		return false
	}
	free := m.free[int(n)*len(m.dims):]
	for _, q := range m.classes[m.comps[c].class].demand {
		rest := free[q.dim]
		for _, r := range m.classes[m.comps[d].class].demand {
			if r.dim == q.dim && q.amount > rest-min(rest, r.amount) {
				return false
			}
		}
	}
	return true
}

// wired reports whether the component's traffic to its placed partners has links from the node: fast enough, and with
// enough free bandwidth for all of it together.
func (s *state) wired(c, n int32) bool {
	m := s.m
	k := m.nodes[n].cluster
	es := m.edges[c]
	for i := range es {
		at := s.at[es[i].to]
		if at < 0 || !es[i].limited() || m.nodes[at].cluster == k {
			continue
		}
		way := between(k, m.nodes[at].cluster)
		w, ok := m.wires[way]
		if !ok || (es[i].maxLatency > 0 && w.Latency > es[i].maxLatency) {
			return false
		}
		if es[i].bandwidth > 0 && s.sentWith(c, k, way) > w.Bandwidth {
			return false
		}
	}
	return true
}

// sentWith returns the bandwidth used on a link once an unplaced component is in the cluster k at its end.
func (s *state) sentWith(c, k int32, way int64) int64 {
	sent := s.sent[way]
	for i := range s.m.edges[c] {
		e := &s.m.edges[c][i]
		if at := s.at[e.to]; at >= 0 && between(k, s.m.nodes[at].cluster) == way {
			sent = addUp(sent, e.bandwidth)
		}
	}
	return sent
}

// send adds the bandwidth between the component at the node and its placed partners, or subtracts it.
func (s *state) send(c, n int32, sign int64) {
	m := s.m
	k := m.nodes[n].cluster
	for i := range m.edges[c] {
		e := &m.edges[c][i]
		if at := s.at[e.to]; at >= 0 && e.bandwidth > 0 && m.nodes[at].cluster != k {
			s.sent[between(k, m.nodes[at].cluster)] += sign * e.bandwidth
		}
	}
}

// unwired returns what the links lack for the component on the node to reach its placed partners.
func (s *state) unwired(c, n int32) []Failure {
	m := s.m
	k := m.nodes[n].cluster
	var out []Failure
	for i := range m.edges[c] {
		e := &m.edges[c][i]
		at := s.at[e.to]
		if at < 0 || !e.limited() || m.nodes[at].cluster == k {
			continue
		}
		id, way := m.comps[e.to].ID, between(k, m.nodes[at].cluster)
		w, known := m.wires[way]
		has := "no known link"
		if e.maxLatency > 0 && (!known || w.Latency > e.maxLatency) {
			if known {
				has = w.Latency.String()
			}
			out = append(out, Failure{
				Rule: RuleLatency, Key: id, Needed: "at most " + e.maxLatency.String(), Available: has,
				Detail: fmt.Sprintf("needs at most %s to %s, there is %s", e.maxLatency, id, has),
			})
		}
		if e.bandwidth == 0 {
			continue
		}
		if sent := s.sentWith(c, k, way); !known || sent > w.Bandwidth {
			if known {
				has = fmt.Sprintf("%d in all", w.Bandwidth)
			}
			out = append(out, Failure{
				Rule: RuleBandwidth, Key: id, Needed: fmt.Sprint(e.bandwidth), Available: has,
				Detail: fmt.Sprintf("needs bandwidth %d to %s, %d with all else on the way, there is %s", e.bandwidth, id,
					sent, has),
			})
		}
	}
	return out
}
