// Package qos tells which channels of applications get no longer what they were promised: since a link was measured to be worse, or
// since the network was described anew.
package qos

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/netma/links"
	"github.com/littoral-project/littoral/shared/netma/state"
	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/channels"
	"github.com/littoral-project/littoral/shared/swm/topologies"
)

// Broken are the channels that are out of QoS, with the reason.
type Broken map[events.Channel]string

// Read looks at all channels that take a way now.
func Read(ctx context.Context, q store.Querier) (Broken, error) {
	n, err := read(ctx, q)
	if err != nil || n == nil {
		return Broken{}, err
	}
	return Find(n.topology, n.using, n.measured), nil
}

// now is a network with the channels that take ways through it.
type now struct {
	topology *network.Topology
	using    []channels.Channel
	measured []links.Measurement
}

// read returns nil where there is no network, or nothing takes a way.
func read(ctx context.Context, q store.Querier) (*now, error) {
	t, err := topologies.Read(ctx, q)
	if err != nil || t == nil {
		return nil, err
	}
	using, err := channels.Using(ctx, q)
	if err != nil || len(using) == 0 {
		return nil, err
	}
	measured, err := links.Current(ctx, q)
	return &now{t, using, measured}, err
}

// Foreseen are the channels that get what they were promised now, and before long will not, as forecasts of links say.
func Foreseen(ctx context.Context, q store.Querier, at time.Time) (Broken, error) {
	foreseen, err := links.Foreseen(ctx, q)
	if err != nil || len(foreseen) == 0 {
		return Broken{}, err
	}
	n, err := read(ctx, q)
	if err != nil || n == nil {
		return Broken{}, err
	}
	present, coming := Find(n.topology, n.using, n.measured), Find(n.topology, n.using, links.Worst(n.measured, foreseen, at))
	for c := range present {
		delete(coming, c)
	}
	return coming, nil
}

// Find is Read of what was read.
func Find(t *network.Topology, using []channels.Channel, measured []links.Measurement) Broken {
	out := Broken{}
	for at, fault := range state.Faults(t, using, measured) {
		for _, c := range fault.Channels {
			if out[c] == "" {
				out[c] = fmt.Sprintf("the link from %s to %s %s", at[0], at[1], fault.Reason)
			}
		}
	}
	out.described(t, using)
	return out
}

// described adds what does not keep to the description of the network: a way that is no longer there, or slower than the channel
// bears, or has a medium that carries less than all channels on it need.
func (b Broken) described(t *network.Topology, using []channels.Channel) {
	media := channels.Occupied(t, using, channels.None)
	full := map[string]string{} // by network and medium
	for i := range media.Networks {
		for _, m := range media.Networks[i].Media {
			if m.Used > m.Bandwidth {
				full[media.Networks[i].ID+"\n"+m.ID] = fmt.Sprintf("%s carries %d bit/s, of which its channels need %d", m.ID, m.Bandwidth, m.Used)
			}
		}
	}
	ways := state.NewWays(t)
	for _, c := range using {
		named := events.Channel{Application: c.Application, Name: c.Name}
		if b[named] != "" {
			continue
		}
		way := ways.Of(c)
		if len(way) == 0 {
			b[named] = "its way " + c.Path + " over " + c.Network + " is no longer there"
			continue
		}
		latency := ways.Latency(way)
		switch {
		case c.MaxLatency > 0 && latency > c.MaxLatency:
			b[named] = fmt.Sprintf("its way takes %v, of which it bears %v", latency, c.MaxLatency)
		case len(full) > 0:
			b[named] = fullOn(t, c.Network, way, full)
		}
		if b[named] == "" {
			delete(b, named)
		}
	}
}

// fullOn says which medium of a way is full; empty if none is.
func fullOn(t *network.Topology, of string, way []*network.Link, full map[string]string) string {
	base := map[string]string{}
	for i := range t.Networks {
		base[t.Networks[i].ID] = t.Networks[i].Base
	}
	var out []string
	for _, l := range way {
		for below, steps := of, 0; below != "" && steps <= len(base); below, steps = base[below], steps+1 {
			if why := full[below+"\n"+l.Medium]; why != "" {
				out = append(out, why)
				break
			}
		}
	}
	return strings.Join(out, "; ")
}
