package placement

import (
	"fmt"
	"strings"

	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/placement/solver"
)

// channelRoute: each channel to a placed component needs a route with room.
type channelRoute struct{}

func (channelRoute) rule() Rule { return RuleChannel }

func (k channelRoute) broken(s *state, c, n int32, add func(Rule)) {
	k.each(s, c, n, func(int32, []network.Route) { add(RuleChannel) })
}

// each calls with every channel of an unplaced component that has no route with room from the node, and all routes.
func (channelRoute) each(s *state, c, n int32, with func(channel int32, routes []network.Route)) {
	m := s.m
	for _, i := range m.Components[c].Channels {
		from, to, needed := s.Ends(&m.Channels[i], c, n)
		if needed && s.Route(i, from, to) < 0 {
			with(i, m.routes.Between(m.sites[m.Nodes[from].Site], m.sites[m.Nodes[to].Site]))
		}
	}
}

// why names every path that was tried and what it lacks.
func (k channelRoute) why(s *state, c, n int32) []Failure {
	var out []Failure
	k.each(s, c, n, func(i int32, routes []network.Route) {
		ch := &s.m.p.Channels[s.m.channels[i]]
		tried := make([]string, 0, len(routes))
		for r := range routes {
			tried = append(tried, routes[r].String()+": "+s.lacks(c, ch, &routes[r]))
		}
		f := Failure{Rule: RuleChannel, Needed: wants(ch), Available: "no path"}
		ways := "no path leads there"
		if len(tried) > 0 {
			f.Available, ways = plural(len(tried), "path"), strings.Join(tried, "; ")
		}
		name := s.m.channelCalled(i, c)
		called := name
		if ch.Name == "" {
			called = fmt.Sprintf("%s from %s to %s", ch.ID, ch.From, ch.To)
		}
		f.Detail = fmt.Sprintf("channel %s needs %s: %s", called, f.Needed, ways)
		out = append(out, f.about(ch.ID, name))
	})
	return out
}

func wants(ch *Channel) string {
	out := fmt.Sprintf("%d bit/s", ch.Bandwidth)
	if ch.MaxLatency > 0 {
		out += " within " + ch.MaxLatency.String()
	}
	if ch.Class == network.Assured {
		out += ", assured"
	}
	return out
}

// lacks says what a route lacks for a channel of component c, and who uses a medium that is full.
func (s *state) lacks(c int32, ch *Channel, r *network.Route) string {
	var out []string
	if !r.Class.Serves(ch.Class) {
		out = append(out, "is not assured")
	}
	if ch.MaxLatency > 0 && r.Latency > ch.MaxLatency {
		out = append(out, "takes "+r.Latency.String())
	}
	for _, medium := range r.Media {
		free := s.m.Media[medium] - s.Used(medium)
		if free >= ch.Bandwidth {
			continue
		}
		full := fmt.Sprintf("%s has %d bit/s free of %d", s.m.routes.Media[medium].ID, free,
			s.m.routes.Media[medium].Bandwidth)
		if by := s.usersOf(c, medium); len(by) > 0 {
			full += ", taken by " + strings.Join(by[:min(len(by), maxHolders)], ", ")
		}
		out = append(out, full)
	}
	return orNone(strings.Join(out, ", "))
}

// usersOf names the channels on a medium, as sentences about component c do.
func (s *state) usersOf(c, medium int32) []string {
	var out []string
	for i := range s.m.Channels {
		via := s.Via[i]
		if via < 0 {
			continue
		}
		r := s.m.RoutesBetween(s.At[s.m.Channels[i].From], s.At[s.m.Channels[i].To])[via]
		for _, m := range r.Media {
			if m == medium {
				out = append(out, s.m.channelCalled(int32(i), c))
				break
			}
		}
	}
	return out
}

// relax lowers what the channel asks for to what the best of its routes has; without a route it drops the channel's
// demands, which does not help, so that another node is chosen.
func (channelRoute) relax(at *misfit, f Failure) change {
	best := change{Change: Change{From: f.Needed, To: "none", Detail: "drop channel " + f.Key}, cost: 1}
	best.apply = func(p *Problem, _ int) { p.Channels = withoutChannel(p.Channels, f.of()) }
	for _, i := range at.m.Components[at.c].Channels {
		ch := at.m.p.Channels[at.m.channels[i]]
		from, to, needed := at.s.Ends(&at.m.Channels[i], at.c, at.n)
		if ch.ID != f.of() || !needed {
			continue
		}
		for _, r := range at.m.RoutesBetween(from, to) {
			if ch := lowered(at.s, &at.m.Channels[i], &r, ch, f.Key); ch.cost < best.cost {
				best = ch
			}
		}
	}
	return best
}

// lowered is the change that makes a channel, which is called name, fit a route; its cost is 1 or more if the route cannot
// serve.
func lowered(s *state, want *solver.Channel, r *solver.Route, ch Channel, name string) change {
	out := change{Change: Change{From: wants(&ch)}}
	var parts []string
	if r.Class < want.Class {
		out.cost += 0.5
		ch.Class = network.BestEffort
		parts = append(parts, "best effort")
	}
	if ch.MaxLatency > 0 && r.Latency > ch.MaxLatency {
		out.cost += lost(float64(r.Latency), float64(ch.MaxLatency)) / 2
		parts = append(parts, fmt.Sprintf("delay %s instead of %s", r.Latency, ch.MaxLatency))
		ch.MaxLatency = r.Latency
	}
	free, had := ch.Bandwidth, ch.Bandwidth
	for _, medium := range r.Media {
		free = min(free, max(0, s.m.Media[medium]-s.Used(medium)))
	}
	if free < had {
		out.cost += lost(float64(had), float64(free))
		parts = append(parts, fmt.Sprintf("%d bit/s instead of %d", free, had))
		ch.Bandwidth = free
	}
	out.To = wants(&ch)
	out.Detail = fmt.Sprintf("channel %s: %s", name, strings.Join(parts, ", "))
	out.apply = func(p *Problem, _ int) {
		for i := range p.Channels {
			if p.Channels[i].ID == ch.ID {
				p.Channels[i] = ch
			}
		}
	}
	return out
}

func withoutChannel(in []Channel, id string) []Channel {
	var out []Channel
	for _, ch := range in {
		if ch.ID != id {
			out = append(out, ch)
		}
	}
	return out
}
