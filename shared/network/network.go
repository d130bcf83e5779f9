// Package network describes what components talk over: compute and network nodes, directed links, the media that links
// share, paths, and several networks of different classes on one physical base.
//
// Bandwidth is counted on the medium: links that share a radio or a cable share what it carries, and the links of a
// network that lies on another one use the media of its base. The latency of a path is the sum of its links and of the
// network nodes between them. All is pure: no I/O, no clock. Bandwidth is in bit/s, latency in nanoseconds as a
// time.Duration. The fields are those of CODECO's solver interface (Infrastructure, Network, Link, Path, Medium).
package network

import "time"

// Limits of a topology; a larger one is refused.
const (
	MaxNodes = 20_000
	MaxLinks = 100_000
	MaxPaths = 200_000

	// MaxBandwidth, in bit/s, keeps sums exact.
	MaxBandwidth = 1_000_000_000_000_000
)

// Topology is everything that traffic may go through.
type Topology struct {
	Nodes    []Node    `json:"nodes"`
	Networks []Network `json:"networks"`
	// Pairs are what was measured from one compute node to another, whatever way it took: no channel between the two gets more.
	Pairs []Pair `json:"pairs,omitempty"`
}

// Pair is what traffic gets from a node to another.
type Pair struct {
	Source    string        `json:"source"`
	Target    string        `json:"target"`
	Bandwidth int64         `json:"bandwidth,omitempty"` // bit/s, 0: not measured
	Used      int64         `json:"used,omitempty"`      // of it, by others
	Latency   time.Duration `json:"latency,omitempty"`   // 0: not measured
}

// Kind says what a node does.
type Kind string

// Compute nodes are where paths begin and end, network nodes what they go through. The empty kind is Compute.
const (
	Compute   Kind = "compute"
	Forwarder Kind = "network"
)

// Node is a computer, or a switch, router or radio.
type Node struct {
	ID      string        `json:"id"`
	Kind    Kind          `json:"kind,omitempty"`
	Latency time.Duration `json:"latency,omitempty"` // of a network node, added to each path through it
}

// Class is the quality that a network gives and a channel needs. The empty class is BestEffort.
type Class string

// A channel of a class uses networks of the same class or a better one; assured is better than best effort.
const (
	BestEffort Class = "BESTEFFORT"
	Assured    Class = "ASSURED"
)

// Serves reports whether a network of class c is good enough for a channel that needs the other class.
func (c Class) Serves(needed Class) bool { return needed != Assured || c == Assured }

// Network is one way to use the wires: a physical network, or a virtual one on the media of its base.
type Network struct {
	ID    string `json:"id"`
	Class Class  `json:"class,omitempty"`
	// Base is the network whose media this one's links may use as well; empty for a physical network.
	Base  string   `json:"base,omitempty"`
	Media []Medium `json:"media,omitempty"`
	Links []Link   `json:"links"`
	// Paths, where given for a pair of nodes, are the only ones that are used between them; else the shortest are.
	Paths []Path `json:"paths,omitempty"`
}

// Medium carries links.
type Medium struct {
	ID        string `json:"id"`
	Bandwidth int64  `json:"bandwidth"`      // capacity, bit/s
	Used      int64  `json:"used,omitempty"` // by others
}

// Free returns what is left, at least 0.
func (m Medium) Free() int64 { return max(0, m.Bandwidth-m.Used) }

// Link leads from one node to another. At most one link of a network joins two nodes in one direction.
type Link struct {
	ID      string        `json:"id"`
	Source  string        `json:"source"`
	Target  string        `json:"target"`
	Medium  string        `json:"medium"` // of this network or of those below it
	Latency time.Duration `json:"latency,omitempty"`
}

// Path is a chain of links without a cycle, from one compute node to another. A path from a node to itself, over one
// link, is the way between two computers behind the same node, such as a local network.
type Path struct {
	ID    string   `json:"id"`
	Links []string `json:"links"`
}
