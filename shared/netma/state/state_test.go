package state_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/netma/links"
	"github.com/littoral-project/littoral/shared/netma/state"
	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/swm/channels"
)

const ms = time.Millisecond

// wire leads from a over the switch s to b.
func wire() *network.Topology {
	return &network.Topology{
		Nodes: []network.Node{{ID: "a"}, {ID: "b"}, {ID: "s", Kind: network.Forwarder}},
		Networks: []network.Network{{
			ID: "lan", Media: []network.Medium{{ID: "as", Bandwidth: 1e8}, {ID: "sb", Bandwidth: 1e8}},
			Links: []network.Link{
				{ID: "as", Source: "a", Target: "s", Medium: "as", Latency: ms}, {ID: "sb", Source: "s", Target: "b", Medium: "sb", Latency: ms},
			},
			Paths: []network.Path{{ID: "p", Links: []string{"as", "sb"}}},
		}},
	}
}

func measured(from, to string, rtt, bandwidth float64) links.Measurement {
	m := links.Measurement{Source: from, Target: to}
	m.RTT, m.Bandwidth = links.Known(rtt), links.Known(bandwidth)
	return m
}

func TestALinkIsBlamedForWhatItDoesNotKeep(t *testing.T) {
	t.Parallel()
	app := uuid.New()
	channel := func(name, path string, bits int64, most time.Duration) channels.Channel {
		return channels.Channel{Application: app, Name: name, Network: "lan", Path: path, Bandwidth: bits, MaxLatency: most}
	}
	two := []channels.Channel{channel("one", "as,sb", 6e6, 5*ms), channel("two", "p", 6e6, 0)}
	for name, row := range map[string]struct {
		using    []channels.Channel
		measured links.Measurement
		at       [2]string
		reason   string
		channels []string
	}{
		"all is well":              {two, measured("a", "b", 4, 20_000), [2]string{}, "", nil},
		"nothing was measured":     {two, measured("a", "b", -1, -1), [2]string{}, "", nil},
		"a link that nobody uses":  {two, measured("b", "a", 400, 1), [2]string{}, "", nil},
		"too little for both":      {two, measured("a", "b", 4, 10_000), [2]string{"a", "b"}, "carries 10000 kbit/s, of which its channels need 12000", []string{"one", "two"}},
		"too little on one link":   {two, measured("a", "s", 1, 10_000), [2]string{"a", "s"}, "carries 10000 kbit/s, of which its channels need 12000", []string{"one", "two"}},
		"enough for one":           {two[:1], measured("a", "b", 4, 10_000), [2]string{}, "", nil},
		"too slow from end to end": {two, measured("a", "b", 12, 20_000), [2]string{"a", "b"}, "takes 6ms, of which a channel bears 5ms", []string{"one"}},
		"too slow by one link":     {two, measured("s", "b", 12, 20_000), [2]string{"s", "b"}, "takes 7ms, of which a channel bears 5ms", []string{"one"}},
		"a way that is gone":       {[]channels.Channel{channel("old", "x", 1e9, ms)}, measured("a", "b", 100, 1), [2]string{}, "", nil},
		"described slower than asked, and not measured": {
			[]channels.Channel{channel("old", "p", 1, ms)}, measured("x", "y", 1, 1), [2]string{}, "", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := state.Faults(wire(), row.using, []links.Measurement{row.measured})
			if row.reason == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			fault := found[row.at]
			require.NotNil(t, fault, "%v", found)
			require.Equal(t, row.reason, fault.Reason)
			var names []string
			for _, c := range fault.Channels {
				require.Equal(t, app, c.Application)
				names = append(names, c.Name)
			}
			slices.Sort(names)
			require.Equal(t, row.channels, names)
		})
	}
	require.Empty(t, state.Faults(nil, two, []links.Measurement{measured("a", "b", 1, 1)}), "without a network")
}
