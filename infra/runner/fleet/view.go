package fleet

import (
	"maps"
	"slices"
	"strings"

	"github.com/littoral-project/littoral/shared/api"
)

// View returns the present state of the fleet.
func (f *Fleet) View() api.Fleet {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := api.Fleet{Failing: map[string]string{}}
	for name, set := range f.state.Failing {
		v.Failing[name] = string(set.How)
	}
	for _, c := range f.plan.Clusters {
		at := f.state.Clusters[c.Name]
		shown := api.FleetCluster{Name: c.Name, Agent: c.AgentID, Orchestrator: c.Type, Cut: at.Cut, Tasks: len(at.Tasks)}
		for _, n := range c.Nodes {
			shown.Nodes = append(shown.Nodes, f.viewNode(c, n))
		}
		v.Clusters = append(v.Clusters, shown)
	}
	return v
}

func (f *Fleet) viewNode(c *Cluster, n *Node) api.FleetNode {
	at, cluster := f.state.Nodes[c.Name+"/"+n.Name], f.state.Clusters[c.Name]
	s, plan := f.settings(c, n), f.schedule(c)
	l := s.usage(n, plan.pods[n.Name])
	v := api.FleetNode{
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
		v.Copies = append(v.Copies, api.FleetCopy{
			Job: id, Name: have.ResourceName(), Application: have.Application, Component: have.Component,
			Epoch: have.Epoch, Pods: pods, Running: plan.verdicts[id].running, Message: plan.verdicts[id].message,
		})
	}
	return v
}
