package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

// Taxonomy is the infrastructure, with the fields that clients use. Clusters and nodes are written as they were read,
// including unknown fields.
type Taxonomy struct {
	Timestamp struct {
		StaleAfter *float64 `json:"staleAfter"` // seconds of silence after which a node counts as lost
	} `json:"timestamp"`
	Cluster  map[string]Cluster `json:"cluster"`            // by agent name
	Warnings []string           `json:"warnings,omitempty"` // missing or doubtful data, in sentences
}

// Cluster is a set of nodes under one agent.
type Cluster struct {
	Type        string          `json:"type"`
	UUID        string          `json:"uuid"`
	Name        string          `json:"name"`
	Engine      string          `json:"engine"`
	AgentID     string          `json:"icosAgentID"`
	ClusterLink bool            `json:"clusterLink"`
	Node        map[string]Node `json:"node"`

	raw json.RawMessage
}

// Node is one machine. A number that was not measured is nil.
type Node struct {
	Type            string            `json:"type"`
	UUID            string            `json:"uuid"` // machine identifier
	Name            string            `json:"name"`
	Engine          string            `json:"engine"`
	Location        Location          `json:"location"`
	LastSeen        *float64          `json:"lastSeen"`    // epoch seconds
	Schedulable     *bool             `json:"schedulable"` // false for a drained node
	ScaScore        *float64          `json:"ScaScore"`    // 0..100
	Vulnerabilities map[string]int64  `json:"vulnerabilities"`
	Static          Static            `json:"staticMetrics"`
	Dynamic         Dynamic           `json:"dynamicMetrics"`
	Devices         map[string]Device `json:"devices"`
	Labels          map[string]string `json:"labels"`
	Pod             map[string]Pod    `json:"pod"`

	raw json.RawMessage
}

// Pod is one that telemetry knows at a node.
type Pod struct {
	Name      string               `json:"name"` // NAMESPACE__POD
	Status    string               `json:"status"`
	Container map[string]Container `json:"container"`
	Workload  map[string]Workload  `json:"workload"` // what it belongs to, by application
}

// Container is one of a pod. A number that was not measured is nil.
type Container struct {
	Memory *float64 `json:"containerMemory"` // bytes
	CPU    *float64 `json:"cpuUsage"`        // cores
}

// Workload says which component of which application a pod belongs to.
type Workload struct {
	App       string `json:"icos_app_instance"`
	Component string `json:"icos_app_component"`
}

// Location is the position of a node.
type Location struct {
	Name    string `json:"name"`
	Country string `json:"country"`
	City    string `json:"city"`
}

// Static are the resources of a node; memory in bytes.
type Static struct {
	Architecture string   `json:"cpuArchitecture"`
	Cores        *float64 `json:"cpuCores"`
	Memory       *float64 `json:"RAMMemory"`
}

// Dynamic is the state of a node; in percent and watts.
type Dynamic struct {
	CPU    *float64 `json:"cpuUsagePercent"`
	Memory *float64 `json:"memoryUsagePercent"`
	Power  *float64 `json:"cpuPowerWatts"`
}

// Device is something attached to a node.
type Device struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Status string `json:"status"` // available, busy, detached, unknown
	Path   string `json:"path"`
}

// UnmarshalJSON keeps the original for MarshalJSON.
func (c *Cluster) UnmarshalJSON(b []byte) error {
	type plain Cluster
	if err := json.Unmarshal(b, (*plain)(c)); err != nil {
		return err
	}
	c.raw = bytes.Clone(b)
	return nil
}

// MarshalJSON writes what was read.
func (c Cluster) MarshalJSON() ([]byte, error) {
	if c.raw != nil {
		return c.raw, nil
	}
	type plain Cluster
	return json.Marshal(plain(c))
}

// UnmarshalJSON keeps the original for MarshalJSON.
func (n *Node) UnmarshalJSON(b []byte) error {
	type plain Node
	if err := json.Unmarshal(b, (*plain)(n)); err != nil {
		return err
	}
	n.raw = bytes.Clone(b)
	return nil
}

// MarshalJSON writes what was read.
func (n Node) MarshalJSON() ([]byte, error) {
	if n.raw != nil {
		return n.raw, nil
	}
	type plain Node
	return json.Marshal(plain(n))
}

// Drained reports whether the node accepts no new work and gives up its present work.
func (n *Node) Drained() bool { return n.Schedulable != nil && !*n.Schedulable }

// SeenAt returns the time of the newest telemetry; ok is false if it is unknown.
func (n *Node) SeenAt() (at time.Time, ok bool) {
	if n.LastSeen == nil {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(*n.LastSeen * 1000)).UTC(), true
}

// Place is one node under the names that targets use.
type Place struct {
	Cluster string
	Node    string
	In      *Cluster
	At      *Node
}

// Places lists every node by cluster and node name.
func (t *Taxonomy) Places() []Place {
	clusterNames := names(t.Cluster, func(c Cluster) string { return c.Name })
	var places []Place
	for ck, c := range t.Cluster {
		nodeNames := names(c.Node, func(n Node) string { return n.Name })
		for nk, n := range c.Node {
			places = append(places, Place{clusterNames[ck], nodeNames[nk], &c, &n})
		}
	}
	slices.SortFunc(places, func(a, b Place) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Node, b.Node))
	})
	return places
}

// NamedCluster is a cluster under the name that targets use.
type NamedCluster struct {
	Name string
	*Cluster
}

// Clusters lists the clusters by name.
func (t *Taxonomy) Clusters() []NamedCluster {
	given := names(t.Cluster, func(c Cluster) string { return c.Name })
	list := make([]NamedCluster, 0, len(t.Cluster))
	for key, c := range t.Cluster {
		list = append(list, NamedCluster{given[key], &c})
	}
	slices.SortFunc(list, func(a, b NamedCluster) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// names returns a name for each key: the name of its element if that is unique, else the key itself. The aggregator
// names places by the same rule, so no two have the same name.
func names[E any](elements map[string]E, name func(E) string) map[string]string {
	holders := make(map[string]int, len(elements))
	for _, e := range elements {
		holders[name(e)]++
	}
	given := make(map[string]string, len(elements))
	for key, e := range elements {
		own := name(e)
		if _, isKey := elements[own]; own == "" || holders[own] > 1 || (isKey && own != key) {
			own = key
		}
		given[key] = own
	}
	return given
}
