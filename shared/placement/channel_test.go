package placement_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/problem"
)

// twoWays is a network of three computers, each joined to each other by a fast narrow and a slow wide way.
func twoWays(r *rand.Rand) *network.Topology {
	top := &network.Topology{
		Nodes:    []network.Node{{ID: "n0"}, {ID: "n1"}, {ID: "n2"}},
		Networks: []network.Network{{ID: "fast", Class: network.Assured}, {ID: "slow"}},
	}
	for k := range top.Networks {
		n := &top.Networks[k]
		for m := range 2 {
			n.Media = append(n.Media, network.Medium{ID: fmt.Sprint("m", m), Bandwidth: int64(5 + r.IntN(10)*(1+k))})
		}
		for a := range 3 {
			for b := range 3 {
				if a != b && r.IntN(6) > 0 {
					n.Links = append(n.Links, network.Link{
						ID: fmt.Sprint(a, "-", b), Source: fmt.Sprint("n", a), Target: fmt.Sprint("n", b),
						Medium: fmt.Sprint("m", r.IntN(2)), Latency: time.Duration(1+r.IntN(4)+5*k) * time.Millisecond,
					})
				}
			}
		}
	}
	return top
}

func randomChannels(r *rand.Rand, components int) placement.Problem {
	p := placement.Problem{Network: twoWays(r)}
	for i := range 3 {
		p.Nodes = append(p.Nodes, placement.Node{
			Orchestrator: "o", Cluster: fmt.Sprint("k", i), Name: fmt.Sprint("n", i), CPU: int64(1+r.IntN(3)) * 1000,
		})
	}
	for i := range components {
		p.Components = append(p.Components, placement.Component{ID: fmt.Sprint("c", i), CPU: 1000})
		p.Scores = append(p.Scores, []float64{float64(r.IntN(50)), float64(r.IntN(50)), float64(r.IntN(50))})
	}
	for i := range 1 + r.IntN(5) {
		ch := placement.Channel{
			ID: fmt.Sprint("ch", i), From: fmt.Sprint("c", r.IntN(components)), To: fmt.Sprint("c", r.IntN(components)),
			Bandwidth: int64(r.IntN(9)), MaxLatency: time.Duration(r.IntN(10)) * time.Millisecond,
		}
		if r.IntN(3) == 0 {
			ch.Class = network.Assured
		}
		p.Channels = append(p.Channels, ch)
	}
	return p
}

// route is a way of the test's own: one link, found without the package's search.
type route struct {
	network, path, medium string
	class                 network.Class
	latency               time.Duration
}

func ways(top *network.Topology, from, to string) []route {
	var out []route
	for _, n := range top.Networks {
		for _, l := range n.Links {
			if l.Source == from && l.Target == to {
				out = append(out, route{n.ID, l.ID, n.ID + "/" + l.Medium, n.Class, l.Latency})
			}
		}
	}
	return out
}

// routesExist reports whether the channels can be routed over single links, by trying every combination.
func routesExist(p *placement.Problem, at map[string]string, used map[string]int64, i int) bool {
	if i == len(p.Channels) {
		return true
	}
	ch := &p.Channels[i]
	from, to := at[ch.From], at[ch.To]
	if from == "" || to == "" || from == to {
		return routesExist(p, at, used, i+1)
	}
	for _, w := range ways(p.Network, from, to) {
		if !carries(p, ch, &w, used[w.medium]) {
			continue
		}
		used[w.medium] += ch.Bandwidth
		ok := routesExist(p, at, used, i+1)
		used[w.medium] -= ch.Bandwidth
		if ok {
			return true
		}
	}
	return false
}

func carries(p *placement.Problem, ch *placement.Channel, w *route, used int64) bool {
	if (ch.MaxLatency > 0 && w.latency > ch.MaxLatency) || !w.class.Serves(ch.Class) {
		return false
	}
	for _, n := range p.Network.Networks {
		for _, m := range n.Media {
			if n.ID+"/"+m.ID == w.medium {
				return used+ch.Bandwidth <= m.Bandwidth
			}
		}
	}
	return false
}

