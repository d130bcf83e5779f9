package placement

import (
	"cmp"
	"slices"
	"strings"
)

// nodeIndex is the nodes of a problem in order of target, independent of the order in which they are listed.
type nodeIndex struct {
	order    []int32     // indices in Problem.Nodes
	clusters []int32     // where each cluster begins in order; one more at the end
	of       []Target    // of each cluster: the orchestrator in lower case, and its name
	repeated map[int]int // of a node with the target of one listed before it: the first of these
}

// indexNodes sorts nodes into clusters and these by name. It takes linear time if the size of clusters is bounded, or if
// nodes are listed by name.
func indexNodes(nodes []Node) *nodeIndex {
	l := &nodeIndex{order: make([]int32, len(nodes))}
	cluster := l.sortClusters(nodes)
	next, last := slices.Clone(l.clusters), make([]string, len(l.of))
	mixed := make([]bool, len(l.of))
	for i, k := range cluster {
		name := nodes[i].Name
		mixed[k] = mixed[k] || (next[k] > l.clusters[k] && name <= last[k])
		l.order[next[k]], last[k] = int32(i), name
		next[k]++
	}
	for k, mixed := range mixed {
		if mixed {
			l.sortNames(nodes, l.order[l.clusters[k]:l.clusters[k+1]])
		}
	}
	return l
}

// sortClusters finds the clusters and returns that of each node.
func (l *nodeIndex) sortClusters(nodes []Node) []int32 {
	cluster := make([]int32, len(nodes))
	known := make(map[Target]int32)
	for i := range nodes {
		n := &nodes[i]
		if i > 0 && n.Cluster == nodes[i-1].Cluster && n.Orchestrator == nodes[i-1].Orchestrator {
			cluster[i] = cluster[i-1]
			continue
		}
		t := Target{Orchestrator: strings.ToLower(n.Orchestrator), Cluster: n.Cluster}
		k, seen := known[t]
		if !seen {
			k = int32(len(l.of))
			known[t] = k
			l.of = append(l.of, t)
		}
		cluster[i] = k
	}
	slices.SortFunc(l.of, func(a, b Target) int {
		return cmp.Or(cmp.Compare(a.Orchestrator, b.Orchestrator), cmp.Compare(a.Cluster, b.Cluster))
	})
	rank := make([]int32, len(l.of))
	for k, t := range l.of {
		rank[known[t]] = int32(k)
	}
	l.clusters = make([]int32, len(l.of)+1)
	for i := range cluster {
		cluster[i] = rank[cluster[i]]
		l.clusters[cluster[i]+1]++
	}
	for k := range l.of {
		l.clusters[k+1] += l.clusters[k]
	}
	return cluster
}

// sortNames sorts the members of a cluster and notes those of one name.
func (l *nodeIndex) sortNames(nodes []Node, members []int32) {
	slices.SortFunc(members, func(a, b int32) int {
		return cmp.Or(cmp.Compare(nodes[a].Name, nodes[b].Name), cmp.Compare(a, b))
	})
	first := 0
	for i := 1; i < len(members); i++ {
		if nodes[members[i]].Name != nodes[members[first]].Name {
			first = i
			continue
		}
		if l.repeated == nil {
			l.repeated = make(map[int]int)
		}
		l.repeated[int(members[i])] = int(members[first])
	}
}
