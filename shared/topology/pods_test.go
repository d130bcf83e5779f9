package topology_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/topology"
)

func TestSave_tellsOnWhichNodesApplicationsHaveOtherPods(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	at := start
	look := func(ip, instance string, cpu float64) {
		at = at.Add(time.Second)
		save(t, db, two(at, func(n *topology.Node) {
			if ip != "" {
				n.Pod = map[string]topology.Pod{"uid": {
					Name: "shop__web-0", IP: ip, Container: map[string]topology.Container{"c": {CPUUsage: topology.Known(cpu)}},
					Workload: map[string]topology.Workload{instance: {AppInstance: instance, AppComponent: "web"}},
				}}
			}
		}), at)
	}
	told := 0
	more := func(n int, why string) {
		t.Helper()
		var nodes []string
		for _, e := range storetest.Published(db) {
			if e.Type() == events.PodsChanged {
				data, err := events.Data[events.Topology](e)
				require.NoError(t, err)
				for _, c := range data.Changes {
					nodes = append(nodes, c.Cluster+"/"+c.Node)
				}
			}
		}
		told += n
		require.Len(t, nodes, told, why)
		for _, node := range nodes {
			require.Equal(t, "edge/rpi-2", node)
		}
	}
	look("", "", 0)
	more(0, "there are none")
	look("10.0.0.1", "shop", 0.1)
	more(1, "the first one")
	look("10.0.0.1", "shop", 0.9)
	more(0, "what it uses is nothing to others")
	look("10.0.0.2", "shop", 0.9)
	more(1, "another address")
	look("10.0.0.2", "", 0.9)
	more(1, "it is nobody's any more")
	look("10.0.0.3", "", 0.9)
	more(0, "pods that are nobody's do not count")
}
