package placement

import (
	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/placement/solver"
)

// routesTried is how many paths are computed between two network nodes, in each network, where none are given.
const routesTried = 4

// readChannels prepares the network and its channels. Nodes of one attachment are a site; a channel that stays within a
// component uses nothing and is left out.
func (m *model) readChannels(number map[string]int32) {
	if len(m.p.Channels) == 0 {
		return
	}
	topology := m.p.Network
	if topology == nil {
		topology = &network.Topology{}
	}
	m.routes = network.NewRoutes(topology, routesTried)
	for _, medium := range m.routes.Media {
		m.Media = append(m.Media, medium.Free())
	}
	sites := make(map[string]int32)
	for n := range m.nodes {
		name := m.nodes[n].attachment()
		site, known := sites[name]
		if !known {
			site = int32(len(m.sites))
			sites[name] = site
			m.sites = append(m.sites, name)
		}
		m.Nodes[n].Site = site
	}
	m.Routes = func(from, to int32) []solver.Route {
		var out []solver.Route
		for _, r := range m.routes.Between(m.sites[from], m.sites[to]) {
			out = append(out, solver.Route{Media: r.Media, Latency: r.Latency, Class: rank(r.Class)})
		}
		return out
	}
	for i := range m.p.Channels {
		ch := &m.p.Channels[i]
		from, to := number[ch.From], number[ch.To]
		if from == to {
			continue
		}
		k := int32(len(m.Channels))
		m.Channels = append(m.Channels, solver.Channel{
			From: from, To: to, Bandwidth: ch.Bandwidth, MaxLatency: ch.MaxLatency, Class: rank(ch.Class),
			Now: solver.Choice{Via: solver.NoRoute},
		})
		m.readCurrent(&m.Channels[k], ch.Current)
		m.channels = append(m.channels, i)
		m.Components[from].Channels = append(m.Components[from].Channels, k)
		m.Components[to].Channels = append(m.Components[to].Channels, k)
	}
}

// readCurrent finds the way that a channel takes now among the routes between the current places of its ends. One that is not there, or
// is no longer good enough, is as good as unknown.
func (m *model) readCurrent(ch *solver.Channel, way *Way) {
	a, b := m.comps[ch.From].Current, m.comps[ch.To].Current
	if way == nil || a == nil || b == nil {
		return
	}
	from, to := m.find(*a), m.find(*b)
	if from < 0 || to < 0 || from == to {
		return
	}
	k := m.viaOf(way.Network, way.Path, from, to)
	if k >= 0 && ch.Allows(&m.RoutesBetween(from, to)[k]) {
		ch.Now = solver.Choice{Sites: [2]int32{m.Nodes[from].Site, m.Nodes[to].Site}, Via: k}
	}
}

// viaOf returns the number of a route between two nodes, or NoRoute.
func (m *model) viaOf(network, path string, from, to int32) int32 {
	for via, r := range m.routes.Between(m.sites[m.Nodes[from].Site], m.sites[m.Nodes[to].Site]) {
		if r.Network == network && r.Path == path {
			return int32(via)
		}
	}
	return solver.NoRoute
}

// attachment returns the name of the network node that the node's traffic begins and ends at.
func (n *Node) attachment() string {
	if n.Attachment != "" {
		return n.Attachment
	}
	return n.Name
}

// rank orders classes: a route of a higher one serves channels of a lower one.
func rank(c network.Class) int32 {
	if c == network.Assured {
		return 1
	}
	return 0
}

// channelAssignments returns how each channel goes.
func (m *model) channelAssignments(s *state) []ChannelAssignment {
	out := make([]ChannelAssignment, len(m.p.Channels))
	placed := make(map[string]bool, len(m.comps))
	for c := range m.comps {
		placed[m.comps[c].ID] = s.At[c] >= 0
	}
	for i := range m.p.Channels {
		ch := &m.p.Channels[i]
		out[i] = ChannelAssignment{Channel: ch.ID, Routed: placed[ch.From] && placed[ch.To], Loopback: ch.From == ch.To}
		out[i].Loopback = out[i].Loopback && out[i].Routed
	}
	for k, i := range m.channels {
		a, b := s.At[m.Channels[k].From], s.At[m.Channels[k].To]
		switch via := s.Via[k]; {
		case !out[i].Routed:
		case a == b:
			out[i].Loopback = true
		case via >= 0:
			r := m.routes.Between(m.sites[m.Nodes[a].Site], m.sites[m.Nodes[b].Site])[via]
			out[i].Network, out[i].Path, out[i].Latency = r.Network, r.Path, r.Latency
		default:
			out[i].Routed = false
		}
	}
	return out
}

// vias reads the routes of a plan, for the places of its components.
func (m *model) vias(plan Plan, at []int32) []int32 {
	by := make(map[string]*ChannelAssignment, len(plan.Channels))
	for i := range plan.Channels {
		by[plan.Channels[i].Channel] = &plan.Channels[i]
	}
	out := make([]int32, len(m.Channels))
	for k, i := range m.channels {
		out[k] = solver.NoRoute
		a, b, had := at[m.Channels[k].From], at[m.Channels[k].To], by[m.p.Channels[i].ID]
		if a < 0 || b < 0 || a == b || had == nil {
			continue
		}
		out[k] = m.viaOf(had.Network, had.Path, a, b)
	}
	return out
}
