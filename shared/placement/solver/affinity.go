package solver

import "slices"

// Closeness returns the factor of the affinity between two nodes.
func (m *Model) Closeness(e *Edge, a, b int32) float64 {
	na, nb := &m.Nodes[a], &m.Nodes[b]
	switch {
	case a == b:
		return e.Scope.Node
	case na.Cluster == nb.Cluster:
		return e.Scope.Cluster
	default:
		return m.across(e, na.Cluster, nb.Cluster)
	}
}

// across returns the factor between two different clusters.
func (m *Model) across(e *Edge, k, l int32) float64 {
	if m.Links != nil && e.Scope.Linked {
		if w, ok := m.Links[Between(k, l)]; ok {
			return w.Factor
		}
	}
	if m.OrchestratorOf[k] == m.OrchestratorOf[l] {
		return e.Scope.Orchestrator
	}
	return 0
}

// reach returns the largest factor that component c on node n can still reach over its affinity e, given the nodes that
// the partner may use by itself: the same node if both fit there together, else the partner's other candidates in the
// cluster, else beyond. It never underestimates, so bounds may rely on it.
func (m *Model) reach(c int32, e *Edge, n int32) float64 {
	cl := &m.Classes[m.Components[e.To].Class]
	k, o := m.Nodes[n].Cluster, m.Nodes[n].Orchestrator
	inCluster, inOrch := cl.inCluster[k], cl.inOrch[o]
	if cl.May(n) {
		if m.fitTogether(c, e.To, n) {
			return e.Scope.Node
		}
		inCluster, inOrch = inCluster-1, inOrch-1
	}
	var most float64
	switch {
	case inCluster > 0:
		return e.Scope.Cluster
	case inOrch > 0:
		most = e.Scope.Orchestrator
	}
	if m.Links != nil && e.Scope.Linked {
		for l, candidates := range cl.inCluster {
			if candidates > 0 && int32(l) != k {
				most = max(most, m.across(e, k, int32(l)))
			}
		}
	}
	return most
}

// fitTogether reports whether c and d would fit on node n if it were otherwise empty.
func (m *Model) fitTogether(c, d, n int32) bool {
	if _, apart := slices.BinarySearch(m.Components[c].Apart, d); apart {
		return false
	}
	free := m.Free[int(n)*m.Dims:]
	for _, q := range m.Classes[m.Components[c].Class].Demand {
		rest := free[q.Dim]
		for _, r := range m.Classes[m.Components[d].Class].Demand {
			if r.Dim == q.Dim && q.Amount > rest-min(rest, r.Amount) {
				return false
			}
		}
	}
	return true
}

// LinksSuffice reports whether the component's traffic to its placed partners has links from the node: between clusters that can
// be linked, fast enough, and with enough free bandwidth for all of it together.
func (s *State) LinksSuffice(c, n int32) bool {
	m := s.m
	k := m.Nodes[n].Cluster
	es := m.Edges[c]
	for i := range es {
		at := s.At[es[i].To]
		if at < 0 || !es[i].Limited() || m.Nodes[at].Cluster == k {
			continue
		}
		if es[i].NeedsLink && !m.Joined(k, m.Nodes[at].Cluster) {
			return false
		}
		if es[i].MaxLatency == 0 && es[i].Bandwidth == 0 {
			continue
		}
		way := Between(k, m.Nodes[at].Cluster)
		w, ok := m.Links[way]
		if !ok || (es[i].MaxLatency > 0 && w.Latency > es[i].MaxLatency) {
			return false
		}
		if es[i].Bandwidth > 0 && s.SentWith(c, k, way) > w.Bandwidth {
			return false
		}
	}
	return true
}

// SentWith returns the bandwidth used on a link once an unplaced component is in the cluster k at its end.
func (s *State) SentWith(c, k int32, way int64) int64 {
	sent := s.sentOver[way]
	for i := range s.m.Edges[c] {
		e := &s.m.Edges[c][i]
		if at := s.At[e.To]; at >= 0 && Between(k, s.m.Nodes[at].Cluster) == way {
			sent = AddUp(sent, e.Bandwidth)
		}
	}
	return sent
}

// sendOverLinks adds the bandwidth between the component at the node and its placed partners, or subtracts it.
func (s *State) sendOverLinks(c, n int32, sign int64) {
	m := s.m
	k := m.Nodes[n].Cluster
	for i := range m.Edges[c] {
		e := &m.Edges[c][i]
		if at := s.At[e.To]; at >= 0 && e.Bandwidth > 0 && m.Nodes[at].Cluster != k {
			s.sentOver[Between(k, m.Nodes[at].Cluster)] += sign * e.Bandwidth
		}
	}
}
