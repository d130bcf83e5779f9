// Package kinds is the table of the orchestrators that can own a place. A new one is a line here, a deploy-* and a sync-*.
package kinds

import "slices"

// What targets, paths and the types of clusters in telemetry call them.
const (
	OCM    = "ocm" // Open Cluster Management
	Nuvla  = "nuvla"
	Direct = "kubernetes" // a cluster whose API is used directly; not in ICOS
	// Compose is one machine with Docker or Podman, whose own agent (infra/agents/edge) polls; not in ICOS.
	Compose = "compose"
)

// Engines of clusters and nodes.
const (
	Kubernetes = "Kubernetes"
	Docker     = "Docker"
)

// Kind is what there is to know of one of them.
type Kind struct {
	Name   string
	Engine string // of its clusters and nodes, unless telemetry names another
	Agents bool   // its clusters and their agents have different names in telemetry
}

// All are in the order in which people are told of them.
var All = []Kind{
	{Name: OCM, Engine: Kubernetes, Agents: true},
	{Name: Nuvla, Engine: Docker},
	{Name: Direct, Engine: Kubernetes},
	{Name: Compose, Engine: Docker},
}

// Of finds the kind of the name.
func Of(name string) (k Kind, known bool) {
	i := slices.IndexFunc(All, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return k, false
	}
	return All[i], true
}

// Names lists those of all.
func Names() []string {
	names := make([]string, len(All))
	for i := range All {
		names[i] = All[i].Name
	}
	return names
}
