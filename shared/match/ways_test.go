package match

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/swm/channels"
)

// TestChannelsOfOthersOccupyTheNetwork: what one application uses is not free for another, but for itself it is.
func TestChannelsOfOthersOccupyTheNetwork(t *testing.T) {
	t.Parallel()
	own, other := uuid.New(), uuid.New()
	lan := &network.Topology{
		Nodes: []network.Node{{ID: "a"}, {ID: "b"}},
		Networks: []network.Network{
			{
				ID: "LAN", Media: []network.Medium{{ID: "wire", Bandwidth: 100}},
				Links: []network.Link{{ID: "a-b", Source: "a", Target: "b", Medium: "wire"}},
			},
			{ID: "VLAN", Base: "LAN", Links: []network.Link{{ID: "v", Source: "a", Target: "b", Medium: "wire"}}},
		},
	}
	inv := &inventory{network: lan, using: []channels.Channel{
		{Application: own, Network: "LAN", Path: "a-b", Bandwidth: 10},
		{Application: other, Network: "VLAN", Path: "v", Bandwidth: 20},
		{Application: other, Network: "LAN", Path: "gone", Bandwidth: 40},
	}}
	require.Equal(t, int64(20), inv.networkFor([]part{{instance: own}}).Networks[0].Media[0].Used)
	require.Equal(t, int64(10), inv.networkFor([]part{{instance: other}}).Networks[0].Media[0].Used)
	require.Equal(t, int64(0), lan.Networks[0].Media[0].Used, "the description is as it was")
	require.Nil(t, (&inventory{}).networkFor(nil))
}
