package fleet

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/topology"
)

func TestDefaultFleet(t *testing.T) {
	t.Parallel()
	p := Default()
	require.Len(t, p.Clusters, 3)
	types, engines, archs := map[string]bool{}, map[string]bool{}, map[string]bool{}
	scores, watts, devices := map[float64]bool{}, map[float64]bool{}, map[string]bool{}
	nodes := 0
	for _, c := range p.Clusters {
		types[c.Type] = true
		for _, n := range c.Nodes {
			nodes++
			engines[n.Engine], archs[goArch(n.Arch)] = true, true
			scores[n.Score], watts[n.Watts] = true, true
			for path := range n.Devices {
				devices[path] = true
			}
			require.ElementsMatch(t, []string{"color", "shape", "zone"}, slices.Collect(maps.Keys(n.Labels)))
		}
	}
	require.Equal(t, 12, nodes)
	require.Len(t, scores, 12, "every score is distinct, so that placement has a choice to make")
	require.Len(t, watts, 12)
	require.Equal(t, map[string]bool{kinds.OCM: true, kinds.Nuvla: true}, types)
	require.Equal(t, map[string]bool{topology.Kubernetes: true, topology.Docker: true}, engines)
	require.Equal(t, map[string]bool{"amd64": true, "arm64": true}, archs)
	require.Contains(t, devices, "squat.ai/video")
	require.Equal(t, []string{"agent-ocm-1", "agent-ocm-2", "agent-nuvla-1"}, p.AgentIDs())
}

func TestGeneratedFleet(t *testing.T) {
	t.Parallel()
	p, err := Generated("nodes=500,seed=7")
	require.NoError(t, err)
	nodes := 0
	types, archs := map[string]bool{}, map[string]bool{}
	for _, c := range p.Clusters {
		types[c.Type] = true
		for _, n := range c.Nodes {
			nodes++
			archs[goArch(n.Arch)] = true
			require.Positive(t, n.Watts)
			require.NotEmpty(t, n.Location.City)
		}
	}
	require.Equal(t, 500, nodes)
	require.Len(t, p.Clusters, 25)
	require.Equal(t, map[string]bool{kinds.OCM: true, kinds.Nuvla: true}, types)
	require.Equal(t, map[string]bool{"amd64": true, "arm64": true}, archs)
	again, err := Generated("seed=7,nodes=500")
	require.NoError(t, err)
	require.Equal(t, p, again)
	_, err = Generated("colour=red")
	require.ErrorContains(t, err, "colour")
}

func TestExampleTaxonomiesLoad(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		file     string
		clusters []string
		nodes    int
	}{
		"the older shape, with clusters by name": {
			"topology.json",
			[]string{"icos-cluster-2a", "icos-cluster-2c", "icos-cluster-b", "icos-cluster-c", "nuvla"},
			8,
		},
		"the newest shape, with next to nothing in it": {
			"topology_input.json",
			[]string{"cluster-1", "cluster-2", "cluster-3"},
			5,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Load("../../../test/contracts/topology/" + row.file)
			require.NoError(t, err)
			var names []string
			hosts := map[string]bool{}
			for _, c := range p.Clusters {
				names = append(names, c.Name)
				for _, n := range c.Nodes {
					hosts[n.HostID] = true
					require.Regexp(t, hostID, n.HostID)
					require.Positive(t, n.Cores)
					require.Positive(t, n.RAM)
					require.NotEmpty(t, n.IP)
				}
			}
			require.Equal(t, row.clusters, names)
			require.Len(t, hosts, row.nodes, "every node is a host of its own")
		})
	}
}

func TestLoadSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := Load("no-such-file.json")
	require.ErrorContains(t, err, "no-such-file.json")
	_, err = parsePlan([]byte(`{"cluster":{}}`))
	require.ErrorContains(t, err, "no node")
	_, err = parsePlan([]byte(`{"cluster":{"a":{"node":{"b":{"staticMetrics":{"cpuCores":"many"}}}}}}`))
	require.ErrorContains(t, err, "cluster[a].node[b].staticMetrics.cpuCores")
}

func TestPace_isSlowerForMoreNodes(t *testing.T) {
	t.Parallel()
	require.Equal(t, DefaultEvery, Default().Pace())
	large := &Plan{Clusters: []*Cluster{{Nodes: make([]*Node, 2500)}}}
	require.Equal(t, 10*time.Second, large.Pace())
	large.Clusters[0].Nodes = make([]*Node, 50_000)
	require.Less(t, 2*large.Pace(), time.Minute, "or nodes would be lost between two rounds")
}
