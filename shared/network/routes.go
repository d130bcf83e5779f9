package network

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Route is a way from one compute node to another in one network.
type Route struct {
	Network string
	Path    string // the id of a given path, or the links of a computed one
	Class   Class
	Media   []int32 // numbers of the media, once for each link on one
	Latency time.Duration
}

// Routes finds the ways between nodes of a valid topology.
type Routes struct {
	Media []Medium // all media, with the network's id before theirs

	k     int
	nets  []*router
	pairs map[[2]string]pair
	known map[[2]string][]Route
}

// pair is what was measured between two nodes.
type pair struct {
	medium  int32 // -1 without a bandwidth
	latency time.Duration
}

// router is one network prepared for searching.
type router struct {
	*Network
	medium  map[string]int32
	out     map[string][]*Link
	link    map[string]*Link
	given   map[[2]string][]Path
	latency map[string]time.Duration // of network nodes
	compute map[string]bool
}

// NewRoutes prepares a valid topology; where no paths are given, the k shortest by latency are found.
func NewRoutes(t *Topology, k int) *Routes {
	out := &Routes{k: k, known: make(map[[2]string][]Route), pairs: make(map[[2]string]pair, len(t.Pairs))}
	number := make(map[string]map[string]int32, len(t.Networks)) // of media, by network
	byID := make(map[string]*Network, len(t.Networks))
	for i := range t.Networks {
		n := &t.Networks[i]
		byID[n.ID], number[n.ID] = n, make(map[string]int32, len(n.Media))
		for _, m := range n.Media {
			number[n.ID][m.ID] = int32(len(out.Media))
			m.ID = n.ID + "/" + m.ID
			out.Media = append(out.Media, m)
		}
	}
	for i := range t.Networks {
		n := &t.Networks[i]
		r := &router{
			Network: n, medium: map[string]int32{}, out: map[string][]*Link{}, link: map[string]*Link{},
			given: map[[2]string][]Path{}, latency: map[string]time.Duration{}, compute: map[string]bool{},
		}
		for below := n; below != nil; below = byID[below.Base] {
			for id, m := range number[below.ID] {
				if _, nearer := r.medium[id]; !nearer {
					r.medium[id] = m
				}
			}
		}
		for j := range n.Links {
			l := &n.Links[j]
			r.link[l.ID] = l
			r.out[l.Source] = append(r.out[l.Source], l)
		}
		for _, ls := range r.out {
			slices.SortFunc(ls, func(a, b *Link) int { return cmp.Compare(a.ID, b.ID) })
		}
		for _, p := range n.Paths {
			ends := [2]string{r.link[p.Links[0]].Source, r.link[p.Links[len(p.Links)-1]].Target}
			r.given[ends] = append(r.given[ends], p)
		}
		for _, node := range t.Nodes {
			if r.compute[node.ID] = node.Kind != Forwarder; !r.compute[node.ID] {
				r.latency[node.ID] = node.Latency
			}
		}
		out.nets = append(out.nets, r)
	}
	for _, p := range t.Pairs {
		one := pair{medium: -1, latency: p.Latency}
		if p.Bandwidth > 0 {
			one.medium = int32(len(out.Media))
			out.Media = append(out.Media, Medium{ID: "measured from " + p.Source + " to " + p.Target, Bandwidth: p.Bandwidth, Used: p.Used})
		}
		out.pairs[[2]string{p.Source, p.Target}] = one
	}
	return out
}

