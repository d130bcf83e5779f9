package state

import (
	"slices"
	"time"

	"github.com/littoral-project/littoral/shared/netma/links"
	"github.com/littoral-project/littoral/shared/network"
)

// Limited returns the topology with what was measured: no link, and no way between two computers, is given out as better than it
// was seen to be. Where more was measured than described, the description counts, since it may be a promise to somebody.
func Limited(t *network.Topology, measured []links.Measurement) *network.Topology {
	if t == nil || len(measured) == 0 {
		return t
	}
	out := *t
	out.Networks = slices.Clone(t.Networks)
	forwards := map[string]bool{}
	for _, n := range t.Nodes {
		forwards[n.ID] = n.Kind == network.Forwarder
	}
	ends := map[[2]string]*links.Measurement{}
	for i := range measured {
		m := &measured[i]
		bits, latency := figures(m)
		if bits == 0 && latency == 0 {
			continue
		}
		if forwards[m.Source] || forwards[m.Target] {
			ends[[2]string{m.Source, m.Target}] = m
			continue
		}
		out.Pairs = append(out.Pairs, network.Pair{Source: m.Source, Target: m.Target, Bandwidth: bits, Latency: latency})
	}
	if len(ends) == 0 {
		return &out
	}
	for i := range out.Networks {
		n := &out.Networks[i]
		n.Links, n.Media = slices.Clone(n.Links), slices.Clone(n.Media)
		for k := range n.Links {
			l := &n.Links[k]
			m := ends[[2]string{l.Source, l.Target}]
			if m == nil {
				continue
			}
			bits, latency := figures(m)
			l.Latency = max(l.Latency, latency)
			if at := slices.IndexFunc(n.Media, func(x network.Medium) bool { return x.ID == l.Medium }); at >= 0 && bits > 0 {
				n.Media[at].Bandwidth = min(n.Media[at].Bandwidth, bits)
			}
		}
	}
	return &out
}

// figures are the bandwidth of a measurement in bit/s and its latency in one direction; 0 is not measured. A link that was
// measured to carry nothing carries one bit.
func figures(m *links.Measurement) (bits int64, latency time.Duration) {
	carries := m.Bandwidth
	if carries == nil {
		carries = m.Throughput
	}
	if carries != nil {
		bits = int64(min(max(*carries*1000, 1), network.MaxBandwidth))
	}
	if m.RTT != nil {
		latency = half(*m.RTT)
	}
	return bits, latency
}
