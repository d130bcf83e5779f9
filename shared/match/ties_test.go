package match

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/placement"
)

// talking has a camera that sends to a detector in two replicas, and to another application.
func talking() (*appmodel.Application, []part) {
	app := &appmodel.Application{
		Name: "watch",
		Components: []appmodel.Component{
			{Name: "camera", Type: appmodel.TypeKubernetes},
			{
				Name: "detector", Type: appmodel.TypeKubernetes,
				Requirements: appmodel.Requirements{NodeLabel: &appmodel.NodeLabel{Key: "floor", Values: []string{"1", "2"}}},
			},
		},
		Channels: []appmodel.Channel{
			{
				Name: "video", From: "camera", To: appmodel.Peer{Component: "detector"},
				Class: network.Assured, Bandwidth: 8_000_000, MaxLatency: 10 * time.Millisecond,
			},
			{Name: "alarm", From: "camera", To: appmodel.Peer{Application: "desk", Component: "bell"}, Bandwidth: 1000},
		},
		Spreads: []appmodel.Spread{{Components: []string{"detector"}, By: "cluster", Max: 1}},
	}
	return app, parts(app, nil, anybody)
}

func TestChannelsTakeTheNetworkThatIsKnown(t *testing.T) {
	t.Parallel()
	app, list := talking()
	p := problemOf(app, list, &inventory{network: &network.Topology{}})
	require.Equal(t, []placement.Channel{
		{
			ID: "video from camera to detector", Name: "video", From: "camera", To: "detector",
			Bandwidth: 8_000_000, MaxLatency: 10 * time.Millisecond, Class: network.Assured,
		},
		{
			ID: "video from camera to detector/1", Name: "video", From: "camera", To: "detector/1",
			Bandwidth: 8_000_000, MaxLatency: 10 * time.Millisecond, Class: network.Assured,
		},
	}, p.Channels)
	for _, a := range p.Affinities {
		require.Zero(t, a.Bandwidth)
		require.Zero(t, a.MaxLatency)
		require.InDelta(t, placement.DefaultAffinityWeight, a.Weight, 0, "its ends are still better close to each other")
	}
	require.Len(t, p.Affinities, 2)
}

func TestWithoutANetworkTheLimitsOfChannelsHoldBetweenTheirEnds(t *testing.T) {
	t.Parallel()
	app, list := talking()
	p := problemOf(app, list, &inventory{})
	require.Empty(t, p.Channels)
	limit := func(to string) placement.Affinity {
		return placement.Affinity{A: "camera", B: to, Bandwidth: 8_000_000, MaxLatency: 10 * time.Millisecond}
	}
	require.Subset(t, p.Affinities, []placement.Affinity{limit("detector"), limit("detector/1")})
}

func TestASpreadCountsEachReplica(t *testing.T) {
	t.Parallel()
	app, list := talking()
	require.Equal(t, []placement.Spread{{Components: []string{"detector", "detector/1"}, By: "cluster", Max: 1}},
		problemOf(app, list, &inventory{}).Spreads)
}

// TestTheTiesOfApplicationsPlacedTogetherAreTheirOwn: in a joint problem each has its own names.
func TestTheTiesOfApplicationsPlacedTogetherAreTheirOwn(t *testing.T) {
	t.Parallel()
	app, list := talking()
	var joint placement.Problem
	tie(&joint, app, list, "a/")
	tie(&joint, app, list, "b/")
	require.Len(t, joint.Spreads, 2)
	require.Equal(t, []string{"b/detector", "b/detector/1"}, joint.Spreads[1].Components)
	for _, a := range joint.Affinities {
		require.Equal(t, a.A[:2], a.B[:2])
	}
}