// Between returns the routes from one node to another in all networks, fastest first. Between a node and itself it
// returns given paths and links only.
func (r *Routes) Between(from, to string) []Route {
	if known, ok := r.known[[2]string{from, to}]; ok {
		return known
	}
	var out []Route
	for _, n := range r.nets {
		if given := n.given[[2]string{from, to}]; len(given) > 0 {
			for _, p := range given {
				links := make([]*Link, len(p.Links))
				for i, id := range p.Links {
					links[i] = n.link[id]
				}
				out = append(out, n.route(p.ID, links))
			}
			continue
		}
		for _, links := range n.shortest(from, to, r.k) {
			ids := make([]string, len(links))
			for i, l := range links {
				ids[i] = l.ID
			}
			out = append(out, n.route(strings.Join(ids, ","), links))
		}
	}
	if measured, ok := r.pairs[[2]string{from, to}]; ok {
		for i := range out {
			out[i].Latency = max(out[i].Latency, measured.latency)
			if measured.medium >= 0 {
				out[i].Media = append(out[i].Media, measured.medium)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Route) int {
		return cmp.Or(cmp.Compare(a.Latency, b.Latency), cmp.Compare(a.Network, b.Network), cmp.Compare(a.Path, b.Path))
	})
	r.known[[2]string{from, to}] = out
	return out
}

func (n *router) route(id string, links []*Link) Route {
	out := Route{Network: n.ID, Path: id, Class: n.Class}
	for i, l := range links {
		out.Media = append(out.Media, n.medium[l.Medium])
		out.Latency = addLatency(out.Latency, l.Latency)
		if i > 0 {
			out.Latency = addLatency(out.Latency, n.latency[l.Source])
		}
	}
	return out
}

// addLatency adds without overflow.
func addLatency(a, b time.Duration) time.Duration {
	if a > 1<<63-1-b {
		return 1<<63 - 1
	}
	return a + b
}

// shortest returns up to k paths without a cycle, fastest first, ties by the ids of links (Yen, Finding the k shortest
// loopless paths in a network, 1971). Paths go through network nodes only.
func (n *router) shortest(from, to string, k int) [][]*Link {
	if from == to {
		for _, l := range n.out[from] {
			if l.Target == to {
				return [][]*Link{{l}}
			}
		}
		return nil
	}
	first := n.dijkstra(from, to, nil, nil)
	if first == nil {
		return nil
	}
	found, open := [][]*Link{first}, [][]*Link(nil)
	for len(found) < k {
		last := found[len(found)-1]
		for i := range last {
			barred, been := make(map[*Link]bool), make(map[string]bool)
			for _, p := range found {
				if len(p) > i && slices.Equal(p[:i], last[:i]) {
					barred[p[i]] = true
				}
			}
			for _, l := range last[:i] {
				been[l.Source] = true
			}
			if rest := n.dijkstra(last[i].Source, to, barred, been); rest != nil {
				p := append(slices.Clone(last[:i]), rest...)
				if !slices.ContainsFunc(open, func(o []*Link) bool { return slices.Equal(o, p) }) {
					open = append(open, p)
				}
			}
		}
		if len(open) == 0 {
			break
		}
		best := 0
		for i := range open {
			if n.compare(open[i], open[best]) < 0 {
				best = i
			}
		}
		found = append(found, open[best])
		open = slices.Delete(open, best, best+1)
	}
	return found
}

func (n *router) compare(a, b []*Link) int {
	return cmp.Or(cmp.Compare(n.route("", a).Latency, n.route("", b).Latency), cmp.Compare(len(a), len(b)),
		slices.CompareFunc(a, b, func(x, y *Link) int { return cmp.Compare(x.ID, y.ID) }))
}

// dijkstra returns a fastest path without barred links and nodes that were visited, or nil.
func (n *router) dijkstra(from, to string, barred map[*Link]bool, been map[string]bool) []*Link {
	type label struct {
		latency time.Duration
		hops    int
		by      *Link
	}
	at := map[string]label{from: {}}
	done := make(map[string]bool)
	for {
		here, found := "", false
		for id, l := range at {
			if b := at[here]; !done[id] && (!found || cmp.Or(cmp.Compare(l.latency, b.latency),
				cmp.Compare(l.hops, b.hops), cmp.Compare(id, here)) < 0) {
				here, found = id, true
			}
		}
		if !found {
			return nil
		}
		if here == to {
			break
		}
		done[here] = true
		if here != from && n.compute[here] {
			continue // computers do not forward
		}
		for _, l := range n.out[here] {
			if barred[l] || been[l.Target] || done[l.Target] || l.Target == here {
				continue
			}
			next := label{addLatency(at[here].latency, addLatency(l.Latency, n.latency[here])), at[here].hops + 1, l}
			if here == from {
				next.latency = l.Latency
			}
			if old, seen := at[l.Target]; !seen || next.latency < old.latency ||
				(next.latency == old.latency && next.hops < old.hops) {
				at[l.Target] = next
			}
		}
	}
	var out []*Link
	for here := to; here != from; here = at[here].by.Source {
		out = append(out, at[here].by)
	}
	slices.Reverse(out)
	return out
}

// String names the route for people.
func (r *Route) String() string { return fmt.Sprintf("%s over %s", r.Path, r.Network) }
