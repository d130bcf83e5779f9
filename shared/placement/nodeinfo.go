package placement

import (
	"cmp"
	"strings"
)

// nodeInfo is what a node offers, normalised for comparison. The fields for the scores are copied, since a Node is large
// to read.
type nodeInfo struct {
	*Node
	*nodeWords
	index               int32 // in Problem.Nodes
	freeCPU, freeMemory int64 // capacity - other - reserved, at least 0
	idleCPU, idleMemory int64 // free minus the nominal amounts of reservations of none, at least 0
	cpu, memory         int64 // capacity
	watts               float64
	security            float64
}

// nodeWords is the normalised text of a node; nodes with equal text share it.
type nodeWords struct {
	orchestrator, engine string // lower case
	architecture         string // canonical
}

// compute computes the amounts: watts per free core, negative if unknown, and a security score of at most 100.
// Unrealistically large draws are limited to keep the sums finite.
func (n *nodeInfo) compute() {
	n.cpu, n.memory = n.CPU, n.Memory
	n.freeCPU, n.freeMemory = n.CPU-min(n.CPU, n.OtherCPU), n.Memory-min(n.Memory, n.OtherMemory)
	for i := range n.Reserved {
		n.freeCPU -= min(n.freeCPU, n.Reserved[i].CPU)
		n.freeMemory -= min(n.freeMemory, n.Reserved[i].Memory)
	}
	n.idleCPU, n.idleMemory = n.freeCPU, n.freeMemory
	for i := range n.Reserved {
		if n.Reserved[i].CPU == 0 {
			n.idleCPU -= min(n.idleCPU, NominalCPU)
		}
		if n.Reserved[i].Memory == 0 {
			n.idleMemory -= min(n.idleMemory, NominalMemory)
		}
	}
	n.watts = -1
	if n.EnergyWatts != nil && n.freeCPU != 0 {
		n.watts = min(*n.EnergyWatts, 1e12) * 1000 / float64(n.freeCPU)
	}
	if n.SCA != nil {
		n.security = min(*n.SCA, 100)
	}
}

// spellings are the other names of architectures, in lower case.
var spellings = map[string][]string{
	"amd64": {"x86_64", "x86-64", "x64", "intel", "intel64", "intel/x86_64"},
	"arm64": {"aarch64", "arm64/v8", "arm64v8", "armv8", "arm64/aarch64"},
	"arm":   {"armhf", "armv6l", "armv7l", "armv7", "arm/v6", "arm/v7"},
	"386":   {"i386", "i486", "i586", "i686", "x86"},
}

var canonical = func() map[string]string {
	of := map[string]string{}
	for name, others := range spellings {
		for _, other := range others {
			of[other] = name
		}
	}
	return of
}()

// CanonicalArchitecture returns the name the engine compares: amd64 for x86_64, x86-64, x64 and intel; arm64 for
// aarch64; arm for armv6l, armv7l, armhf and the like; 386 for i386 and i686; anything else in lower case.
func CanonicalArchitecture(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	return cmp.Or(canonical[s], s)
}

// ArchitectureSpellings returns every text in lower case whose CanonicalArchitecture is that one.
func ArchitectureSpellings(architecture string) []string {
	return append([]string{architecture}, spellings[architecture]...)
}

// lower returns the target with the orchestrator in lower case, to compare targets.
func (t Target) lower() Target {
	t.Orchestrator = strings.ToLower(t.Orchestrator)
	return t
}

// matches reports whether the pattern covers the node.
func (t Target) matches(n *Node) bool {
	return (t.Node == "" || t.Node == n.Name) && (t.Cluster == "" || t.Cluster == n.Cluster) &&
		(t.Orchestrator == "" || strings.EqualFold(t.Orchestrator, n.Orchestrator))
}
