package view

import (
	"cmp"
	"slices"

	"github.com/littoral-project/littoral/shared/netma/links"
	"github.com/littoral-project/littoral/shared/network"
)

// graph has the nodes of the networks and, of the links between two nodes, the fastest.
type graph struct {
	names    []string
	number   map[string]int
	forwards []bool
	delay    []float32 // ms, of nodes that forward
	out      [][]arc
	place    []int                     // by PID: its number here
	placeOf  map[int]int               // the other way round
	direct   map[[2]int]*links.Figures // what was measured, by number
}

type arc struct {
	to                 int
	latency, bandwidth float32 // ms, kbit/s
	measured           *links.Figures
}

func newGraph(v *View, s Source) *graph {
	g := &graph{number: map[string]int{}, placeOf: map[int]int{}, direct: map[[2]int]*links.Figures{}}
	for i := range v.PIDs {
		at := g.add(v.PIDs[i].Node)
		g.place = append(g.place, at)
		if _, twice := g.placeOf[at]; !twice {
			g.placeOf[at] = i
		}
	}
	for i := range s.Measured {
		m := &s.Measured[i]
		g.direct[[2]int{g.add(m.Source), g.add(m.Target)}] = &m.Figures
	}
	joined := map[[2]int]bool{}
	if s.Network != nil {
		g.describe(s.Network, joined)
	}
	described := tree{from: -1}
	for i := range s.Measured { // a pair that was measured is joined, whether or not somebody described how
		m := &s.Measured[i] // sorted by source
		from, to := g.number[m.Source], g.number[m.Target]
		if described.from != from {
			described = g.search(from)
		}
		if m.RTT != nil && described.by[to] < 0 {
			g.out[from] = append(g.out[from], arc{to, float32(*m.RTT) / 2, unknown, &m.Figures})
		}
	}
	for _, arcs := range g.out {
		slices.SortFunc(arcs, func(a, b arc) int { return cmp.Compare(a.to, b.to) })
	}
	return g
}

// describe adds the links of the networks. What was measured of a link counts more than what was said of it.
func (g *graph) describe(t *network.Topology, joined map[[2]int]bool) {
	for _, n := range t.Nodes {
		i := g.add(n.ID)
		g.forwards[i], g.delay[i] = n.Kind == network.Forwarder, float32(n.Latency.Seconds()*1000)
	}
	media := map[string]int64{}
	for i := range t.Networks {
		for _, m := range t.Networks[i].Media {
			media[m.ID] = m.Bandwidth
		}
	}
	for i := range t.Networks {
		for _, l := range t.Networks[i].Links {
			from, to := g.number[l.Source], g.number[l.Target]
			a := arc{to, float32(l.Latency.Seconds() * 1000), float32(media[l.Medium]) / 1000, g.direct[[2]int{from, to}]}
			if a.measured != nil && a.measured.RTT != nil {
				a.latency = float32(*a.measured.RTT) / 2
			}
			if a.measured != nil && a.measured.Bandwidth != nil {
				a.bandwidth = float32(*a.measured.Bandwidth)
			}
			if !joined[[2]int{from, to}] {
				joined[[2]int{from, to}] = true
				g.out[from] = append(g.out[from], a)
				continue
			}
			if k := slices.IndexFunc(g.out[from], func(o arc) bool { return o.to == to }); a.latency < g.out[from][k].latency {
				g.out[from][k] = a
			}
		}
	}
}

func (g *graph) add(name string) int {
	if i, known := g.number[name]; known {
		return i
	}
	g.number[name] = len(g.names)
	g.names, g.forwards, g.delay, g.out = append(g.names, name), append(g.forwards, false), append(g.delay, 0), append(g.out, nil)
	return len(g.names) - 1
}

// tree are the fastest ways from one node to all others.
type tree struct {
	from    int
	latency []float32
	hops    []int32
	by      []int  // the node before; -1: not reached
	over    []*arc // the link from there
	order   []int  // the nodes as they were reached, each after the one before it
}

type entry struct {
	latency float32
	hops    int32
	node    int32
}

func (e entry) before(o entry) bool {
	if e.latency != o.latency {
		return e.latency < o.latency
	}
	if e.hops != o.hops {
		return e.hops < o.hops
	}
	return e.node < o.node
}

// queue is a binary heap; container/heap would box every entry.
type queue []entry

func (q *queue) push(e entry) {
	h := append(*q, e)
	for i := len(h) - 1; i > 0 && h[i].before(h[(i-1)/2]); i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
	*q = h
}

