// Package solver finds the best places for components on nodes. It knows numbers only: points, amounts, limits, which
// components belong together; what they stand for, and why a node is no candidate, is for package placement to say,
// whose page has the formulas.
//
// Read model.go and state.go (who is where; it keeps the rules), then stages.go, which runs the rest: slots.go where a
// flow is the answer; start.go, bound.go with dual.go, dual_evaluate.go and subgradient.go; localsearch.go; branch.go
// with mask.go and reoptimize.go; depthfirst.go; for channels channel.go, joint.go and anneal.go.
package solver

import (
	"math"
	"slices"
	"time"
)

// Model is a problem in numbers. Components and nodes have an order, in which the first of equals wins; nodes of one
// cluster follow each other, and so do clusters of one orchestrator.
type Model struct {
	Components []Component
	Nodes      []Node
	Classes    []Class
	Dims       int     // kinds of amounts
	Free       []int64 // of each node and dim: Free[node*Dims+dim]
	Edges      [][]Edge
	Links      map[int64]Link // by Between(cluster, cluster); nil without links
	Spreads    []Spread
	Groups     []Group
	// Channels take routes between the sites of nodes; Media has what is free of each medium. Routes returns the ways from
	// one site to another, always the same ones; it is asked once for each pair.
	Channels []Channel
	Media    []int64
	Routes   func(from, to int32) []Route
	// Clusters[k] is the first node of cluster k, and Clusters[k+1] the one after its last.
	Clusters       []int32
	OrchestratorOf []int32 // of each cluster
	Peers          []bool  // which clusters links can be made between; nil = none
	Orchestrators  int     // number of them
	MoveCost       float64 // earned by staying at home
	// OneOrchestrator demands one for all components; each is tried. Groups demand one for themselves.
	OneOrchestrator bool
	Budget          int64 // work units of the search
	Names           Names

	isWhole int // 1 if all points are whole numbers, -1 if not, 0 if not yet checked
	last    *Memory
	buffer  *sortBuffer
	routes  map[[2]int32][]Route
}

// Names identify components, nodes and dims across problems, for a Memory.
type Names interface {
	ComponentID(c int32) string
	NodeID(n int32) NodeID
	DimID(d int) string
	// FindNode returns the number of a node, or -1.
	FindNode(id NodeID) int32
}

// NodeID is orchestrator, cluster and name of a node.
type NodeID [3]string

// Component is one thing to place.
type Component struct {
	Class int32
	Group int32
	// Home lists the candidates, in order, at which it stays. Staying earns Model.MoveCost, which is the same as charging
	// for a move but leaves 0 as the value of being unplaced.
	Home    []int32
	Apart   []int32 // components that must be on other nodes, in order
	Spreads []int32 // spreads it belongs to
	Limited bool    // one of its edges has hard limits
	// Channels lists those that begin or end here; none begins and ends at one component.
	Channels []int32
}

// Node is one place.
type Node struct{ Cluster, Orchestrator, Site int32 }

// Group is a set of components that share one orchestrator if they demand one.
type Group struct {
	OneOrchestrator bool
	Members         []int32
}

// Class is a set of components with equal requirements and scores; they share candidates.
type Class struct {
	Key    string // equal for equal classes, in other problems too
	Demand []Amount
	Points []float64 // by node, at least 0; negative if it is not a candidate

	most, least float64 // of the points of candidates, 0 and +Inf without one
	count       int     // of candidates
	inCluster   []int32 // number of candidates in each cluster
	inOrch      []int32
	order       []int32 // the first candidates by falling points, ties by node; as many as were needed so far
	buffer      *sortBuffer
}

// Amount is how much of a dim one component takes.
type Amount struct {
	Dim    int
	Amount int64
}

// Spread allows at most Limit of its members in one domain.
type Spread struct {
	Limit   int32
	Domain  []int32 // of each node
	Domains int     // number of them
	ByNode  bool    // each node is a domain of its own
}

// Prepare allocates what the classes keep about their candidates. Afterwards Points are to be filled cluster by
// cluster, each followed by Tally.
func (m *Model) Prepare() {
	m.buffer = &sortBuffer{work: int64(len(m.Classes)) * int64(len(m.Nodes))} // and the work of filling Points
	for i := range m.Classes {
		cl := &m.Classes[i]
		cl.least, cl.buffer = math.Inf(1), m.buffer
		cl.Points = make([]float64, len(m.Nodes))
		cl.inCluster, cl.inOrch = make([]int32, len(m.OrchestratorOf)), make([]int32, m.Orchestrators)
	}
}

// Tally counts the candidates of a class in a cluster, once their points are there.
func (m *Model) Tally(cl *Class, cluster int32) {
	found := int32(0)
	for _, v := range cl.Points[m.Clusters[cluster]:m.Clusters[cluster+1]] {
		if v >= 0 {
			found++
			cl.most, cl.least = max(cl.most, v), min(cl.least, v)
		}
	}
	cl.count += int(found)
	cl.inCluster[cluster] = found
	cl.inOrch[m.OrchestratorOf[cluster]] += found
}

// Count returns how many candidates the class has.
func (cl *Class) Count() int { return cl.count }

// May reports whether the node is a candidate.
func (cl *Class) May(n int32) bool { return cl.Points[n] >= 0 }

// ClassOf returns the class of a component.
func (m *Model) ClassOf(c int32) *Class { return &m.Classes[m.Components[c].Class] }

// points returns the value of the component at the candidate node, without affinities.
func (m *Model) points(c, n int32) float64 {
	v := m.ClassOf(c).Points[n]
	if m.IsHome(c, n) {
		v += m.MoveCost
	}
	return v
}

// IsHome reports whether the component stays if it is at the node.
func (m *Model) IsHome(c, n int32) bool {
	home := m.Components[c].Home
	if len(home) == 0 {
		return false
	}
	_, ok := slices.BinarySearch(home, n)
	return ok
}

// Edge is one affinity seen from one of its two components. In Model.Edges it is in the list of that component, which
// is in order of To and then of the scope's name, one for each of these.
type Edge struct {
	To     int32
	Back   int32 // index of the same affinity among the edges of To
	Weight float64
	Scope  *Scope
	// MaxLatency and Bandwidth are hard limits, 0 for none.
	MaxLatency time.Duration
	Bandwidth  int64
	// NeedsLink says that the two have to be in one cluster or in two that are joined, which is a hard limit too.
	NeedsLink bool
}

// Limited reports whether the edge has hard limits.
func (e *Edge) Limited() bool { return e.MaxLatency > 0 || e.Bandwidth > 0 || e.NeedsLink }

// Joined reports whether links can be made between the clusters.
func (m *Model) Joined(k, l int32) bool { return k == l || m.Peers != nil && m.Peers[k] && m.Peers[l] }

// Scope has the factors of an affinity on the same node, in the same cluster and under the same orchestrator. Each
// level includes the next, so Node >= Cluster >= Orchestrator.
type Scope struct {
	Name                        string
	Node, Cluster, Orchestrator float64
	Linked                      bool // links between clusters count by their own factor
}

// Link is a way between two clusters.
type Link struct {
	Latency   time.Duration
	Bandwidth int64
	Factor    float64 // of affinities whose scope is linked
}

// Between is the key of a pair of clusters, in either order.
func Between(k, l int32) int64 { return int64(min(k, l))<<32 | int64(max(k, l)) }

// AddUp adds without overflow; the largest number stands for itself and everything above.
func AddUp(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
