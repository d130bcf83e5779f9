package placement

// How much of an affinity's weight two components earn by where they are. On the same node it is all of it, apart none.
// Latency and cost between clusters will refine SameOrchestrator and apart; until then a shared orchestrator stands in
// for being near.
const (
	SameCluster      = 0.7
	SameOrchestrator = 0.2
)

// edge is one affinity seen from one of its components.
type edge struct {
	to     int32
	weight float64
}

// closeness returns the factor between two nodes: 1, SameCluster, SameOrchestrator or 0.
func (m *model) closeness(a, b int32) float64 {
	switch na, nb := &m.nodes[a], &m.nodes[b]; {
	case a == b:
		return 1
	case na.cluster == nb.cluster:
		return SameCluster
	case na.orch == nb.orch:
		return SameOrchestrator
	default:
		return 0
	}
}

func closenessName(factor float64) string {
	switch factor {
	case 1:
		return "same-node"
	case SameCluster:
		return "same-cluster"
	case SameOrchestrator:
		return "same-orchestrator"
	default:
		return "apart"
	}
}

// reach returns the largest factor that component c on node n can still reach with component d, given the nodes d may
// use alone: the same node when both fit there together, else d's other candidates in the cluster, else under the
// orchestrator. It never understates, so bounds may rest on it.
func (m *model) reach(c, d, n int32) float64 {
	cl := &m.classes[m.comps[d].class]
	inCluster, inOrch := cl.inCluster[m.nodes[n].cluster], cl.inOrch[m.nodes[n].orch]
	if cl.index(n) >= 0 {
		if m.together(c, d, n) {
			return 1
		}
		inCluster, inOrch = inCluster-1, inOrch-1
	}
	switch {
	case inCluster > 0:
		return SameCluster
	case inOrch > 0:
		return SameOrchestrator
	default:
		return 0
	}
}

// together says whether c and d could share the node n if nothing else of the problem were there.
func (m *model) together(c, d, n int32) bool {
	for _, x := range m.comps[c].apart {
		if x == d {
			return false
		}
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