// TestChannelsKeepTheirLimits compares plans with every placement and every choice of routes there is.
func TestChannelsKeepTheirLimits(t *testing.T) {
	t.Parallel()
	best, routed := 0, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 50))
		p := randomChannels(r, 2+r.IntN(3))
		plan, err := placement.Place(p)
		require.NoError(t, err)
		at, used := map[string]string{}, map[string]int64{}
		for _, a := range plan.Assignments {
			at[a.Component] = a.Target.Node
		}
		for i, got := range plan.Channels {
			ch := &p.Channels[i]
			from, to := at[ch.From], at[ch.To]
			require.Equal(t, from != "" && to != "", got.Routed, "seed %d", seed)
			if got.Loopback || !got.Routed {
				require.Equal(t, from == to && got.Routed, got.Loopback, "seed %d", seed)
				continue
			}
			routed++
			found := false
			for _, w := range ways(p.Network, from, to) {
				if w.network == got.Network && w.path == got.Path {
					found = true
					require.True(t, carries(&p, ch, &w, used[w.medium]), "seed %d: %+v by %+v", seed, ch, w)
					used[w.medium] += ch.Bandwidth
				}
			}
			require.True(t, found, "seed %d: %+v", seed, got)
		}
		placed, worth := bestOfAll(&p, map[string]string{}, map[string]int{}, 0, 0)
		require.LessOrEqual(t, plan.Placed, placed, "seed %d", seed)
		require.GreaterOrEqual(t, plan.PlacedBound, placed, "seed %d", seed)
		if plan.Placed == placed {
			require.LessOrEqual(t, plan.Objective, worth+1e-9, "seed %d", seed)
			require.GreaterOrEqual(t, plan.Bound, worth-1e-9, "seed %d", seed)
			if plan.Objective > worth-1e-9 {
				best++
			}
		}
		if plan.Exact {
			require.Equal(t, placed, plan.Placed, "seed %d", seed)
			require.InDelta(t, worth, plan.Objective, 1e-9, "seed %d", seed)
		}
		require.Len(t, placement.Explain(p, plan).Components, len(p.Components))
	}
	require.Greater(t, routed, 100)
	require.Greater(t, best, 300, "most plans are the best")
}

// TestRunningChannelsKeepTheirWays: what is planned anew as it runs stays as it is, its channels too.
func TestRunningChannelsKeepTheirWays(t *testing.T) {
	t.Parallel()
	kept := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 51))
		p := randomChannels(r, 2+r.IntN(3))
		plan, err := placement.Place(p)
		require.NoError(t, err)
		for i := range p.Components {
			if a := &plan.Assignments[i]; a.Placed {
				p.Components[i].Current = &a.Target
			}
		}
		for i, way := range plan.Channels {
			p.Channels[i].Current = &placement.Way{Network: way.Network, Path: way.Path}
		}
		again, err := placement.Place(p)
		require.NoError(t, err)
		if again.Placed > plan.Placed {
			continue // it has found more, for which others may move
		}
		require.Equal(t, plan.Channels, again.Channels, "seed %d", seed)
		require.Zero(t, again.MoveTotal, "seed %d", seed)
		kept++
	}
	require.Greater(t, kept, 150)
}

// TestAChannelLeavesItsWayOnlyIfItMust: not for a faster one, but where its own has no room any more, or is not there.
func TestAChannelLeavesItsWayOnlyIfItMust(t *testing.T) {
	t.Parallel()
	at := []placement.Target{{Orchestrator: "o", Cluster: "k", Node: "n0"}, {Orchestrator: "o", Cluster: "k", Node: "n1"}}
	way := func(current *placement.Way, slow int64) (over string, moved float64) {
		p := placement.Problem{
			Network: &network.Topology{Nodes: []network.Node{{ID: "n0"}, {ID: "n1"}}, Networks: []network.Network{
				{
					ID: "fast", Media: []network.Medium{{ID: "m", Bandwidth: 100}},
					Links: []network.Link{{ID: "01", Source: "n0", Target: "n1", Medium: "m", Latency: time.Millisecond}},
				},
				{
					ID: "slow", Media: []network.Medium{{ID: "m", Bandwidth: slow}},
					Links: []network.Link{{ID: "01", Source: "n0", Target: "n1", Medium: "m", Latency: 2 * time.Millisecond}},
				},
			}},
			Channels: []placement.Channel{{ID: "c", From: "a", To: "b", Bandwidth: 10, Current: current}},
			Scores:   [][]float64{{1, 1}, {1, 1}},
		}
		for i := range at {
			p.Nodes = append(p.Nodes, placement.Node{Orchestrator: "o", Cluster: "k", Name: at[i].Node, CPU: 1000})
			p.Components = append(p.Components, placement.Component{ID: []string{"a", "b"}[i], CPU: 1000, Current: &at[i]})
		}
		plan, err := placement.Place(p)
		require.NoError(t, err)
		return plan.Channels[0].Network, plan.MoveTotal
	}
	for _, row := range []struct {
		current *placement.Way
		slow    int64
		network string
	}{
		{nil, 50, "fast"},
		{&placement.Way{Network: "slow", Path: "01"}, 50, "slow"},
		{&placement.Way{Network: "slow", Path: "01"}, 5, "fast"},
		{&placement.Way{Network: "slow", Path: "no more"}, 50, "fast"},
		{&placement.Way{Network: "gone", Path: "01"}, 50, "fast"},
		{&placement.Way{}, 50, "fast"},
	} {
		got, moved := way(row.current, row.slow)
		require.Equal(t, row.network, got, "%+v", row)
		require.Zero(t, moved)
	}
}

