package exporter_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/exporter"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/topology"
)

// TestAChangeOfOneNodeTouchesOnlyItsOwnKeys: of 1,000 applications with 5 components each, those on the node are told.
func TestAChangeOfOneNodeTouchesOnlyItsOwnKeys(t *testing.T) {
	t.Parallel()
	const applications, components, nodes = 1000, 5, 100
	db := storetest.New(t)
	instance := func(i int) string { return fmt.Sprintf("app-%04d", i) }
	moved := "10.1.0.0"
	picture := func(at time.Time) *topology.Taxonomy {
		c := topology.Cluster{Type: kinds.OCM, Name: "edge", Node: map[string]topology.Node{}}
		for n := range nodes {
			node := topology.Node{
				Name: fmt.Sprint("n", n), Engine: topology.Kubernetes, LastSeen: topology.Known(float64(at.Unix())), Pod: map[string]topology.Pod{},
				StaticMetrics: topology.StaticMetrics{CPUCores: topology.Known(4), RAMMemory: topology.Known(8e9)},
			}
			ip := "10.0.0.1"
			if n == 7 {
				ip = moved
			}
			for i := n; i < applications; i += nodes {
				for k := range components {
					name := fmt.Sprint("c", k)
					node.Pod[instance(i)+name] = topology.Pod{
						Name: name, IP: ip,
						Workload: map[string]topology.Workload{instance(i): {AppInstance: instance(i), AppComponent: name}},
					}
				}
			}
			c.Node[node.Name] = node
		}
		return &topology.Taxonomy{Cluster: map[string]topology.Cluster{"edge": c}}
	}
	save := func(at time.Time) {
		tx(t, db, func(ctx context.Context, tx *store.Tx) error {
			_, err := topology.Save(ctx, tx, picture(at), at, time.Minute)
			return err
		})
	}
	save(start)
	var names []string
	for k := range components {
		names = append(names, fmt.Sprint("c", k))
	}
	tx(t, db, func(ctx context.Context, tx *store.Tx) error {
		for i := range applications {
			if err := exporter.Register(ctx, tx, instance(i), exporter.Application{Name: "shop", Components: names}); err != nil {
				return err
			}
		}
		return nil
	})
	numbers := func() map[string]int64 {
		type row struct {
			Key    string
			Number int64
		}
		list, err := store.Collect(t.Context(), db, "read", pgx.RowToStructByPos[row], `select key, number from bus_values`)
		require.NoError(t, err)
		all := map[string]int64{}
		for _, r := range list {
			all[r.Key] = r.Number
		}
		return all
	}
	before := numbers()
	require.Len(t, before, applications*components)
	moved = "10.1.0.2"
	save(start.Add(time.Second))
	news := storetest.Published(db, events.PodsChanged)
	about, err := events.Data[events.Topology](news[len(news)-1])
	require.NoError(t, err)
	require.Len(t, about.Changes, 1, "it is the only node that has changed")
	changes := about.Changes
	instances, err := exporter.Affected(t.Context(), db, changes)
	require.NoError(t, err)
	require.Len(t, instances, applications/nodes)
	tx(t, db, func(ctx context.Context, tx *store.Tx) error {
		for _, i := range instances {
			if err := exporter.Update(ctx, tx, i); err != nil {
				return err
			}
		}
		return nil
	})
	told := 0
	for key, number := range numbers() {
		if number != before[key] {
			told++
			var i int
			_, err := fmt.Sscanf(key, "app-%d/", &i)
			require.NoError(t, err)
			require.Equal(t, 7, i%nodes, key)
		}
	}
	require.Equal(t, applications/nodes*components, told)
}
