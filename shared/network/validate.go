package network

import (
	"fmt"

	"github.com/littoral-project/littoral/shared/problem"
)

// Validate returns an Invalid error with every fault of the topology at its path, or nil. Paths are below prefix, such
// as "network.".
func (t *Topology) Validate(prefix string) error {
	var f problem.Faults
	t.Check(prefix, &f)
	return f.Err("the network is malformed")
}

// Check adds every fault of the topology.
func (t *Topology) Check(prefix string, f *problem.Faults) {
	links, paths := 0, 0
	for i := range t.Networks {
		links, paths = links+len(t.Networks[i].Links), paths+len(t.Networks[i].Paths)
	}
	for _, size := range []struct {
		what      string
		has, most int
	}{{"nodes", len(t.Nodes), MaxNodes}, {"links", links, MaxLinks}, {"paths", paths, MaxPaths}} {
		if size.has > size.most {
			f.Add(prefix+"networks", 0, "%d %s, at most %d", size.has, size.what, size.most)
			return
		}
	}
	c := checker{f, make(map[string]Kind, len(t.Nodes))}
	for i, n := range t.Nodes {
		at := fmt.Sprintf("%snodes[%d]", prefix, i)
		if _, twice := c.nodes[n.ID]; twice || n.ID == "" {
			f.Add(at+".id", 0, "%q is empty or listed twice", n.ID)
		}
		c.nodes[n.ID] = n.Kind
		if n.Kind != "" && n.Kind != Compute && n.Kind != Forwarder {
			f.Add(at+".kind", 0, "%q is not %s or %s", n.Kind, Compute, Forwarder)
		}
		c.positive(at+".latency", int64(n.Latency))
	}
	ids := make(map[string]int, len(t.Networks))
	for i := range t.Networks {
		id := t.Networks[i].ID
		if _, twice := ids[id]; twice || id == "" {
			f.Add(fmt.Sprintf("%snetworks[%d].id", prefix, i), 0, "%q is empty or listed twice", id)
		}
		ids[id] = i
	}
	for i := range t.Networks {
		c.network(fmt.Sprintf("%snetworks[%d]", prefix, i), t, ids, i)
	}
}

type checker struct {
	*problem.Faults
	nodes map[string]Kind
}

func (c checker) positive(at string, v int64) {
	if v < 0 {
		c.Add(at, 0, "%d is negative", v)
	}
}

func (c checker) network(at string, t *Topology, ids map[string]int, i int) {
	n := &t.Networks[i]
	if n.Class != "" && n.Class != BestEffort && n.Class != Assured {
		c.Add(at+".class", 0, "%q is not %s or %s", n.Class, BestEffort, Assured)
	}
	media := make(map[string]bool)
	for j, m := range n.Media {
		in := fmt.Sprintf("%s.media[%d]", at, j)
		if media[m.ID] || m.ID == "" {
			c.Add(in+".id", 0, "%q is empty or listed twice", m.ID)
		}
		media[m.ID] = true
		c.positive(in+".bandwidth", m.Bandwidth)
		if m.Bandwidth > MaxBandwidth {
			c.Add(in+".bandwidth", 0, "%d bit/s are more than %d: is the unit right?", m.Bandwidth, int64(MaxBandwidth))
		}
		c.positive(in+".used", m.Used)
	}
	for below, steps := n, 0; below.Base != ""; steps++ {
		k, known := ids[below.Base]
		if !known || steps > len(t.Networks) {
			c.Add(at+".base", 0, "%q is no network, or lies on itself", n.Base)
			break
		}
		below = &t.Networks[k]
		for _, m := range below.Media {
			media[m.ID] = true
		}
	}
	links := make(map[string]*Link, len(n.Links))
	pairs := make(map[[2]string]bool, len(n.Links))
	for j := range n.Links {
		l, in := &n.Links[j], fmt.Sprintf("%s.links[%d]", at, j)
		if links[l.ID] != nil || l.ID == "" {
			c.Add(in+".id", 0, "%q is empty or listed twice", l.ID)
		}
		links[l.ID] = l
		for _, end := range [][2]string{{".source", l.Source}, {".target", l.Target}} {
			if _, known := c.nodes[end[1]]; !known {
				c.Add(in+end[0], 0, "no node %q", end[1])
			}
		}
		if pairs[[2]string{l.Source, l.Target}] {
			c.Add(in, 0, "%s and %s are joined twice in this network", l.Source, l.Target)
		}
		pairs[[2]string{l.Source, l.Target}] = true
		if !media[l.Medium] {
			c.Add(in+".medium", 0, "no medium %q in this network or below it", l.Medium)
		}
		c.positive(in+".latency", int64(l.Latency))
	}
	seen := make(map[string]bool, len(n.Paths))
	for j, p := range n.Paths {
		in := fmt.Sprintf("%s.paths[%d]", at, j)
		if seen[p.ID] || p.ID == "" {
			c.Add(in+".id", 0, "%q is empty or listed twice", p.ID)
		}
		seen[p.ID] = true
		c.path(in, p, links)
	}
}

// path checks that the links follow each other, without a cycle, from a compute node to one.
func (c checker) path(at string, p Path, links map[string]*Link) {
	if len(p.Links) == 0 {
		c.Add(at+".links", 0, "must not be empty")
		return
	}
	been := make(map[string]bool, len(p.Links)+1)
	here, start := "", ""
	for i, id := range p.Links {
		l, in := links[id], fmt.Sprintf("%s.links[%d]", at, i)
		switch {
		case l == nil:
			c.Add(in, 0, "no link %q in this network", id)
			return
		case i == 0:
			start, been[l.Source] = l.Source, true
		case l.Source != here:
			c.Add(in, 0, "%q begins at %s, the one before ends at %s", id, l.Source, here)
			return
		}
		if here = l.Target; been[here] && (here != start || len(p.Links) > 1) {
			c.Add(in, 0, "the path comes back to %s", here)
			return
		}
		been[here] = true
	}
	for _, end := range []string{start, here} {
		if c.nodes[end] == Forwarder {
			c.Add(at, 0, "%s is no compute node, so no path may end there", end)
		}
	}
}