func bestOfAll(p *placement.Problem, at map[string]string, on map[string]int, i int, worth float64) (int, float64) {
	if i == len(p.Components) {
		if !routesExist(p, at, map[string]int64{}, 0) {
			return -1, 0
		}
		return len(at), worth
	}
	placed, most := bestOfAll(p, at, on, i+1, worth)
	id := p.Components[i].ID
	for k, n := range p.Nodes {
		if int64(on[n.Name]+1)*1000 > n.CPU {
			continue
		}
		at[id] = n.Name
		on[n.Name]++
		if q, v := bestOfAll(p, at, on, i+1, worth+p.Scores[i][k]); q > placed || (q == placed && v > most) {
			placed, most = q, v
		}
		on[n.Name]--
		delete(at, id)
	}
	return placed, most
}

// A component that finds no place because of a channel is told every path, who fills the medium, and what would do.
func TestExplainSaysWhyAChannelHasNoPath(t *testing.T) {
	t.Parallel()
	p := placement.Problem{
		Nodes: []placement.Node{
			{Orchestrator: "o", Cluster: "k", Name: "n0", CPU: 2000}, {Orchestrator: "o", Cluster: "k", Name: "n1", CPU: 2000},
		},
		Components: []placement.Component{
			{ID: "a", CPU: 1500, Targets: []placement.Target{{Node: "n0"}}},
			{ID: "b", CPU: 1000, Targets: []placement.Target{{Node: "n1"}}},
			{ID: "c", CPU: 800, Targets: []placement.Target{{Node: "n1"}}},
		},
		Scores: [][]float64{{10, 10}, {10, 10}, {1, 1}},
		Network: &network.Topology{
			Nodes: []network.Node{{ID: "n0"}, {ID: "n1"}},
			Networks: []network.Network{{
				ID: "wire", Media: []network.Medium{{ID: "m", Bandwidth: 30}},
				Links: []network.Link{
					{ID: "01", Source: "n0", Target: "n1", Medium: "m", Latency: 14 * time.Millisecond},
				},
			}},
		},
		Channels: []placement.Channel{
			{ID: "video", From: "a", To: "b", Bandwidth: 20},
			{ID: "data", From: "a", To: "c", Bandwidth: 19, MaxLatency: 10 * time.Millisecond},
		},
	}
	plan, err := placement.Place(p)
	require.NoError(t, err)
	require.Equal(t, 2, plan.Placed)
	ex := placement.Explain(p, plan).Components[2]
	require.False(t, ex.Placed)
	var why placement.Failure
	for _, n := range ex.Nodes {
		for _, f := range n.Failures {
			if f.Rule == placement.RuleChannel {
				why = f
			}
		}
	}
	require.Equal(t, "channel data from a to c needs 19 bit/s within 10ms: 01 over wire: takes 14ms, "+
		"wire/m has 10 bit/s free of 30, taken by video", why.Detail)
	require.NotNil(t, ex.Relaxation)
	require.Equal(t, "channel data: delay 14ms instead of 10ms, 10 bit/s instead of 19", ex.Relaxation.Changes[0].Detail)
	require.True(t, ex.Relaxation.Verified)
}

