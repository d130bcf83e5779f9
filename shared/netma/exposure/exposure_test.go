package exposure_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/alto"
	"github.com/littoral-project/littoral/shared/netma/exposure"
	"github.com/littoral-project/littoral/shared/netma/links"
	"github.com/littoral-project/littoral/shared/netma/view"
	"github.com/littoral-project/littoral/shared/network"
)

// square has a and b behind two switches each way, c that was measured only, and d that nobody knows the way to.
func square() view.Source {
	const ms = time.Millisecond
	link := func(from, to string, latency time.Duration) network.Link {
		return network.Link{ID: from + to, Source: from, Target: to, Medium: "m", Latency: latency}
	}
	rtt, loss := 30.0, 2.0
	five := 5.0
	return view.Source{
		Nodes: []view.Node{
			{Cluster: "hub", Node: "a", Interfaces: json.RawMessage(`{"eth0": {"ip": "192.0.2.1"}, "lo": {"ip": "127.0.0.1"}, "docker0": {"ip": "172.17.0.1"}}`)},
			{Cluster: "hub", Node: "b", Interfaces: json.RawMessage(`{"eth0": {"ip": "192.0.2.2/24"}, "docker0": {"ip": "172.17.0.1"}}`), Watts: &five},
			{Cluster: "edge", Node: "c", Interfaces: json.RawMessage(`{"eth0": {"ip": "2001:db8::3"}}`)},
			{Cluster: "edge", Node: "d"},
			{Cluster: "far", Node: "d"},
		},
		Network: &network.Topology{
			Nodes: []network.Node{{ID: "a"}, {ID: "b"}, {ID: "s", Kind: network.Forwarder, Latency: ms}, {ID: "t", Kind: network.Forwarder}},
			Networks: []network.Network{{
				ID: "lan", Media: []network.Medium{{ID: "m", Bandwidth: 8_000_000}},
				Links: []network.Link{
					link("a", "s", ms), link("s", "b", 2*ms), link("a", "t", 4*ms), link("t", "b", 4*ms),
					link("b", "s", ms), link("s", "a", ms), link("s", "t", ms), link("t", "s", ms),
				},
			}},
		},
		Measured: []links.Measurement{{Source: "a", Target: "c", Figures: links.Figures{RTT: &rtt, Loss: &loss}}},
	}
}

func cost(t *testing.T, v *view.View, metric, from, to string) any {
	t.Helper()
	kind, known := exposure.TypeOf(alto.CostType{Mode: alto.Numerical, Metric: metric})
	require.True(t, known, metric)
	text, err := exposure.CostMap(v, kind)
	require.NoError(t, err)
	var answer struct {
		Map map[string]map[string]float64 `json:"cost-map"`
	}
	require.NoError(t, json.Unmarshal(text, &answer))
	if v, there := answer.Map[from][to]; there {
		return v
	}
	return nil
}

func TestCostsFollowTheFastestWay(t *testing.T) {
	t.Parallel()
	v := view.New(square())
	for _, row := range []struct {
		metric, from, to string
		want             any
	}{
		{"routingcost", "a", "b", 4.02},
		{"routingcost", "a", "a", 0.0},
		{"hopcount", "a", "b", 2.0},
		{"delay-ow", "a", "b", 4000.0},
		{"net_rtt_ms", "a", "b", 7.0},
		{"bandwidth", "a", "b", 8000.0},
		{"bw-available", "a", "b", 1e6},
		{"jitter", "a", "b", nil},
		{"net_rtt_ms", "a", "c", 30.0},
		{"lossrate", "a", "c", 2.0},
		{"hopcount", "a", "c", 1.0},
		{"bandwidth", "a", "c", nil},
		{"routingcost", "c", "a", nil},
		{"routingcost", "a", "edge:d", nil},
		{"energy", "a", "b", 5.0},
		{"energy", "b", "a", nil},
	} {
		require.Equal(t, row.want, cost(t, v, row.metric, row.from, row.to), "%s from %s to %s", row.metric, row.from, row.to)
	}
}

