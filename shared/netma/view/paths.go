package view

import (
	"cmp"
	"slices"
)

// Path is a way through the network.
type Path struct {
	Nodes       []string `json:"nodes"`
	RoutingCost float64  `json:"routingcost"`
	HopCount    int      `json:"hopcount"`
	LatencyMS   float64  `json:"latencyMs"`
}

// Has reports whether there is a node of that name, a switch included.
func (v *View) Has(node string) bool { _, known := v.graph.number[node]; return known }

// Best returns the fastest way between two nodes; nil if there is none.
func (v *View) Best(from, to string) *Path {
	g := v.graph
	nodes := g.search(g.number[from]).path(g.number[to])
	if nodes == nil {
		return nil
	}
	return g.describePath(nodes)
}

func (g *graph) describePath(nodes []int) *Path {
	p := &Path{HopCount: len(nodes) - 1}
	for i, n := range nodes {
		p.Nodes = append(p.Nodes, g.names[n])
		if i == 0 {
			continue
		}
		p.LatencyMS += float64(g.arc(nodes[i-1], n).latency)
		if i < len(nodes)-1 {
			p.LatencyMS += float64(g.delay[n])
		}
	}
	p.RoutingCost = p.LatencyMS + 0.01*float64(p.HopCount)
	return p
}

// Disjoint returns as many ways as there are that have no node between their ends in common, the fastest first. They are the
// flow of the greatest value through nodes of capacity one (Ford and Fulkerson, 1956), found by shortest augmenting chains.
func (v *View) Disjoint(from, to string) []Path {
	g := v.graph
	s, t := g.number[from], g.number[to]
	if s == t {
		return nil
	}
	next := make(map[[2]int]bool) // arcs with flow
	for g.augment(s, t, next) {
	}
	var out []Path
	for _, a := range g.out[s] {
		if !next[[2]int{s, a.to}] {
			continue
		}
		nodes := []int{s, a.to}
		for here := a.to; here != t; {
			for _, b := range g.out[here] {
				if next[[2]int{here, b.to}] {
					here = b.to
					break
				}
			}
			nodes = append(nodes, here)
		}
		out = append(out, *g.describePath(nodes))
	}
	slices.SortStableFunc(out, func(a, b Path) int { return cmp.Compare(a.RoutingCost, b.RoutingCost) })
	return out
}

// half is one side of a node: what comes in goes to the other side once.
type half struct {
	node int
	out  bool
}

// augment finds one more unit of flow, perhaps taking some of the old back; it reports whether there was one.
func (g *graph) augment(s, t int, flow map[[2]int]bool) bool {
	into := map[int]int{} // where a node's flow comes from
	for a := range flow {
		into[a[1]] = a[0]
	}
	by := map[half]half{{s, true}: {s, true}}
	open := []half{{s, true}}
	reach := func(from, to half) {
		if _, been := by[to]; !been {
			by[to] = from
			open = append(open, to)
		}
	}
	for len(open) > 0 {
		here := open[0]
		open = open[1:]
		before, used := into[here.node]
		if !here.out {
			if here.node == t {
				g.apply(by, here, s, flow)
				return true
			}
			switch {
			case used:
				reach(here, half{before, true}) // the old way is taken back
			case g.forwards[here.node]:
				reach(here, half{here.node, true})
			}
			continue
		}
		if used && here.node != s {
			reach(here, half{here.node, false})
		}
		for _, a := range g.out[here.node] {
			if !flow[[2]int{here.node, a.to}] && a.to != s {
				reach(here, half{a.to, false})
			}
		}
	}
	return false
}

// apply turns the flow along the chain that ends at here.
func (g *graph) apply(by map[half]half, here half, s int, flow map[[2]int]bool) {
	for here.node != s || !here.out {
		from := by[here]
		switch {
		case from.node == here.node:
		case from.out:
			flow[[2]int{from.node, here.node}] = true
		default:
			delete(flow, [2]int{here.node, from.node})
		}
		here = from
	}
}
