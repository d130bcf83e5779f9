package topology

import (
	"cmp"
	"iter"
	"slices"
	"strings"
)

// Place is one node under the names that job targets, the nodes table and events use.
type Place struct {
	Cluster, Node       string // names
	ClusterKey, NodeKey string // keys in the taxonomy
	In                  *Cluster
	At                  *Node // a copy; changes do not reach the taxonomy
}

// Places lists every node by cluster and node name. The name of a cluster is its Name, unless that is empty or another
// cluster has it as name or key: then it is the key, so that no two places are called alike. The same holds for nodes.
func (t *Taxonomy) Places() []Place {
	clusterNames := t.ClusterNames()
	var places []Place
	for ck, c := range t.Cluster {
		nodeNames := names(c.Node, func(n Node) string { return n.Name })
		for nk, n := range c.Node {
			places = append(places, Place{clusterNames[ck], nodeNames[nk], ck, nk, &c, &n})
		}
	}
	slices.SortFunc(places, func(a, b Place) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Node, b.Node))
	})
	return places
}

// ClusterNames returns the names that targets use for the clusters, by key.
func (t *Taxonomy) ClusterNames() map[string]string {
	return names(t.Cluster, func(c Cluster) string { return c.Name })
}

// names gives each key its element's name when nothing else claims that name, else the key itself.
func names[E any](elements map[string]E, name func(E) string) map[string]string {
	holders := make(map[string]int, len(elements))
	for _, e := range elements {
		holders[name(e)]++
	}
	given := make(map[string]string, len(elements))
	for key, e := range elements {
		own := name(e)
		_, alsoKey := elements[own]
		if own == "" || holders[own] > 1 || (alsoKey && own != key) {
			own = key
		}
		given[key] = own
	}
	return given
}

// Orchestrator is the orchestrator of the cluster, as targets name it.
func (c *Cluster) Orchestrator() string { return strings.ToLower(c.Type) }

// Pods yields every pod of the cluster, with the name of its node where that is known.
func (c *Cluster) Pods() iter.Seq2[string, Pod] {
	return func(yield func(node string, p Pod) bool) {
		for nk, n := range c.Node {
			for _, p := range n.Pod {
				if !yield(cmp.Or(n.Name, nk), p) {
					return
				}
			}
		}
		for _, p := range c.Pod {
			if !yield("", p) {
				return
			}
		}
	}
}
