package main

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/swm/topologies"
)

// part is what one source knows of the network.
type part struct {
	nodes []node
	links []link
}

// node is a router, a switch or a computer.
type node struct {
	ids      []string // the first is what links of the source call it
	name     string   // what it calls itself
	computer bool
	ip, mac  string
}

// link leads one way.
type link struct {
	source, target string        // ids
	bits           int64         // 0: not said
	latency        time.Duration // 0: not said
	more           map[string]string
}

// names are nodes of the taxonomy, by the ids that routers and LLDP have for them.
type names map[string]string

// namesOf reads those of the flag and of the file.
func namesOf(text, file string) (names, error) {
	lines := strings.Split(text, ",")
	if file != "" {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("names-file: %w", err)
		}
		for s := bufio.NewScanner(strings.NewReader(string(content))); s.Scan(); {
			lines = append(lines, s.Text())
		}
	}
	out := names{}
	for _, line := range lines {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		id, name, ok := strings.Cut(line, "=")
		id, name = normal(id), strings.TrimSpace(name)
		if !ok || id == "" || name == "" {
			return nil, fmt.Errorf("names: %q is not id=name", line)
		}
		if known, twice := out[id]; twice && known != name {
			return nil, fmt.Errorf("names: %s is both %s and %s", id, known, name)
		}
		out[id] = name
	}
	for _, name := range slices.Collect(maps.Values(out)) { // whoever calls itself so is it
		if _, taken := out[normal(name)]; !taken {
			out[normal(name)] = name
		}
	}
	return out, nil
}

func normal(id string) string { return strings.ToLower(strings.TrimSpace(id)) }

// in returns the node's name in the taxonomy.
func (n names) in(ids ...string) (string, bool) {
	for _, id := range ids {
		if name, known := n[normal(id)]; known {
			return name, true
		}
	}
	return "", false
}

// describe makes the document of what the sources know. What names has is a computer of the taxonomy; everything else forwards,
// unless LLDP says that it only is a station. left are the links whose bandwidth nobody says.
func describe(implementation string, known names, bandwidth int64, parts ...part) (d *topologies.Document, left int) {
	nodes, links := map[string]topologies.Node{}, map[[2]string]link{}
	for _, p := range parts {
		p.sort()
		called := p.called(known)
		add := func(name string, n node) {
			at := topologies.Node{Name: name, Type: "NETWORK", IPAddress: n.ip, MACAddress: n.mac}
			if _, mapped := known.in(slices.Concat(n.ids, []string{n.name})...); mapped || n.computer {
				at.Type = ""
			}
			if was, twice := nodes[name]; twice { // two sources know it
				at.IPAddress, at.MACAddress = cmp.Or(was.IPAddress, at.IPAddress), cmp.Or(was.MACAddress, at.MACAddress)
				at.Type = cmp.Or(was.Type, at.Type)
			}
			nodes[name] = at
		}
		for _, n := range p.nodes {
			add(called[n.ids[0]], n)
		}
		for _, l := range p.links {
			for _, end := range []string{l.source, l.target} {
				if called[end] == "" { // the node itself was not told of
					name, mapped := known.in(end)
					called[end] = cmp.Or(name, end)
					add(called[end], node{ids: []string{end}, computer: mapped})
				}
			}
			ends := [2]string{called[l.source], called[l.target]}
			if was, twice := links[ends]; ends[0] != ends[1] && (!twice || better(l, was)) {
				links[ends] = l
			}
		}
	}
	d = &topologies.Document{NetworkImplementation: implementation, Nodes: []topologies.Node{}, Links: []topologies.Link{}}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		d.Nodes = append(d.Nodes, nodes[name])
	}
	used := map[string]int{}
	for _, ends := range slices.SortedFunc(maps.Keys(links), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		l := links[ends]
		bits := cmp.Or(l.bits, links[[2]string{ends[1], ends[0]}].bits, bandwidth)
		if bits == 0 {
			left++
			continue
		}
		name := ends[0] + "-" + ends[1]
		if used[name]++; used[name] > 1 { // a-b to c, and a to b-c
			name += "-" + strconv.Itoa(used[name])
		}
		out := topologies.Link{Name: name, Source: ends[0], Target: ends[1], Capabilities: topologies.Capabilities{
			BandWidthBits: topologies.Quantity(strconv.FormatInt(min(bits, network.MaxBandwidth), 10)), OtherCapabilities: l.more,
		}}
		if l.latency > 0 {
			out.Capabilities.LatencyNanos = topologies.Quantity(strconv.FormatInt(l.latency.Nanoseconds(), 10))
		}
		d.Links = append(d.Links, out)
	}
	return d, left
}

// sort gives the part an order of its own: a document that differs is told, and sources know no order.
func (p part) sort() {
	slices.SortStableFunc(p.nodes, func(a, b node) int { return strings.Compare(a.ids[0], b.ids[0]) })
	slices.SortStableFunc(p.links, func(a, b link) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

// called returns the names of the nodes by the ids that links have. A name that two nodes give themselves is none of either.
func (p part) called(known names) map[string]string {
	own := map[string]int{}
	for _, n := range p.nodes {
		own[n.name]++
	}
	out := make(map[string]string, len(p.nodes))
	for _, n := range p.nodes {
		id := n.ids[0]
		name, mapped := known.in(slices.Concat(n.ids, []string{n.name})...)
		switch {
		case mapped:
			out[id] = name
		case n.name != "" && own[n.name] == 1:
			out[id] = n.name
		default:
			out[id] = id
		}
	}
	return out
}

// better reports whether a link is the one that counts of several between the same nodes: a network has one, and a channel goes
// along one, so it is the widest.
func better(a, b link) bool {
	if a.bits != b.bits {
		return a.bits > b.bits
	}
	return a.latency > 0 && (b.latency == 0 || a.latency < b.latency)
}
