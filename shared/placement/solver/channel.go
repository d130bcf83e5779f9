package solver

import (
	"math"
	"time"
)

// Channel is traffic from one component to another, which takes one route unless both are on one node.
type Channel struct {
	From, To   int32
	Bandwidth  int64
	MaxLatency time.Duration // 0 for none
	Class      int32         // a route of this class or above
	Now        Choice        // what it takes while both ends are at home, if that is known and good enough
}

// Route is a way between two sites: what it goes over, each medium once for every time, and how good it is.
type Route struct {
	Media   []int32
	Latency time.Duration
	Class   int32
}

// Allows reports whether the route is fast and good enough for the channel.
func (ch *Channel) Allows(r *Route) bool {
	return (ch.MaxLatency == 0 || r.Latency <= ch.MaxLatency) && r.Class >= ch.Class
}

// RoutesBetween returns the routes between the sites of two nodes, in order.
func (m *Model) RoutesBetween(a, b int32) []Route {
	pair := [2]int32{m.Nodes[a].Site, m.Nodes[b].Site}
	out, known := m.routes[pair]
	if !known {
		if m.routes == nil {
			m.routes = make(map[[2]int32][]Route)
		}
		out = m.Routes(pair[0], pair[1])
		m.routes[pair] = out
	}
	return out
}

// Via values of a channel without a route of its own.
const (
	NoRoute  = int32(-1) // an end has no place, or both are on one node
	Unrouted = int32(-2) // no route had room; such a state is never a solution
)

// Choice is a route between two sites.
type Choice struct {
	Sites [2]int32
	Via   int32 // its number there, or NoRoute
}

// between reports whether it is a choice between the sites of two nodes.
func (m *Model) between(c Choice, from, to int32) bool {
	return c.Via >= 0 && c.Sites == [2]int32{m.Nodes[from].Site, m.Nodes[to].Site}
}

// Ends returns the nodes of a channel with component c at node n; ok is false if it needs no route.
func (s *State) Ends(ch *Channel, c, n int32) (from, to int32, ok bool) {
	from, to = s.At[ch.From], s.At[ch.To]
	if ch.From == c {
		from = n
	}
	if ch.To == c {
		to = n
	}
	return from, to, from >= 0 && to >= 0 && from != to
}

// routable reports whether all channels of an unplaced component find routes from the node to their placed ends at
// once. Routes are chosen one by one, so a no is not proof that no other choice would do.
func (s *State) routable(c, n int32) bool {
	ok := true
	chosen := s.chosen[:0]
	for _, i := range s.m.Components[c].Channels {
		ch := &s.m.Channels[i]
		from, to, needed := s.Ends(ch, c, n)
		if !needed {
			continue
		}
		via := s.Route(i, from, to)
		if via < 0 {
			ok = false
			break
		}
		r := &s.m.RoutesBetween(from, to)[via]
		s.send(r, ch.Bandwidth)
		chosen = append(chosen, sent{r, ch.Bandwidth})
	}
	for _, x := range chosen {
		s.send(x.route, -x.bandwidth)
	}
	s.chosen = chosen
	return ok
}

// sent is traffic on a route.
type sent struct {
	route     *Route
	bandwidth int64
}

// Route chooses a route with room: the one that the channel had last between these sites, else the one that it takes now, else the
// one that leaves the largest share of its narrowest medium free, ties to the first.
func (s *State) Route(i, from, to int32) int32 {
	ch := &s.m.Channels[i]
	routes := s.m.RoutesBetween(from, to)
	s.work += int64(len(routes))
	for _, known := range [2]Choice{s.last[i], ch.Now} {
		if s.m.between(known, from, to) && s.room(&routes[known.Via], ch.Bandwidth) >= 0 {
			return known.Via
		}
	}
	best, most := NoRoute, -1.0
	for k := range routes {
		if r := &routes[k]; ch.Allows(r) {
			if room := s.room(r, ch.Bandwidth); room > most {
				best, most = int32(k), room
			}
		}
	}
	return best
}

// room returns the smallest share that a medium of the route has left with so much more on it, -1 if that is too much.
func (s *State) room(r *Route, bandwidth int64) float64 {
	s.send(r, bandwidth)
	least := math.Inf(1)
	for _, m := range r.Media {
		free := s.m.Media[m]
		if s.used[m] > free {
			least = -1
			break
		}
		least = min(least, float64(free-s.used[m])/float64(max(1, free)))
	}
	s.send(r, -bandwidth)
	return least
}

func (s *State) send(r *Route, bandwidth int64) {
	for _, m := range r.Media {
		s.used[m] += bandwidth
	}
}

// connect gives the channels of a component that was put at a node their routes.
func (s *State) connect(c, n int32) {
	for _, i := range s.m.Components[c].Channels {
		ch := &s.m.Channels[i]
		from, to, needed := s.Ends(ch, c, n)
		if !needed {
			continue
		}
		via := s.Route(i, from, to)
		if via < 0 {
			s.Via[i] = Unrouted
			s.unrouted++
			continue
		}
		s.Via[i] = via
		s.last[i] = Choice{[2]int32{s.m.Nodes[from].Site, s.m.Nodes[to].Site}, via}
		s.send(&s.m.RoutesBetween(from, to)[via], ch.Bandwidth)
	}
}

// disconnect frees the routes of a component that leaves a node; the other ends are still in place.
func (s *State) disconnect(c, n int32) {
	for _, i := range s.m.Components[c].Channels {
		switch via := s.Via[i]; {
		case via == Unrouted:
			s.unrouted--
		case via >= 0:
			from, to, _ := s.Ends(&s.m.Channels[i], c, n)
			s.send(&s.m.RoutesBetween(from, to)[via], -s.m.Channels[i].Bandwidth)
		}
		s.Via[i] = NoRoute
	}
}

// onNow reports whether the channels of a placed component take the routes that they take now, as far as these are known for where
// the ends are.
func (s *State) onNow(c int32) bool {
	for _, i := range s.m.Components[c].Channels {
		ch := &s.m.Channels[i]
		if from, to, needed := s.Ends(ch, c, s.At[c]); needed && s.m.between(ch.Now, from, to) && s.Via[i] != ch.Now.Via {
			return false
		}
	}
	return true
}

// prefer makes the channels take these routes again when their ends are placed at these nodes.
func (s *State) prefer(at, via []int32) {
	for i := range s.m.Channels {
		ch := &s.m.Channels[i]
		s.last[i] = ch.Now
		if a, b := at[ch.From], at[ch.To]; a >= 0 && b >= 0 && i < len(via) && via[i] >= 0 {
			s.last[i] = Choice{[2]int32{s.m.Nodes[a].Site, s.m.Nodes[b].Site}, via[i]}
		}
	}
}

// Used returns the bandwidth that the placement takes of a medium.
func (s *State) Used(medium int32) int64 { return s.used[medium] }