func (q *queue) pop() entry {
	h := *q
	first, last := h[0], len(h)-1
	h[0], h = h[last], h[:last]
	for i := 0; ; {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < last && h[child].before(h[least]) {
				least = child
			}
		}
		if least == i {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	*q = h
	return first
}

// search finds the fastest ways; only nodes that forward are gone through.
func (g *graph) search(from int) tree {
	n := len(g.names)
	t := tree{from, make([]float32, n), make([]int32, n), slices.Repeat([]int{-1}, n), make([]*arc, n), make([]int, 0, n)}
	t.by[from] = from
	done := make([]bool, n)
	q := queue{{node: int32(from)}}
	for len(q) > 0 {
		here := q.pop()
		at := int(here.node)
		if done[at] {
			continue
		}
		done[at] = true
		t.order = append(t.order, at)
		if at != from && !g.forwards[at] {
			continue
		}
		for k := range g.out[at] {
			a := &g.out[at][k]
			latency, hops := here.latency+a.latency, here.hops+1
			if at != from {
				latency += g.delay[at]
			}
			if done[a.to] || t.by[a.to] >= 0 && (latency > t.latency[a.to] || latency == t.latency[a.to] && hops >= t.hops[a.to]) {
				continue
			}
			t.latency[a.to], t.hops[a.to], t.by[a.to], t.over[a.to] = latency, hops, at, a
			q.push(entry{latency, hops, int32(a.to)})
		}
	}
	return t
}

// path lists the nodes of a way, both ends included.
func (t tree) path(to int) []int {
	if t.by[to] < 0 {
		return nil
	}
	out := []int{to}
	for here := to; here != t.from; {
		here = t.by[here]
		out = append(out, here)
	}
	slices.Reverse(out)
	return out
}

func (g *graph) arc(from, to int) *arc {
	i, there := slices.BinarySearchFunc(g.out[from], to, func(a arc, to int) int { return cmp.Compare(a.to, to) })
	if !there {
		return nil
	}
	return &g.out[from][i]
}

// sum is what a way costs beside its latency.
type sum struct{ jitter, arrives, bandwidth, energy float32 }

// costs are those of the fastest ways; what was measured from end to end counts more than a sum.
func (g *graph) costs(v *View) *costs {
	c := newCosts(len(v.PIDs))
	sums := make([]sum, len(g.names))
	for s := range v.PIDs {
		t := g.search(g.place[s])
		g.sumUp(t, sums)
		for d := range v.PIDs {
			i, to := s*c.n+d, g.place[d]
			if w := v.PIDs[d].Watts; w != nil {
				c.energy[i] = float32(*w)
			}
			if s == d {
				c.latency[i], c.hops[i], c.rtt[i], c.jitter[i], c.loss[i] = 0, 0, 0, 0, 0
				continue
			}
			if t.by[to] >= 0 {
				c.latency[i], c.hops[i] = t.latency[to], float32(t.hops[to])
				c.jitter[i], c.loss[i], c.bandwidth[i] = sums[to].jitter, 100*(1-sums[to].arrives), sums[to].bandwidth
				c.energy[i] += sums[to].energy
			}
		}
	}
	for ends, m := range g.direct {
		if s, d := v.placed(ends[0]), v.placed(ends[1]); s != d {
			c.measured(s*c.n+d, m)
		}
	}
	for s := range c.n { // a round trip is both ways, unless it was measured
		for d := range c.n {
			if i := s*c.n + d; c.rtt[i] != c.rtt[i] {
				c.rtt[i] = c.latency[i] + c.latency[d*c.n+s]
			}
		}
	}
	return c
}

// placed returns the place of a node; those of two clusters with one name are measured alike, so it is the first.
func (v *View) placed(number int) int { return v.graph.placeOf[number] }

// sumUp adds up along the ways. Jitter and loss are known if they are of every link.
func (g *graph) sumUp(t tree, sums []sum) {
	for _, node := range t.order {
		if node == t.from {
			sums[node] = sum{arrives: 1, bandwidth: unknown}
			continue
		}
		a, s := t.over[node], sums[t.by[node]]
		if !(s.bandwidth < a.bandwidth) {
			s.bandwidth = a.bandwidth
		}
		if m := a.measured; m != nil {
			s.jitter += figure(m.Jitter)
			s.arrives *= 1 - figure(m.Loss)/100
			if m.Energy != nil {
				s.energy += float32(*m.Energy)
			}
		} else {
			s.jitter, s.arrives = unknown, unknown
		}
		sums[node] = s
	}
}

// measured takes over what was measured from end to end.
func (c *costs) measured(i int, m *links.Figures) {
	if m.RTT != nil {
		c.rtt[i] = float32(*m.RTT)
		c.latency[i] = c.rtt[i] / 2
	}
	for _, f := range []struct {
		to   []float32
		from *float64
	}{{c.jitter, m.Jitter}, {c.loss, m.Loss}, {c.tput, m.Throughput}, {c.bandwidth, m.Bandwidth}} {
		if f.from != nil {
			f.to[i] = float32(*f.from)
		}
	}
}

func figure(v *float64) float32 {
	if v == nil {
		return unknown
	}
	return float32(*v)
}