func TestMalformedChannelsAreReportedAtTheirPaths(t *testing.T) {
	t.Parallel()
	p := placement.Problem{
		Components: []placement.Component{{ID: "a"}},
		Channels: []placement.Channel{
			{ID: "x", From: "a", To: "nobody", Bandwidth: -1, MaxLatency: -1},
			{ID: "x", From: "a", To: "a", Class: "GOLD"},
			{ID: "y", From: "a", To: "a", Bandwidth: 2_000_000_000_000_000},
		},
		Network: &network.Topology{Networks: []network.Network{{ID: ""}}},
	}
	_, err := placement.Place(p)
	var e *problem.Error
	require.True(t, errors.As(err, &e))
	var paths []string
	for _, f := range e.Fields {
		paths = append(paths, f.Path)
	}
	require.ElementsMatch(t, []string{
		"channels[0].to", "channels[0].bandwidth", "channels[0].maxLatency", "channels[1].id", "channels[1].class",
		"channels[2].bandwidth", "network.networks[0].id",
	}, paths)
}

// cycled is a network of two computers over a cycle of switches, on one medium.
func cycled(bandwidth int64) *network.Topology {
	links := []network.Link{}
	for _, ends := range [][2]string{{"n0", "x"}, {"x", "y"}, {"y", "x"}, {"y", "n1"}, {"n1", "y"}, {"x", "n0"}} {
		links = append(links, network.Link{ID: ends[0] + ends[1], Source: ends[0], Target: ends[1], Medium: "m", Latency: time.Millisecond})
	}
	return &network.Topology{
		Nodes: []network.Node{{ID: "n0"}, {ID: "n1"}, {ID: "x", Kind: network.Forwarder}, {ID: "y", Kind: network.Forwarder}},
		Networks: []network.Network{
			{ID: "wire", Media: []network.Medium{{ID: "m", Bandwidth: bandwidth}}, Links: links},
		},
	}
}

// TestACycleWithoutCapacityCarriesNothing: whoever needs bandwidth shares a node, or is told why it has no place.
func TestACycleWithoutCapacityCarriesNothing(t *testing.T) {
	t.Parallel()
	p := placement.Problem{
		Nodes: []placement.Node{
			{Orchestrator: "o", Cluster: "k", Name: "n0", CPU: 2000}, {Orchestrator: "o", Cluster: "k", Name: "n1", CPU: 2000},
		},
		Components: []placement.Component{{ID: "a", CPU: 1000}, {ID: "b", CPU: 1000}},
		Scores:     [][]float64{{10, 1}, {1, 10}},
		Network:    cycled(0),
		Channels:   []placement.Channel{{ID: "c", From: "a", To: "b", Bandwidth: 1}},
	}
	plan, err := placement.Place(p)
	require.NoError(t, err)
	require.True(t, plan.Exact, "the bound knows that the two must meet")
	require.InDelta(t, 11, plan.Objective, 1e-9)
	require.True(t, plan.Channels[0].Loopback)

	p.Components[0].CPU, p.Components[1].CPU = 1500, 1500
	plan, err = placement.Place(p)
	require.NoError(t, err)
	require.Equal(t, 1, plan.Placed)
	ex := placement.Explain(p, plan)
	for _, c := range ex.Components {
		if !c.Placed {
			require.Contains(t, fmt.Sprint(c.Nodes), "wire/m has 0 bit/s free of 0")
		}
	}
}

// TestTenThousandChannels: as many as there may be find their ways, and no medium carries more than it can.
func TestTenThousandChannels(t *testing.T) {
	t.Parallel()
	p := placement.Problem{
		Nodes: []placement.Node{
			{Orchestrator: "o", Cluster: "k", Name: "n0", CPU: 60_000}, {Orchestrator: "o", Cluster: "k", Name: "n1", CPU: 60_000},
		},
		Network: cycled(2_000_000),
	}
	const components, channels = 100, 10_000
	for i := range components {
		p.Components = append(p.Components, placement.Component{ID: fmt.Sprintf("c%03d", i), CPU: 1000})
	}
	for i := range channels {
		p.Channels = append(p.Channels, placement.Channel{
			ID: fmt.Sprintf("ch%05d", i), From: fmt.Sprintf("c%03d", i%components), To: fmt.Sprintf("c%03d", (i+1+i/components)%components), Bandwidth: 10,
		})
	}
	plan, err := placement.Place(p)
	require.NoError(t, err)
	require.Equal(t, components, plan.Placed)
	var carried int64
	for _, ch := range plan.Channels {
		require.True(t, ch.Routed)
		if !ch.Loopback {
			carried += 3 * 10
		}
	}
	require.LessOrEqual(t, carried, int64(2_000_000), "each way crosses the medium three times")
}
