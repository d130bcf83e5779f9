package network_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/problem"
)

// diamond is two computers with two ways between them, over switches of different speed, and a direct link.
func diamond() *network.Topology {
	ms := time.Millisecond
	return &network.Topology{
		Nodes: []network.Node{
			{ID: "a"},
			{ID: "b"},
			{ID: "c"},
			{ID: "fast", Kind: network.Forwarder, Latency: ms},
			{ID: "slow", Kind: network.Forwarder, Latency: 5 * ms},
		},
		Networks: []network.Network{
			{
				ID: "wire", Media: []network.Medium{{ID: "m", Bandwidth: 100, Used: 30}, {ID: "n", Bandwidth: 10}},
				Links: []network.Link{
					{ID: "af", Source: "a", Target: "fast", Medium: "m", Latency: ms},
					{ID: "fb", Source: "fast", Target: "b", Medium: "m", Latency: ms},
					{ID: "as", Source: "a", Target: "slow", Medium: "n", Latency: ms},
					{ID: "sb", Source: "slow", Target: "b", Medium: "n", Latency: ms},
					{ID: "ab", Source: "a", Target: "b", Medium: "n", Latency: 20 * ms},
					{ID: "ac", Source: "a", Target: "c", Medium: "m", Latency: 0},
					{ID: "cb", Source: "c", Target: "b", Medium: "m", Latency: 0},
				},
			},
			{
				ID: "tsn", Class: network.Assured, Base: "wire",
				Links: []network.Link{{ID: "ab", Source: "a", Target: "b", Medium: "n", Latency: 2 * ms}},
			},
		},
	}
}

func TestRoutesAreTheShortestThroughNetworkNodes(t *testing.T) {
	t.Parallel()
	top := diamond()
	require.NoError(t, top.Validate(""))
	routes := network.NewRoutes(top, 4)
	var got []string
	for _, r := range routes.Between("a", "b") {
		got = append(got, r.String()+" "+r.Latency.String())
	}
	require.Equal(t, []string{
		"ab over tsn 2ms", "af,fb over wire 3ms", "as,sb over wire 7ms", "ab over wire 20ms",
	}, got, "not through the computer c")
	require.Empty(t, routes.Between("b", "a"), "links are directed")
	require.Empty(t, routes.Between("a", "a"))
	require.EqualValues(t, 70, routes.Media[0].Free())
	require.Equal(t, routes.Between("a", "b")[0].Media, routes.Between("a", "b")[3].Media,
		"a network on another one uses its media")
}

func TestGivenPathsReplaceComputedOnes(t *testing.T) {
	t.Parallel()
	top := diamond()
	top.Networks[0].Paths = []network.Path{{ID: "p", Links: []string{"as", "sb"}}}
	require.NoError(t, top.Validate(""))
	got := network.NewRoutes(top, 4).Between("a", "b")
	require.Len(t, got, 2)
	require.Equal(t, "p", got[1].Path)
}

func TestEveryFaultIsReported(t *testing.T) {
	t.Parallel()
	top := diamond()
	top.Nodes[3].Latency = -1
	top.Networks[0].Media[0].Bandwidth = -5
	top.Networks[0].Links[0].Target = "nowhere"
	top.Networks[0].Links[1].Latency = -time.Second
	top.Networks[0].Links[2].Medium = "air"
	top.Networks[0].Paths = []network.Path{{ID: "p", Links: []string{"sb", "ab"}}, {ID: "p"}}
	top.Networks[1].Base = "tsn"
	err := top.Validate("network.")
	var e *problem.Error
	require.ErrorAs(t, err, &e)
	var paths []string
	for _, f := range e.Fields {
		paths = append(paths, f.Path)
	}
	require.ElementsMatch(t, []string{
		"network.nodes[3].latency", "network.networks[0].media[0].bandwidth", "network.networks[0].links[0].target",
		"network.networks[0].links[1].latency", "network.networks[0].links[2].medium",
		"network.networks[0].paths[0].links[1]", "network.networks[0].paths[1].id", "network.networks[0].paths[1].links",
		"network.networks[1].base", "network.networks[1].links[0].medium",
	}, paths)
}

// A cycle of links without any capacity neither ends a search nor is part of a path.
func TestCyclesAreNoPaths(t *testing.T) {
	t.Parallel()
	top := &network.Topology{
		Nodes: []network.Node{
			{ID: "a"}, {ID: "b"}, {ID: "x", Kind: network.Forwarder}, {ID: "y", Kind: network.Forwarder},
		},
		Networks: []network.Network{{
			ID: "n", Media: []network.Medium{{ID: "m"}},
			Links: []network.Link{
				{ID: "ax", Source: "a", Target: "x", Medium: "m"},
				{ID: "xy", Source: "x", Target: "y", Medium: "m"},
				{ID: "yx", Source: "y", Target: "x", Medium: "m"},
				{ID: "yb", Source: "y", Target: "b", Medium: "m"},
			},
		}},
	}
	require.NoError(t, top.Validate(""))
	require.Len(t, network.NewRoutes(top, 10).Between("a", "b"), 1)
}
