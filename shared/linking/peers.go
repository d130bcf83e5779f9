package linking

import (
	"cmp"
	"slices"
	"time"

	"github.com/littoral-project/littoral/shared/clusterlink"
	"github.com/littoral-project/littoral/shared/topology"
)

// Peer is a cluster as the fabric sees it.
type Peer struct {
	Orchestrator string `json:"orchestrator"`
	Cluster      string `json:"cluster"`
	Name         string `json:"name"`      // in the fabric
	Peer         bool   `json:"peer"`      // it is part of the fabric
	Reachable    bool   `json:"reachable"` // it is, and telemetry hears of one of its nodes at least
	Reason       string `json:"reason,omitempty"`
}

// Peers tells of each cluster whether links can reach it. What is part of a fabric of ClusterLink says so in telemetry; of
// Multi-Cluster Services every Kubernetes cluster is taken to be one of the set.
func Peers(s clusterlink.Settings, inv *topology.Inventory, staleAfter time.Duration) []Peer {
	byName := map[string]*Peer{}
	for _, p := range inv.Places {
		peer := byName[p.Cluster]
		if peer == nil {
			peer = &Peer{Orchestrator: p.In.Orchestrator(), Cluster: p.Cluster, Name: cmp.Or(s.Peers[p.Cluster], p.Cluster)}
			byName[p.Cluster] = peer
			switch {
			case !s.On():
				peer.Reason = "links are off (LINKS)"
			case !Able(peer.Orchestrator):
				peer.Reason = "it has no Kubernetes"
			case s.Kind == clusterlink.ClusterLink && !p.In.ClusterLink:
				peer.Reason = "it is no peer of ClusterLink, as telemetry says"
			default:
				peer.Peer, peer.Reason = true, "none of its nodes is heard of"
			}
		}
		if peer.Peer && !p.At.Lost(inv.At, staleAfter) {
			peer.Reachable, peer.Reason = true, ""
		}
	}
	peers := make([]Peer, 0, len(byName))
	for _, p := range byName {
		peers = append(peers, *p)
	}
	slices.SortFunc(peers, func(a, b Peer) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return peers
}