// TestCalendarsHaveWhatIsForeseen: the costs of the way to c change with its forecast, all others stay, and what is not foreseen has no
// calendar.
func TestCalendarsHaveWhatIsForeseen(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 21, 3, 0, 0, time.UTC)
	s := square()
	s.Foreseen = []links.Forecast{
		{Source: "a", Target: "c", Metric: "net_rtt_ms", FirstAt: now.Truncate(5 * time.Minute).Add(5 * time.Minute), Step: 5 * time.Minute, Values: []float64{40, 50, 60}},
		{Source: "c", Target: "d", Metric: "net_jitter_ms", FirstAt: now, Step: time.Minute, Values: []float64{1}}, // which nobody measures
	}
	v := view.New(s)
	ask := func(types, calendared string) (string, error) {
		filter, fault := alto.ParseCostFilter([]byte(`{`+types+`, "calendared": `+calendared+`, "pids": {"srcs": ["a"], "dsts": ["b", "c", "d"]}}`), exposure.TypeOf)
		require.Nil(t, fault)
		text, err := exposure.Filtered(v, filter, now)
		return string(text), err
	}
	text, err := ask(`"cost-type": {"cost-mode": "numerical", "cost-metric": "net_rtt_ms"}`, `[true]`)
	require.NoError(t, err)
	require.JSONEq(t, `{"meta": {"dependent-vtags": [{"resource-id": "network", "tag": "`+v.Tag+`"}],
		"cost-type": {"cost-mode": "numerical", "cost-metric": "priv:net_rtt_ms"},
		"calendar-response-attributes": [{"cost-type-names": ["net_rtt_ms-num"], "calendar-start-time": "Thu, 26 Nov 2026 21:00:00 GMT",
			"time-interval-size": 300, "number-of-intervals": 3}]},
		"cost-map": {"a": {"b": [7, 7, 7], "c": [40, 50, 60]}}}`, text)
	text, err = ask(`"multi-cost-types": [{"cost-mode": "numerical", "cost-metric": "routingcost"}, {"cost-mode": "numerical", "cost-metric": "lossrate"}]`, `[true, false]`)
	require.NoError(t, err)
	require.Contains(t, text, `"cost-map":{"a":{"b":[[4.02,4.02,4.02],null],"c":[[20.01,25.01,30.01],2]}}`)
	text, err = ask(`"cost-type": {"cost-mode": "ordinal", "cost-metric": "net_rtt_ms"}`, `[false]`)
	require.NoError(t, err)
	require.NotContains(t, text, "calendar")
	var fault *alto.Error
	_, err = ask(`"cost-type": {"cost-mode": "numerical", "cost-metric": "jitter"}`, `[true]`)
	require.ErrorAs(t, err, &fault)
	require.Equal(t, alto.Error{Code: "E_INVALID_FIELD_VALUE", Field: "calendared", Value: "numerical priv:jitter has no calendar"}, *fault)

	d := exposure.Directory(v.Calendar(now))
	require.Equal(t, []alto.Calendar{{
		CostTypeNames: []string{
			"delay-ow-num", "delay-ow-ord", "delay-rt-num", "delay-rt-ord", "net_rtt_ms-num", "net_rtt_ms-ord", "routingcost-num", "routingcost-ord",
		}, IntervalSize: 300, NumberOfIntervals: 3,
	}}, d.Resources["endpoint-cost"].Capabilities.Calendars)
	require.Nil(t, d.Resources["cost-routingcost-num"].Capabilities.Calendars, "a whole map cannot be asked for by a calendar")
	require.Nil(t, v.Calendar(now.Add(time.Hour)), "what is over says nothing")
	require.Nil(t, exposure.Directory(nil).Resources["cost-filtered"].Capabilities.Calendars)
}

// A network map is complete and without overlap: what two nodes have is nobody's, and what nobody has is elsewhere.
func TestTheNetworkMapIsComplete(t *testing.T) {
	t.Parallel()
	v := view.New(square())
	m := exposure.NetworkMap(v, alto.MapFilter{})
	require.Equal(t, map[string]alto.Group{
		"a": {"ipv4": {"192.0.2.1/32"}}, "b": {"ipv4": {"192.0.2.2/32"}}, "c": {"ipv6": {"2001:db8::3/128"}},
		"edge:d": {}, "far:d": {}, "elsewhere": {"ipv4": {"0.0.0.0/0"}, "ipv6": {"::/0"}},
	}, m.NetworkMap)
	part := exposure.NetworkMap(v, alto.MapFilter{PIDs: []string{"c", "nobody"}, AddressTypes: []string{"ipv4"}})
	require.Equal(t, map[string]alto.Group{"c": {}}, part.NetworkMap)
	require.Equal(t, m.Meta.VTag, part.Meta.VTag, "that of the whole map")

	moved := square()
	moved.Nodes[0].Interfaces = json.RawMessage(`{"eth0": {"ip": "192.0.2.9"}}`)
	require.NotEqual(t, v.Tag, view.New(moved).Tag)
	require.Equal(t, v.Tag, view.New(square()).Tag)
}

