package exporter_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/exporter"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/topology"
)

const (
	manyApplications = 1000
	manyComponents   = 5
	manyNodes        = 100
)

func nameOf(application int) string    { return fmt.Sprintf("app-%04d", application) }
func componentOf(number int) string    { return fmt.Sprintf("c%d", number) }
func placeOf(pod int) (cluster string) { return fmt.Sprintf("cluster-%d", pod%manyNodes/10) }

// many is a fleet on whose nodes the pods of all components take turns; those of the node that moved have other addresses.
func many(at time.Time, moved int) *topology.Taxonomy {
	t := &topology.Taxonomy{Cluster: map[string]topology.Cluster{}}
	for n := range manyNodes {
		node := topology.Node{
			Name: fmt.Sprintf("node-%d", n), Engine: topology.Kubernetes, LastSeen: topology.Known(float64(at.Unix())),
			StaticMetrics: topology.StaticMetrics{CPUCores: topology.Known(64), RAMMemory: topology.Known(256e9)},
			Pod:           map[string]topology.Pod{},
		}
		for p := n; p < manyApplications*manyComponents; p += manyNodes {
			instance := nameOf(p / manyComponents)
			ip := fmt.Sprintf("10.0.%d.%d", p/200, p%200)
			if n == moved {
				ip = "10.1" + ip[len("10.0"):]
			}
			node.Pod[fmt.Sprintf("uid-%d", p)] = topology.Pod{
				Name: "x__pod", IP: ip, Container: map[string]topology.Container{},
				Workload: map[string]topology.Workload{instance: {
					AppName: instance, AppInstance: instance, AppComponent: componentOf(p % manyComponents),
				}},
			}
		}
		name := placeOf(n)
		c, there := t.Cluster[name]
		if !there {
			c = topology.Cluster{Type: kinds.OCM, Name: name, Node: map[string]topology.Node{}}
		}
		c.Node[node.Name] = node
		t.Cluster[name] = c
	}
	return t
}

// TestAChangeOfOneNodeTouchesItsOwnKeysOnly: of a thousand applications with five components each.
func TestAChangeOfOneNodeTouchesItsOwnKeysOnly(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	save := func(at time.Time, moved int) {
		tx(t, db, func(ctx context.Context, tx *store.Tx) error {
			_, err := topology.Save(ctx, tx, many(at, moved), at, time.Minute)
			return err
		})
	}
	save(start, -1)
	components := []string{}
	for c := range manyComponents {
		components = append(components, componentOf(c))
	}
	for a := range manyApplications {
		tx(t, db, func(ctx context.Context, tx *store.Tx) error {
			return exporter.Register(ctx, tx, nameOf(a), exporter.Application{Name: nameOf(a), Components: components})
		})
	}
	var before int64
	require.NoError(t, bus.Get(t.Context(), db, "**", func(v bus.Value) error {
		before = max(before, v.Number)
		return nil
	}))

	const moved = 42
	save(start.Add(time.Second), moved)
	tx(t, db, func(ctx context.Context, tx *store.Tx) error {
		affected, err := exporter.Affected(ctx, tx, []events.TopologyChange{{Cluster: placeOf(moved), Node: fmt.Sprintf("node-%d", moved)}})
		if err != nil {
			return err
		}
		require.Len(t, affected, manyApplications*manyComponents/manyNodes)
		for _, instance := range affected {
			if err := exporter.Update(ctx, tx, instance); err != nil {
				return err
			}
		}
		return nil
	})
	var got, want []string
	page, _, more, err := bus.Next(t.Context(), db, "**", before)
	require.NoError(t, err)
	require.False(t, more)
	for _, v := range page {
		got = append(got, string(v.Key))
	}
	for p := moved; p < manyApplications*manyComponents; p += manyNodes {
		want = append(want, nameOf(p/manyComponents)+"/"+componentOf(p%manyComponents))
	}
	slices.Sort(got)
	require.Equal(t, want, got)
}
