package topology_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/topology"
)

// two returns a taxonomy with two nodes, of which the second is modified.
func two(seen time.Time, change ...func(*topology.Node)) *topology.Taxonomy {
	t := one(seen)
	other := one(seen, change...).Cluster["agent-1"].Node["rpi"]
	other.Name = "rpi-2"
	t.Cluster["agent-1"].Node["rpi-2"] = other
	return t
}

// versions returns the number of the transaction that wrote each node's row last.
func versions(t *testing.T, db *store.DB) map[string]string {
	t.Helper()
	rows, err := db.Query(t.Context(), "select node, xmin::text from topology_nodes")
	require.NoError(t, err)
	defer rows.Close()
	all := map[string]string{}
	for rows.Next() {
		var node, version string
		require.NoError(t, rows.Scan(&node, &version))
		all[node] = version
	}
	require.NoError(t, rows.Err())
	return all
}

func TestSave_writesOnlyTheRowsOfNodesThatDiffer(t *testing.T) {
	t.Parallel()
	no := false
	for name, row := range map[string]struct {
		after   time.Duration
		change  func(*topology.Node)
		written bool
	}{
		"nothing":                      {time.Second, func(*topology.Node) {}, false},
		"a reading by less than noise": {time.Second, func(n *topology.Node) { n.DynamicMetrics.CPUUsagePercent = topology.Known(20.4) }, false},
		"a reading by more":            {time.Second, func(n *topology.Node) { n.DynamicMetrics.CPUUsagePercent = topology.Known(22) }, true},
		"a reading that is missing":    {time.Second, func(n *topology.Node) { n.DynamicMetrics.CPUUsagePercent = topology.Measure{} }, true},
		"a temperature":                {time.Second, func(n *topology.Node) { n.DynamicMetrics.CPUTemperature = topology.Known(60) }, false},
		"a temperature, after a while": {time.Minute, func(n *topology.Node) { n.DynamicMetrics.CPUTemperature = topology.Known(60) }, true},
		"a drain":                      {time.Second, func(n *topology.Node) { n.Schedulable = &no }, true},
		"a label":                      {time.Second, func(n *topology.Node) { n.Labels["color"] = "blue" }, true},
		"the place of the node":        {time.Second, func(n *topology.Node) { n.Location.City = "Vigo" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.New(t)
			save(t, db, two(start), start)
			before := versions(t, db)
			at := start.Add(row.after)
			save(t, db, two(at, row.change), at)
			after := versions(t, db)
			require.Equal(t, row.written, before["rpi-2"] != after["rpi-2"])
			if row.after < time.Minute {
				require.Equal(t, before["rpi"], after["rpi"], "the other node is as it was")
			}
			inv, err := topology.ReadInventory(t.Context(), db)
			require.NoError(t, err)
			require.True(t, at.Equal(inv.At))
			for _, p := range inv.Places {
				seen, known := p.At.SeenAt()
				require.True(t, known && seen.Equal(at), "when a node was seen is always told exactly")
			}
		})
	}
}

// TestReadInventory_saysWhatTheTaxonomySays, of everything that placement looks at.
func TestReadInventory_saysWhatTheTaxonomySays(t *testing.T) {
	t.Parallel()
	db, no := storetest.New(t), false
	picture := two(start, func(n *topology.Node) {
		n.Schedulable, n.StaticMetrics.CPUArchitecture, n.StaticMetrics.GPUCores = &no, "aarch64", topology.Known(2)
		n.DynamicMetrics = topology.DynamicMetrics{
			CPUUsagePercent: topology.Known(30), MemoryUsagePercent: topology.Known(40), UsedRAM: topology.Known(3e9),
			FreeRAM: topology.Known(5e9), CPUPowerWatts: topology.Known(7.5),
			AvailableStorage: topology.AvailableStorage{Free: topology.Known(9e9)},
		}
		n.ForecastedMetrics = topology.ForecastedMetrics{
			CPUUtilizationPrediction: topology.Known(50), MemoryUtilizationPrediction: topology.Known(60),
		}
		n.Hearing = topology.Hearing{LostSamples: topology.Known(3), ClockSkewSeconds: topology.Known(-75)}
		n.Pod = map[string]topology.Pod{
			"ours": {
				Workload: map[string]topology.Workload{"i-1": {AppInstance: "i-1"}},
				Container: map[string]topology.Container{
					"a": {CPUUsage: topology.Known(0.25), ContainerMemory: topology.Known(1e8)}, "b": {CPUUsage: topology.Known(0.5)},
				},
			},
			"another": {
				Workload:  map[string]topology.Workload{"i-2": {AppInstance: "i-2"}},
				Container: map[string]topology.Container{"c": {ContainerMemory: topology.Known(2e8)}},
			},
			"foreign": {Container: map[string]topology.Container{"d": {CPUUsage: topology.Known(1)}}},
		}
	})
	picture.Timestamp.SilentUntil = topology.Known(float64(start.Unix() - 60))
	save(t, db, picture, start)
	inv, err := topology.ReadInventory(t.Context(), db)
	require.NoError(t, err)
	current, _, err := topology.Current(t.Context(), db)
	require.NoError(t, err)
	require.Equal(t, picture, current)
	require.True(t, current.SilentUntil().Equal(inv.SilentUntil))
	want := current.Places()
	require.Len(t, inv.Places, len(want))
	looked := func(p topology.Place) string {
		n := p.At
		ownCPU, ownMemory := n.OwnUsage()
		cpu, memory := n.UsageOf("i-1")
		othersCPU, othersMemory := n.OthersUsage()
		return fmt.Sprint(
			p.Cluster, p.Node, p.ClusterKey, p.NodeKey, p.In.Orchestrator(), p.In.AgentID, p.In.Engine, n.Engine, n.LastSeen,
			n.CanSchedule(), n.StaticMetrics, n.ScaScore, n.Labels, n.Devices, n.DynamicMetrics, n.ForecastedMetrics,
			n.Hearing, ownCPU, ownMemory, cpu, memory, othersCPU, othersMemory,
		)
	}
	for i := range want {
		require.Equal(t, looked(want[i]), looked(inv.Places[i]))
	}
}

// TestCurrent_isUnknownUntilTheRowsAreWritten: a former version stored one document.
func TestCurrent_isUnknownUntilTheRowsAreWritten(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	_, err := db.Exec(t.Context(), `insert into topology (snapshot, taxonomy, at) values (gen_random_uuid(), '{"cluster": {}}', $1)`, start)
	require.NoError(t, err)
	_, err = topology.ReadInventory(t.Context(), db)
	require.ErrorIs(t, err, topology.ErrUnknown, "an empty infrastructure would displace everything")
	require.True(t, save(t, db, one(start), start.Add(-time.Second)), "whatever time the former one is of")
	inv, err := topology.ReadInventory(t.Context(), db)
	require.NoError(t, err)
	require.Len(t, inv.Places, 1)
}
