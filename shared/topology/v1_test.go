package topology_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/topology"
)

// TestView_writesTheOlderShapeAsAWhole: cluster by cluster it writes what the whole in memory is.
func TestView_writesTheOlderShapeAsAWhole(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	now := time.Now()
	all := two(now)
	pod := func(name string) topology.Pod {
		return topology.Pod{Name: name, Container: map[string]topology.Container{"c": {Name: "<c>", ContainerMemory: topology.Known(12)}}}
	}
	for key, name := range map[string]string{"agent-2": "twin", "agent-0": "twin", "agent-3": "a", "agent-4": "", "agent-5": "empty"} {
		c := topology.Cluster{Type: "ocm", Name: name, AgentID: key, Node: map[string]topology.Node{}}
		if name != "empty" {
			for node, called := range map[string]string{"x": "same", "y": "same", "z": "other", "\"q\"": ""} {
				n := topology.Node{Name: called, LastSeen: topology.Known(float64(now.Unix())), Vulnerabilities: map[string]int64{"high": 1}}
				n.Pod = map[string]topology.Pod{"p-" + node: pod("ns__" + called)}
				c.Node[node] = n
			}
		}
		c.Pod = map[string]topology.Pod{"lost": pod("ns__lost"), "other": pod("other__lost")}
		all.Cluster[key] = c
	}
	all.Warnings = []string{"something is missing"}
	save(t, db, all, now)
	stored, _, err := topology.Current(t.Context(), db)
	require.NoError(t, err)
	write := func(v topology.View) string {
		t.Helper()
		found, err := v.Open(t.Context(), db)
		require.NoError(t, err)
		var b bytes.Buffer
		require.NoError(t, found.WriteV1(t.Context(), &b))
		return b.String()
	}
	want, err := json.Marshal(stored.V1())
	require.NoError(t, err)
	require.Equal(t, string(want)+"\n", write(topology.View{}))

	var part topology.V1
	require.NoError(t, json.Unmarshal([]byte(write(topology.View{Cluster: "agent-2", Node: "other"})), &part))
	whole := stored.V1().Cluster["agent-2"]
	require.Equal(t, map[string]topology.V1Node{"other": whole.Node["other"]}, part.Cluster["agent-2"].Node)
	require.Equal(t, "agent-2", part.Cluster["agent-2"].Name, "two are called twin")
	require.Len(t, part.Cluster, 1)
}
