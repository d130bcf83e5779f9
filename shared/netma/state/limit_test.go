package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/netma/links"
	"github.com/littoral-project/littoral/shared/netma/state"
	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/swm/channels"
)

// TestNoLinkIsGivenOutBetterThanItWasMeasured: what was measured from end to end counts for each way between the two, what was measured
// at a switch for its link alone; a description stays the most that is given out.
func TestNoLinkIsGivenOutBetterThanItWasMeasured(t *testing.T) {
	t.Parallel()
	routes := func(measured ...links.Measurement) (network.Route, []network.Medium) {
		r := network.NewRoutes(state.Limited(wire(), measured), 4)
		all := r.Between("a", "b")
		require.Len(t, all, 1)
		return all[0], r.Media
	}
	least := func(r network.Route, media []network.Medium) int64 {
		free := int64(network.MaxBandwidth)
		for _, m := range r.Media {
			free = min(free, media[m].Free())
		}
		return free
	}
	way, media := routes()
	require.Equal(t, 2*ms, way.Latency)
	require.Equal(t, int64(1e8), least(way, media))

	way, media = routes(measured("a", "b", 10, 5_000))
	require.Equal(t, 5*ms, way.Latency)
	require.Equal(t, int64(5e6), least(way, media))

	way, media = routes(measured("a", "s", 10, 7_000))
	require.Equal(t, 6*ms, way.Latency)
	require.Equal(t, int64(7e6), least(way, media))

	way, media = routes(measured("a", "b", 0.1, 900_000))
	require.Equal(t, 2*ms, way.Latency, "the description is no worse for a good minute")
	require.Equal(t, int64(1e8), least(way, media))

	limited := state.Limited(wire(), []links.Measurement{measured("a", "b", 10, 5_000)})
	using := []channels.Channel{{Network: "lan", Path: "p", Bandwidth: 3e6}}
	require.Equal(t, int64(3e6), channels.Occupied(limited, using, channels.None).Pairs[0].Used)
	require.Zero(t, limited.Pairs[0].Used, "the topology is as it was")
	require.Nil(t, state.Limited(nil, nil))
}
