package fleet

import (
	"maps"
	"slices"
	"strings"
)

// View is the fleet as it is now.
type View struct {
	Clusters []ClusterView `json:"clusters"`
}

// ClusterView is one cluster.
type ClusterView struct {
	Name         string     `json:"name"`
	Agent        string     `json:"agent"`
	Orchestrator string     `json:"orchestrator"`
	Cut          bool       `json:"cut"`
	Nodes        []NodeView `json:"nodes"`
	Tasks        int        `json:"tasks"` // jobs taken and not yet reported
}

// NodeView is one node. Shares are 0..1, energy is in watts, memory in bytes.
type NodeView struct {
	Name    string            `json:"name"`
	Engine  string            `json:"engine"`
	Arch    string            `json:"arch"`
	Drained bool              `json:"drained"`
	Silent  bool              `json:"silent"` // it reports nothing
	Cores   int               `json:"cores"`
	RAM     int64             `json:"ram"`
	CPU     float64           `json:"cpu"` // used by anyone
	Memory  float64           `json:"mem"` // used by anyone
	Score   *float64          `json:"sca,omitempty"`
	Watts   float64           `json:"energy"`
	Devices map[string]string `json:"devices,omitempty"` // state by path
	Labels  map[string]string `json:"labels,omitempty"`
	Tells   string            `json:"telemetry,omitempty"` // node: only of itself, none: nothing
	Compss  map[string]string `json:"compss,omitempty"`    // TASKS@SECONDS by task
	Events  map[string]string `json:"events,omitempty"`    // COUNT@SEVERITY by name
	Copies  []CopyView        `json:"copies,omitempty"`
}

// CopyView is what of a job is on the node.
type CopyView struct {
	Job         string `json:"job"`
	Name        string `json:"name"`
	Application string `json:"application"`
	Component   string `json:"component"`
	Epoch       int64  `json:"epoch"`
	Pods        int    `json:"pods"` // that run
	Running     bool   `json:"running"`
	Message     string `json:"message"`
}

// View returns the fleet as it is now.
func (f *Fleet) View() View {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := View{}
	for _, c := range f.plan.Clusters {
		at := f.state.Clusters[c.Name]
		shown := ClusterView{Name: c.Name, Agent: c.AgentID, Orchestrator: c.Type, Cut: at.Cut, Tasks: len(at.Tasks)}
		for _, n := range c.Nodes {
			shown.Nodes = append(shown.Nodes, f.viewNode(c, n))
		}
		v.Clusters = append(v.Clusters, shown)
	}
	return v
}

func (f *Fleet) viewNode(c *Cluster, n *Node) NodeView {
	at, cluster := f.state.Nodes[c.Name+"/"+n.Name], f.state.Clusters[c.Name]
	s, plan := f.settings(c, n), f.schedule(c)
	l := s.usage(n, plan.pods[n.Name])
	v := NodeView{
		Name: n.Name, Engine: n.Engine, Arch: goArch(n.Arch), Drained: at.Drained,
		Silent: at.Drained || cluster.Cut || at.Telemetry == tellsNothing, Tells: at.Telemetry,
		Compss: texts(at.Queues), Events: texts(at.Events),
		Cores: s.cores, RAM: s.ram, CPU: l.mean, Memory: l.memory / float64(s.ram), Watts: l.base + l.slope*l.mean,
		Labels: s.labels, Devices: map[string]string{},
	}
	if s.score >= 0 {
		v.Score = &s.score
	}
	for path, d := range s.devices {
		v.Devices[path] = d.State
	}
	for _, id := range slices.SortedFunc(maps.Keys(cluster.Copies), strings.Compare) {
		have := cluster.Copies[id]
		if have.Removed || have.Node != n.Name {
			continue
		}
		pods := 0
		for _, p := range plan.pods[n.Name] {
			if p.copy == have {
				pods++
			}
		}
		v.Copies = append(v.Copies, CopyView{
			Job: id, Name: have.ResourceName(), Application: have.Application, Component: have.Component,
			Epoch: have.Epoch, Pods: pods, Running: plan.verdicts[id].running, Message: plan.verdicts[id].message,
		})
	}
	return v
}
