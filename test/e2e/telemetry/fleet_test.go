package telemetry_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// ground is two nodes for one kind of policy, so that all kinds can be violated concurrently: the component is on one
// of them and may move to the other.
type ground [2]place

// place is a node with the names used in targets.
type place struct{ cluster, node string }

// camera is a device that every node has.
const camera = "squat.ai/video"

// The resources of every node, and the share that others use.
const (
	cores     = 8
	gigabytes = 16
	score     = 90
)

// grounds writes a fleet with room for n kinds into dir, as a taxonomy, and returns its file and the grounds. Those of
// Kubernetes are on two clusters, so that a component that moves changes its agent; those of Docker are on one.
func grounds(t testing.TB, dir string, docker []bool) (file string, all []ground) {
	t.Helper()
	nodes := map[string]map[string]any{"cloud": {}, "edge": {}, "harbour": {}}
	put := func(cluster, name, engine string) place {
		nodes[cluster][name] = node(len(nodes[cluster]), cluster, name, engine)
		return place{cluster, name}
	}
	for i, engine := range docker {
		one, other := fmt.Sprintf("n%02d-a", i), fmt.Sprintf("n%02d-b", i)
		if engine {
			all = append(all, ground{put("harbour", one, "Docker"), put("harbour", other, "Docker")})
		} else {
			all = append(all, ground{put("cloud", one, "Kubernetes"), put("edge", other, "Kubernetes")})
		}
	}
	text, err := json.Marshal(map[string]any{"cluster": map[string]any{
		"agent-ocm-1":   cluster("cloud", "ocm", "Kubernetes", "agent-ocm-1", nodes["cloud"]),
		"agent-ocm-2":   cluster("edge", "ocm", "Kubernetes", "agent-ocm-2", nodes["edge"]),
		"agent-nuvla-1": cluster("harbour", "nuvla", "Docker", "agent-nuvla-1", nodes["harbour"]),
	}})
	require.NoError(t, err)
	file = filepath.Join(dir, "fleet.json")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return file, all
}

func cluster(name, orchestrator, engine, agent string, nodes map[string]any) map[string]any {
	return map[string]any{"type": orchestrator, "name": name, "engine": engine, "icosAgentID": agent, "node": nodes}
}

// hostID is the machine identifier of a node.
func hostID(node string) string { return fmt.Sprintf("%032x", node) }

func node(i int, cluster, name, engine string) map[string]any {
	networks := map[string]string{"cloud": "198.51.100", "edge": "203.0.113", "harbour": "192.0.2"}
	return map[string]any{
		"name": name, "uuid": hostID(name), "engine": engine, "ScaScore": score,
		"staticMetrics": map[string]any{
			"cpuArchitecture": "x86_64", "cpuCores": cores, "RAMMemory": gigabytes << 30,
		},
		"dynamicMetrics": map[string]any{"cpuUsagePercent": 10, "memoryUsagePercent": 20},
		"networkInterfaces": map[string]any{
			"eth0": map[string]any{"name": "eth0", "ip": fmt.Sprintf("%s.%d", networks[cluster], i+1)},
		},
		"devices": map[string]any{
			"video_0": map[string]any{"name": "video_0", "type": "video", "status": "available", "path": camera},
		},
	}
}
