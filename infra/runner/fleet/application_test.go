package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEmit_podsOfAComponentShareItsTasks(t *testing.T) {
	t.Parallel()
	m := newManager()
	f, c, s := observed(t, m)
	m.put(typeCreate, "edge", "edge-1", 1) // two pods
	poll(t, f, "edge")
	emit(t, f, c, time.Second)
	_, none := value(s.last(), "compss_node_info")
	require.Zero(t, none, "nothing is said of COMPSs where nobody spoke of it")

	require.NoError(t, f.Set("edge-1", map[string]string{"compss:sort": "40@30"}))
	emit(t, f, c, time.Second)
	tasks, pods := value(s.last(), "compss_pendTasks_ratio", "CoreSignature", "sort")
	require.Equal(t, 2, pods)
	require.InDelta(t, 40, tasks, 0)
	each, _ := value(s.last(), "compss_avgTime_ratio")
	require.InDelta(t, 2*30_000, each, 0, "milliseconds")
	units, _ := value(s.last(), "compss_node_info", "property", "computing_units")
	require.InDelta(t, 2, units, 0, "at least one for each pod")
}

func TestEmit_aNodeThatReportsLess(t *testing.T) {
	t.Parallel()
	m := newManager()
	f, c, s := observed(t, m)
	m.put(typeCreate, "edge", "edge-1", 1)
	poll(t, f, "edge")
	host := f.plan.cluster("edge").node("edge-1").HostID
	for _, step := range []struct {
		tells           string
		itself, workers bool
	}{
		{"", true, true}, {tellsNode, true, false}, {tellsNothing, false, false}, {"", true, true},
	} {
		require.NoError(t, f.Set("edge-1", map[string]string{"telemetry": step.tells}))
		emit(t, f, c, time.Second)
		current := f.measure(c.now)["edge"]
		of := map[string]bool{}
		for _, sample := range current {
			of[sample.Name] = of[sample.Name] || sample.Labels["icos_host_id"] == host
		}
		require.Equal(t, step.itself, of["tlum_host_info"], step.tells)
		require.Equal(t, step.workers, of["tlum_workload_info"], step.tells)
		_, known := of["kube_pod_info"]
		require.True(t, known, "the cluster knows its pods without the node")
		_, agent := of["tlum_orch_info"]
		require.True(t, agent, "another node tells of the agent")
	}
	_, workloads := value(s.last(), "tlum_workload_info")
	require.Equal(t, 2, workloads)
	require.NoError(t, f.Drain("edge-1"))
	emit(t, f, c, time.Second)
	_, pods := value(s.last(), "kube_pod_info", "node", "edge-1")
	require.Equal(t, 2, pods, "ended")
}
