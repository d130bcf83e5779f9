// Package view is the network as it is shown to others: the nodes of the taxonomy with their addresses, the networks that were
// described, and what was measured, as places (PIDs of ALTO) and costs between them.
package view

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/netma/links"
	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/topologies"
)

// Elsewhere is the place of all addresses that belong to no node.
const Elsewhere = "elsewhere"

// PID is a node, as a provider-defined identifier of ALTO.
type PID struct {
	Name      string
	Cluster   string // empty for a node that only a description of a network knows
	Node      string
	Addresses []netip.Addr
	Watts     *float64 // what it draws
}

// View is one state of the network.
type View struct {
	PIDs     []PID  // by name
	Tag      string // of the names and addresses: a hash of them
	source   Source
	costs    *costs
	graph    *graph
	once     sync.Once
	byName   map[string]int
	byAddr   map[netip.Addr]int
	ranks    map[string][]int32
	ranking  sync.Mutex
	writing  sync.Mutex // of document, the last one that was made: of a large network it has megabytes
	named    string
	document []byte
}

// Source is what a view is made of.
type Source struct {
	Nodes    []Node
	Network  *network.Topology // nil: nobody has described any
	Listed   []topologies.Node // of the descriptions, for their addresses
	Measured []links.Measurement
	Foreseen []links.Forecast
}

// Node is one of the taxonomy.
type Node struct {
	Cluster    string          `db:"cluster"`
	Node       string          `db:"node"`
	Interfaces json.RawMessage `db:"interfaces"`
	Watts      *float64        `db:"watts"`
}

const (
	selectNodes = `select cluster, node, body -> 'networkInterfaces' as interfaces, watts from topology_nodes order by cluster, node`

	// What a view depends on; measurements also grow old.
	selectVersion = `select concat_ws(' ', (select concat(count(*), ' ', max(written_at)) from topology_nodes), (select max(at) from topology),
(select concat(count(*), ' ', max(updated_at)) from network_topologies),
(select concat(count(*), ' ', max(measured_at)) from link_measurements where measured_at > now() - $1::interval),
(select concat(count(*), ' ', max(told_at)) from metric_forecasts where metric like 'net\_%'))`
)

// Read makes the view of what is stored.
func Read(ctx context.Context, q store.Querier) (*View, error) {
	var s Source
	var err error
	if s.Nodes, err = store.Collect(ctx, q, "read the nodes", pgx.RowToStructByName[Node], selectNodes); err != nil {
		return nil, err
	}
	documents, err := topologies.List(ctx, q)
	if err != nil {
		return nil, err
	}
	all := make([]topologies.Document, len(documents))
	for i := range documents {
		all[i] = documents[i].Document
		s.Listed = append(s.Listed, all[i].Nodes...)
	}
	if len(all) > 0 {
		if s.Network, err = topologies.Join(all); err != nil {
			return nil, err
		}
	}
	if s.Measured, err = links.Current(ctx, q); err != nil {
		return nil, err
	}
	if s.Foreseen, err = links.Foreseen(ctx, q); err != nil {
		return nil, err
	}
	return New(s), nil
}

// Cache keeps the view of the instance while what it is made of stays the same.
type Cache struct {
	mu      sync.Mutex
	version string
	view    *View
}