func TestFilteredCosts(t *testing.T) {
	t.Parallel()
	v := view.New(square())
	filter, fault := alto.ParseCostFilter([]byte(`{"multi-cost-types": [{"cost-mode": "numerical", "cost-metric": "net_rtt_ms"},
		{"cost-mode": "ordinal", "cost-metric": "hopcount"}], "testable-cost-types": [{"cost-mode": "numerical", "cost-metric": "routingcost"}],
		"constraints": ["[0] gt 0"], "pids": {"srcs": ["a"], "dsts": ["a", "b", "c", "nobody"]}}`), exposure.TypeOf)
	require.Nil(t, fault)
	text, err := exposure.Filtered(v, filter, time.Now())
	require.NoError(t, err)
	require.JSONEq(t, fmt.Sprintf(`{"meta": {"dependent-vtags": [{"resource-id": "network", "tag": %q}],
		"multi-cost-types": [{"cost-mode": "numerical", "cost-metric": "priv:net_rtt_ms"}, {"cost-mode": "ordinal", "cost-metric": "hopcount"}]},
		"cost-map": {"a": {"b": [7, 3], "c": [30, 2]}}}`, v.Tag), string(text))

	filter, fault = alto.ParseEndpointCost([]byte(`{"cost-type": {"cost-mode": "numerical", "cost-metric": "routingcost"},
		"endpoints": {"srcs": ["ipv4:192.0.2.1"], "dsts": ["ipv4:198.51.100.1"]}}`), exposure.TypeOf)
	require.Nil(t, fault)
	filter.Dsts = append(filter.Dsts, "ipv4:192.0.2.2")
	text, err = exposure.BetweenEndpoints(v, filter, netip.Addr{}, time.Now())
	require.NoError(t, err)
	require.Contains(t, string(text), `"endpoint-cost-map":{"ipv4:192.0.2.1":{"ipv4:192.0.2.2":4.02}}`)
	filter.Srcs = nil
	text, err = exposure.BetweenEndpoints(v, filter, netip.MustParseAddr("192.0.2.1"), time.Now())
	require.NoError(t, err)
	require.Contains(t, string(text), `"ipv4:192.0.2.1":{"ipv4:192.0.2.2":4.02}`, "the caller is meant")

	asked, fault := alto.ParsePropertyRequest([]byte(`{"properties": ["network.pid", "priv:cluster"], "endpoints": ["ipv4:192.0.2.2", "ipv6:::1"]}`), exposure.IsProperty)
	require.Nil(t, fault)
	require.Equal(t, map[string]map[string]string{
		"ipv4:192.0.2.2": {"network.pid": "b", "priv:cluster": "hub"}, "ipv6:::1": {"network.pid": "elsewhere"},
	}, exposure.EndpointProperties(v, asked).Properties)
}

func TestDisjointWays(t *testing.T) {
	t.Parallel()
	v := view.New(square())
	ways := v.Disjoint("a", "b")
	require.Len(t, ways, 2)
	require.Equal(t, []string{"a", "s", "b"}, ways[0].Nodes)
	require.Equal(t, []string{"a", "t", "b"}, ways[1].Nodes)
	require.Equal(t, ways[0], *v.Best("a", "b"))
	require.Nil(t, v.Best("c", "a"))
	require.Empty(t, v.Disjoint("c", "a"))
	require.Empty(t, v.Disjoint("a", "a"))
}

