// Package state compares what was measured of links with what the channels of applications were promised, and tells when a link
// keeps its channels no longer, and when it does again.
package state

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/netma/links"
	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/channels"
	"github.com/littoral-project/littoral/shared/swm/topologies"
)

// Fault is why a link does not keep its channels.
type Fault struct {
	Reason   string
	Channels []events.Channel
}

// Faults finds the links that do not keep what the channels that use them were promised: less bandwidth was measured than they
// need together, or a channel takes longer than it may. Probes stand on computers, so what they measure from end to end counts for
// the whole way; a switch has no probe.
func Faults(t *network.Topology, using []channels.Channel, measured []links.Measurement) map[[2]string]*Fault {
	now := make(map[[2]string]*links.Measurement, len(measured))
	for i := range measured {
		now[[2]string{measured[i].Source, measured[i].Target}] = &measured[i]
	}
	ways := NewWays(t)
	found := map[[2]string]*Fault{}
	blame := func(at [2]string, why string, of ...channels.Channel) {
		if found[at] == nil {
			found[at] = &Fault{Reason: why}
		}
		for _, c := range of {
			named := events.Channel{Application: c.Application, Name: c.Name}
			if !slices.Contains(found[at].Channels, named) {
				found[at].Channels = append(found[at].Channels, named)
			}
		}
	}
	on := map[[2]string][]channels.Channel{}
	for _, c := range using {
		way := ways.Of(c)
		if len(way) == 0 {
			continue
		}
		for _, l := range way {
			on[[2]string{l.Source, l.Target}] = append(on[[2]string{l.Source, l.Target}], c)
		}
		ends := [2]string{way[0].Source, way[len(way)-1].Target}
		if len(way) > 1 {
			on[ends] = append(on[ends], c)
		}
		if at, latency := slowest(way, ends, now); c.MaxLatency > 0 && latency > c.MaxLatency {
			blame(at, fmt.Sprintf("takes %v, of which a channel bears %v", latency.Round(10*time.Microsecond), c.MaxLatency), c)
		}
	}
	for at, all := range on {
		m := now[at]
		if m == nil {
			continue
		}
		carries := m.Bandwidth
		if carries == nil {
			carries = m.Throughput // of one connection, where nothing else was measured
		}
		var needed int64
		for _, c := range all {
			needed += c.Bandwidth
		}
		if carries != nil && float64(needed) > *carries*1000 {
			blame(at, fmt.Sprintf("carries %.0f kbit/s, of which its channels need %d", *carries, needed/1000), all...)
		}
	}
	return found
}

// slowest adds up the latencies as they were measured, or else as they were described, and returns with the sum the link to
// blame: the ends where they were measured, or the link that was measured furthest above what was said of it.
func slowest(way []*network.Link, ends [2]string, now map[[2]string]*links.Measurement) (at [2]string, sum time.Duration) {
	if m := now[ends]; m != nil && m.RTT != nil {
		return ends, half(*m.RTT)
	}
	var worst time.Duration
	known := false
	for _, l := range way {
		latency := l.Latency
		if m := now[[2]string{l.Source, l.Target}]; m != nil && m.RTT != nil {
			latency = half(*m.RTT)
			if over := latency - l.Latency; !known || over > worst {
				at, worst, known = [2]string{l.Source, l.Target}, over, true
			}
		}
		sum += latency
	}
	if !known {
		return at, 0
	}
	return at, sum
}

func half(ms float64) time.Duration { return time.Duration(ms / 2 * float64(time.Millisecond)) }

// Ways finds the links of channels.
type Ways struct {
	links map[[2]string]*network.Link
	paths map[[2]string][]string
	delay map[string]time.Duration // of network nodes
}

// NewWays prepares a topology, which may be nil.
func NewWays(t *network.Topology) Ways {
	w := Ways{map[[2]string]*network.Link{}, map[[2]string][]string{}, map[string]time.Duration{}}
	if t == nil {
		return w
	}
	for _, n := range t.Nodes {
		if n.Kind == network.Forwarder {
			w.delay[n.ID] = n.Latency
		}
	}
	for i := range t.Networks {
		n := &t.Networks[i]
		for k := range n.Links {
			w.links[[2]string{n.ID, n.Links[k].ID}] = &n.Links[k]
		}
		for _, p := range n.Paths {
			w.paths[[2]string{n.ID, p.ID}] = p.Links
		}
	}
	return w
}

// Latency is that of a way, as it was described.
func (w Ways) Latency(way []*network.Link) (sum time.Duration) {
	for i, l := range way {
		if sum += l.Latency; i > 0 {
			sum += w.delay[l.Source]
		}
	}
	return sum
}

// Of returns the links of a channel's way, none if some are no longer there.
func (w Ways) Of(c channels.Channel) []*network.Link {
	ids, given := w.paths[[2]string{c.Network, c.Path}]
	if !given {
		ids = strings.Split(c.Path, ",")
	}
	out := make([]*network.Link, 0, len(ids))
	for _, id := range ids {
		l := w.links[[2]string{c.Network, id}]
		if l == nil {
			return nil
		}
		out = append(out, l)
	}
	return out
}

// Save stores measurements, and tells which links keep their channels no longer, or again. Those who wait for a place are told
// as well, since there may be room now.
func Save(ctx context.Context, tx *store.Tx, all []links.Measurement) error {
	t, err := topologies.Read(ctx, tx)
	if err != nil {
		return err
	}
	using, err := channels.Using(ctx, tx)
	if err != nil {
		return err
	}
	if err := links.Save(ctx, tx, all); err != nil {
		return err
	}
	current, err := links.Current(ctx, tx)
	if err != nil {
		return err
	}
	faults := Faults(t, using, current)
	var mended []string
	for i := range current {
		m := &current[i]
		fault := faults[[2]string{m.Source, m.Target}]
		if fault == nil && m.Degraded == "" || fault != nil && m.Degraded != "" {
			continue // figures change all the time; it is told when it begins and when it ends
		}
		what, about := events.NetworkRestored, events.Network{Source: m.Source, Target: m.Target, Channels: []events.Channel{}}
		if fault != nil {
			what, about.Reason, about.Channels = events.NetworkDegraded, fault.Reason, fault.Channels
		} else {
			mended = append(mended, m.Source+" to "+m.Target+" keeps its channels again")
		}
		if _, err := links.SetDegraded(ctx, tx, m.Source, m.Target, about.Reason); err != nil {
			return err
		}
		if err := tx.Emit(ctx, what, "link/"+m.Source+"/"+m.Target, about); err != nil {
			return err
		}
	}
	if len(mended) == 0 {
		return nil
	}
	return topologies.Announce(ctx, tx, "links", mended...)
}