// Get returns the present view.
func (c *Cache) Get(ctx context.Context, q store.Querier) (*View, error) {
	var version string
	if err := q.QueryRow(ctx, selectVersion, links.Fresh).Scan(&version); err != nil {
		return nil, fmt.Errorf("read the version of the network: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.view != nil && c.version == version {
		return c.view, nil
	}
	v, err := Read(ctx, q)
	if err != nil {
		return nil, err
	}
	c.view, c.version = v, version
	return v, nil
}

// New makes a view.
func New(s Source) *View {
	v := &View{source: s, byName: map[string]int{}, byAddr: map[netip.Addr]int{}, ranks: map[string][]int32{}}
	clusters := map[string]int{} // how many have a node of the name
	for _, n := range s.Nodes {
		clusters[n.Node]++
	}
	listed := map[string][]netip.Addr{}
	for _, n := range s.Listed {
		if a, err := netip.ParseAddr(n.IPAddress); err == nil {
			listed[n.Name] = append(listed[n.Name], a)
		}
	}
	for _, n := range s.Nodes {
		p := PID{Name: n.Node, Cluster: n.Cluster, Node: n.Node, Watts: n.Watts, Addresses: append(addresses(n.Interfaces), listed[n.Node]...)}
		if clusters[n.Node] > 1 {
			p.Name = n.Cluster + ":" + n.Node
		}
		v.PIDs = append(v.PIDs, p)
	}
	if s.Network != nil {
		for _, n := range s.Network.Nodes {
			if n.Kind != network.Forwarder && clusters[n.ID] == 0 {
				v.PIDs = append(v.PIDs, PID{Name: n.ID, Node: n.ID, Addresses: listed[n.ID]})
			}
		}
	}
	known := map[string]bool{}
	for i := range v.PIDs {
		known[v.PIDs[i].Node] = true
	}
	for _, m := range s.Measured {
		for _, end := range []string{m.Source, m.Target} {
			if !known[end] {
				known[end] = true
				v.PIDs = append(v.PIDs, PID{Name: end, Node: end})
			}
		}
	}
	v.name()
	v.own()
	v.tag()
	v.graph = newGraph(v, s)
	return v
}

// name gives every place a name that ALTO allows, and sorts by it.
func (v *View) name() {
	taken := map[string]bool{Elsewhere: true}
	for i := range v.PIDs {
		p := &v.PIDs[i]
		name := legal(p.Name)
		if name != p.Name || taken[name] {
			sum := sha256.Sum256([]byte(p.Cluster + "\x00" + p.Node))
			name = name[:min(len(name), 55)] + "-" + hex.EncodeToString(sum[:4])
		}
		taken[name], p.Name = true, name
	}
	slices.SortFunc(v.PIDs, func(a, b PID) int { return strings.Compare(a.Name, b.Name) })
	for i := range v.PIDs {
		v.byName[v.PIDs[i].Name] = i
	}
}

// legal replaces what a name may not have. The dot is reserved by the RFC.
func legal(name string) string {
	text := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == ':', r == '@', r == '_':
			return r
		}
		return '_'
	}, name)
	if text == "" {
		return "_"
	}
	return text[:min(len(text), 64)]
}

// own finds out whose the addresses are. One that several nodes have, such as that of a bridge of containers, is nobody's.
func (v *View) own() {
	times := map[netip.Addr]int{}
	for i := range v.PIDs {
		slices.SortFunc(v.PIDs[i].Addresses, netip.Addr.Compare)
		v.PIDs[i].Addresses = slices.Compact(v.PIDs[i].Addresses)
		for _, a := range v.PIDs[i].Addresses {
			times[a]++
		}
	}
	for i := range v.PIDs {
		v.PIDs[i].Addresses = slices.DeleteFunc(v.PIDs[i].Addresses, func(a netip.Addr) bool { return times[a] > 1 })
		for _, a := range v.PIDs[i].Addresses {
			v.byAddr[a] = i
		}
	}
}

func (v *View) tag() {
	h := sha256.New()
	for i := range v.PIDs {
		_, _ = fmt.Fprintln(h, v.PIDs[i].Name, v.PIDs[i].Addresses) // a hash takes everything
	}
	v.Tag = hex.EncodeToString(h.Sum(nil)[:16])
}

// addresses are those of the interfaces that others can reach.
func addresses(interfaces json.RawMessage) []netip.Addr {
	var all map[string]struct {
		IP string `json:"ip"`
	}
	if len(interfaces) == 0 || json.Unmarshal(interfaces, &all) != nil {
		return nil
	}
	var out []netip.Addr
	for _, i := range all {
		text, _, _ := strings.Cut(i.IP, "/")
		a, err := netip.ParseAddr(text)
		if err == nil && !a.IsLoopback() && !a.IsLinkLocalUnicast() && !a.IsUnspecified() && !a.IsMulticast() && a.Zone() == "" {
			out = append(out, a.Unmap())
		}
	}
	return out
}

// Find returns the number of the place with that name.
func (v *View) Find(name string) (int, bool) { i, there := v.byName[name]; return i, there }

// At returns the number of the place that an address belongs to; none for those of Elsewhere.
func (v *View) At(a netip.Addr) (int, bool) { i, there := v.byAddr[a.Unmap()]; return i, there }

// Document returns a document that is made of the view, made once while it is asked for again and again.
func (v *View) Document(name string, produce func() ([]byte, error)) ([]byte, error) {
	v.writing.Lock()
	defer v.writing.Unlock()
	if v.named == name {
		return v.document, nil
	}
	text, err := produce()
	if err == nil {
		v.named, v.document = name, text
	}
	return text, err
}