// The directory keeps the rules of RFC 7285 §9.2: every type of cost is defined, a whole cost map has one, and routing costs exist.
func TestTheDirectory(t *testing.T) {
	t.Parallel()
	d := exposure.Directory(nil)
	require.Contains(t, d.Resources, d.Meta.DefaultNetworkMap)
	pairs := map[string]bool{}
	for id, r := range d.Resources {
		require.True(t, alto.IsName(id), id)
		for _, used := range r.Uses {
			require.Contains(t, d.Resources, used)
		}
		if r.Capabilities == nil {
			continue
		}
		for _, name := range r.Capabilities.CostTypeNames {
			require.Contains(t, d.Meta.CostTypes, name)
		}
		if r.MediaType == alto.CostMap && r.Accepts == "" {
			require.Len(t, r.Capabilities.CostTypeNames, 1)
			require.False(t, pairs[r.Capabilities.CostTypeNames[0]])
			pairs[r.Capabilities.CostTypeNames[0]] = true
		}
	}
	require.True(t, pairs["routingcost-num"])
	require.Empty(t, d.Resources["endpoint-cost"].Uses)
}

// continuum is a network of n nodes behind switches of twenty, all of which hang on one.
func continuum(n int) view.Source {
	t := &network.Topology{Nodes: []network.Node{{ID: "core", Kind: network.Forwarder}}, Networks: []network.Network{{ID: "lan"}}}
	lan := &t.Networks[0]
	s := view.Source{Network: t}
	join := func(a, b string) {
		for _, e := range [][2]string{{a, b}, {b, a}} {
			id := e[0] + ">" + e[1]
			lan.Media = append(lan.Media, network.Medium{ID: id, Bandwidth: 1e9})
			lan.Links = append(lan.Links, network.Link{ID: id, Source: e[0], Target: e[1], Medium: id, Latency: time.Duration(100+len(lan.Links)) * time.Microsecond})
		}
	}
	for i := range n {
		leaf := fmt.Sprintf("switch-%d", i/20)
		if i%20 == 0 {
			t.Nodes = append(t.Nodes, network.Node{ID: leaf, Kind: network.Forwarder})
			join(leaf, "core")
		}
		name := fmt.Sprintf("node-%03d", i)
		t.Nodes = append(t.Nodes, network.Node{ID: name})
		join(name, leaf)
		s.Nodes = append(s.Nodes, view.Node{Cluster: leaf, Node: name, Interfaces: fmt.Appendf(nil, `{"eth0": {"ip": "10.0.%d.%d"}}`, i/250, i%250+1)})
	}
	return s
}

// timed runs a benchmark that also reports the time on processors: what it takes on a machine that others use too.
func timed(b *testing.B, name string, do func(i int) error) {
	b.Helper()
	b.Run(name, func(b *testing.B) {
		used := func() time.Duration {
			var u syscall.Rusage
			require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
			return time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
		begin := used()
		for i := 0; b.Loop(); i++ {
			require.NoError(b, do(i))
		}
		b.ReportMetric(float64((used()-begin).Microseconds())/1000/float64(b.N), "cpu-ms/op")
	})
}

// BenchmarkMaps are the figures of test/bench/netma.md: maps of 500 nodes.
func BenchmarkMaps(b *testing.B) {
	kind := func(mode, metric string) alto.CostType { return alto.CostType{Mode: mode, Metric: metric} }
	source := continuum(500)
	v := view.New(source)
	whole := func(of alto.CostType) error { _, err := exposure.CostMap(v, of); return err }
	require.NoError(b, whole(kind(alto.Ordinal, "routingcost")))
	timed(b, "cost map, the same again", func(int) error { return whole(kind(alto.Ordinal, "routingcost")) })
	timed(b, "cost map, another metric than before", func(i int) error {
		return whole(kind(alto.Numerical, []string{"routingcost", "hopcount"}[i%2]))
	})
	timed(b, "cost map, ordinal after numerical", func(i int) error {
		return whole(kind([]string{alto.Ordinal, alto.Numerical}[i%2], "routingcost"))
	})
	timed(b, "cost map, after the network has changed", func(int) error {
		_, err := exposure.CostMap(view.New(source), kind(alto.Numerical, "routingcost"))
		return err
	})
	timed(b, "network map", func(int) error {
		_, err := json.Marshal(exposure.NetworkMap(v, alto.MapFilter{}))
		return err
	})
	filter, fault := alto.ParseCostFilter([]byte(`{"cost-type": {"cost-mode": "numerical", "cost-metric": "routingcost"}, "pids": {"srcs": ["node-007"]}}`), exposure.TypeOf)
	require.Nil(b, fault)
	timed(b, "costs from one node", func(int) error { _, err := exposure.Filtered(v, filter, time.Now()); return err })
}
