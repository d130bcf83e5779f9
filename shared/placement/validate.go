package placement

import (
	"fmt"
	"math"

	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/problem"
)

// maxPoints limits weights and costs so that sums keep their precision.
const maxPoints = 1e9

// validate returns the nodes in order, or an Invalid error with every fault of the problem.
func validate(p *Problem) (*nodeIndex, error) {
	var f problem.Faults
	if len(p.Components) > MaxComponents {
		f.Add("components", 0, "%d components, at most %d", len(p.Components), MaxComponents)
	}
	if len(p.Nodes) > MaxNodes {
		f.Add("nodes", 0, "%d nodes, at most %d", len(p.Nodes), MaxNodes)
	}
	if !f.Empty() {
		return nil, f.Err("the placement problem is too large")
	}
	check := faults{&f}
	groups := check.groups(p.Groups)
	ids := make(map[string]int, len(p.Components))
	for i := range p.Components {
		id := p.Components[i].ID
		if id == "" {
			f.Add(fmt.Sprintf("components[%d].id", i), 0, "must not be empty")
		}
		if first, twice := ids[id]; twice {
			f.Add(fmt.Sprintf("components[%d].id", i), 0, "%q is also components[%d]", id, first)
			continue
		}
		ids[id] = i
	}
	for i := range p.Components {
		path := entry{"components", i}
		check.component(path, &p.Components[i], ids)
		if g := p.Components[i].Group; g != "" && !groups[g] {
			f.Add(path.at(".group"), 0, "no group %q", g)
		}
	}
	nodes := indexNodes(p.Nodes)
	for i := range p.Nodes {
		path := entry{"nodes", i}
		n := &p.Nodes[i]
		if n.Name == "" {
			f.Add(path.at(".name"), 0, "must not be empty")
		}
		if first, twice := nodes.repeated[i]; twice {
			f.Add(path.at(""), 0, "%s is also nodes[%d]", place(n.Target().lower()), first)
		}
		check.node(path, n)
	}
	for i, a := range p.Affinities {
		path := entry{"affinities", i}
		check.known(path, ".a", a.A, ids)
		check.known(path, ".b", a.B, ids)
		check.points(path, ".weight", a.Weight)
		check.amount(path, ".maxLatency", int64(a.MaxLatency))
		check.amount(path, ".bandwidth", a.Bandwidth)
		if _, known := scopes[a.Scope]; !known {
			f.Add(path.at(".scope"), 0, "%q is not node, cluster or orchestrator", a.Scope)
		}
	}
	check.links(p.Links)
	for i, t := range p.Peers {
		if t.Cluster == "" || t.Node != "" {
			f.Add(entry{"peers", i}.at(""), 0, "must name a cluster")
		}
	}
	check.channels(p, ids)
	check.scores(p)
	check.preferences(p, ids)
	for i := range p.Spreads {
		check.spread(entry{"spreads", i}, &p.Spreads[i], ids)
	}
	check.weights(entry{}, "weights", p.Weights)
	check.points(entry{}, "moveCost", p.MoveCost)
	check.amount(entry{}, "staleAfter", int64(p.StaleAfter))
	check.amount(entry{}, "budget", p.Budget)
	return nodes, f.Err("the placement problem is malformed")
}

type faults struct{ *problem.Faults }

// entry is the place of a fault: in a list, or in the problem itself if list is empty. Its text is only made if there
// is a fault.
type entry struct {
	list string
	i    int
}

func (e entry) at(field string) string {
	if e.list == "" {
		return field
	}
	return fmt.Sprintf("%s[%d]%s", e.list, e.i, field)
}

func (f faults) component(path entry, c *Component, ids map[string]int) {
	f.amount(path, ".cpu", c.CPU)
	f.amount(path, ".memory", c.Memory)
	f.amount(path, ".minFreeMemory", c.MinFreeMemory)
	f.amount(path, ".minSecurity", int64(c.MinSecurity))
	f.fraction(path, ".maxCPUUsage", c.MaxCPUUsage, 1)
	f.fraction(path, ".maxMemoryUsage", c.MaxMemoryUsage, 1)
	for _, k := range sortedKeys(c.Resources) {
		f.amount(path, ".resources."+k, c.Resources[k])
	}
	for i, d := range c.Devices {
		if d == "" {
			f.Add(path.at(fmt.Sprintf(".devices[%d]", i)), 0, "must not be empty")
		}
	}
	for i, other := range c.AntiAffinity {
		at := fmt.Sprintf(".antiAffinity[%d]", i)
		f.known(path, at, other, ids)
		if other == c.ID {
			f.Add(path.at(at), 0, "a component cannot be kept apart from itself")
		}
	}
}

// groups checks the groups and returns their ids.
func (f faults) groups(groups []Group) map[string]bool {
	ids := make(map[string]bool, len(groups))
	for i := range groups {
		g, path := &groups[i], entry{"groups", i}
		if g.ID == "" {
			f.Add(path.at(".id"), 0, "must not be empty")
		} else if ids[g.ID] {
			f.Add(path.at(".id"), 0, "%q is listed twice", g.ID)
		}
		ids[g.ID] = true
		f.weights(path, ".weights", g.Weights)
		f.amount(path, ".staleAfter", int64(g.StaleAfter))
	}
	return ids
}

func (f faults) weights(path entry, field string, w Weights) {
	f.points(path, field+".performance", w.Performance)
	f.points(path, field+".energy", w.Energy)
	f.points(path, field+".security", w.Security)
}

func (f faults) links(links []Link) {
	type pair [2]Target
	seen := make(map[pair]int, 2*len(links))
	for i := range links {
		l, path := &links[i], entry{"links", i}
		f.amount(path, ".latency", int64(l.Latency))
		f.amount(path, ".bandwidth", l.Bandwidth)
		f.points(path, ".cost", l.Cost)
		a, b := l.A.lower(), l.B.lower()
		if l.A.Node != "" || l.B.Node != "" || a == b {
			f.Add(path.at(""), 0, "must join two clusters")
		} else if first, twice := seen[pair{a, b}]; twice {
			f.Add(path.at(""), 0, "%s and %s are also joined by links[%d]", place(a), place(b), first)
		}
		seen[pair{a, b}], seen[pair{b, a}] = i, i
	}
}

func (f faults) channels(p *Problem, components map[string]int) {
	if p.Network != nil {
		p.Network.Check("network.", f.Faults)
	}
	if len(p.Channels) > MaxChannels {
		f.Add("channels", 0, "%d channels, at most %d", len(p.Channels), MaxChannels)
		return
	}
	seen := make(map[string]bool, len(p.Channels))
	for i := range p.Channels {
		ch, path := &p.Channels[i], entry{"channels", i}
		if seen[ch.ID] || ch.ID == "" {
			f.Add(path.at(".id"), 0, "%q is empty or listed twice", ch.ID)
		}
		seen[ch.ID] = true
		f.known(path, ".from", ch.From, components)
		f.known(path, ".to", ch.To, components)
		f.amount(path, ".bandwidth", ch.Bandwidth)
		if ch.Bandwidth > network.MaxBandwidth {
			f.Add(path.at(".bandwidth"), 0, "%d bit/s are more than %d: is the unit right?", ch.Bandwidth,
				int64(network.MaxBandwidth))
		}
		f.amount(path, ".maxLatency", int64(ch.MaxLatency))
		if ch.Class != "" && ch.Class != network.BestEffort && ch.Class != network.Assured {
			f.Add(path.at(".class"), 0, "%q is not %s or %s", ch.Class, network.BestEffort, network.Assured)
		}
	}
}

func (f faults) scores(p *Problem) {
	if p.Scores == nil {
		return
	}
	if len(p.Scores) != len(p.Components) {
		f.Add("scores", 0, "%d rows for %d components", len(p.Scores), len(p.Components))
	}
	seen := make(map[*float64]bool)
	for i, row := range p.Scores {
		if len(row) != len(p.Nodes) {
			f.Add(fmt.Sprintf("scores[%d]", i), 0, "%d scores for %d nodes", len(row), len(p.Nodes))
		}
		if len(row) == 0 || seen[&row[0]] {
			continue
		}
		seen[&row[0]] = true
		for k, v := range row {
			if math.IsNaN(v) || v < 0 || v > maxPoints {
				f.points(entry{"scores", i}, fmt.Sprintf("[%d]", k), v)
			}
		}
	}
}

func (f faults) preferences(p *Problem, ids map[string]int) {
	for i := range p.Preferences {
		one, path := &p.Preferences[i], entry{"preferences", i}
		seen := make(map[string]bool, len(one.Components))
		for k, id := range one.Components {
			f.known(path, fmt.Sprintf(".components[%d]", k), id, ids)
			if seen[id] {
				f.Add(path.at(fmt.Sprintf(".components[%d]", k)), 0, "%q is listed twice", id)
			}
			seen[id] = true
		}
		if len(one.Points) != len(p.Nodes) {
			f.Add(path.at(".points"), 0, "%d values for %d nodes", len(one.Points), len(p.Nodes))
		}
		for k, v := range one.Points {
			if math.IsNaN(v) || v < 0 || v > maxPoints {
				f.points(path, fmt.Sprintf(".points[%d]", k), v)
			}
		}
	}
}

func (f faults) node(path entry, n *Node) {
	f.amount(path, ".cpu", n.CPU)
	f.amount(path, ".memory", n.Memory)
	f.amount(path, ".otherCPU", n.OtherCPU)
	f.amount(path, ".otherMemory", n.OtherMemory)
	for i := range n.Reserved {
		if r := &n.Reserved[i]; r.CPU < 0 || r.Memory < 0 {
			f.amount(path, fmt.Sprintf(".reserved[%d].cpu", i), r.CPU)
			f.amount(path, fmt.Sprintf(".reserved[%d].memory", i), r.Memory)
		}
	}
	for _, k := range sortedKeys(n.Devices) {
		f.amount(path, ".devices."+k, int64(n.Devices[k]))
	}
	for _, k := range sortedKeys(n.Resources) {
		f.amount(path, ".resources."+k, n.Resources[k])
	}
	if n.SCA != nil {
		f.fraction(path, ".sca", *n.SCA, math.MaxFloat64)
	}
	if n.EnergyWatts != nil {
		f.fraction(path, ".energyWatts", *n.EnergyWatts, math.MaxFloat64)
	}
	f.fraction(path, ".cpuUsage", n.CPUUsage, math.MaxFloat64)
	f.fraction(path, ".memoryUsage", n.MemoryUsage, math.MaxFloat64)
	f.amount(path, ".age", int64(n.Age))
}

func (f faults) spread(path entry, s *Spread, ids map[string]int) {
	seen := make(map[string]bool, len(s.Components))
	for i, id := range s.Components {
		at := fmt.Sprintf(".components[%d]", i)
		f.known(path, at, id, ids)
		if seen[id] {
			f.Add(path.at(at), 0, "%q is listed twice", id)
		}
		seen[id] = true
	}
	if s.By == "" {
		f.Add(path.at(".by"), 0, "must be node, cluster, orchestrator or a node label")
	}
	f.amount(path, ".max", int64(s.Max))
	f.fraction(path, ".maxShare", s.MaxShare, 1)
	if (s.Max == 0) == (s.MaxShare == 0) {
		f.Add(path.at(""), 0, "exactly one of max and maxShare must be set")
	}
}

func (f faults) known(path entry, field, id string, ids map[string]int) {
	if _, ok := ids[id]; !ok {
		f.Add(path.at(field), 0, "no component %q", id)
	}
}

func (f faults) amount(path entry, field string, v int64) {
	if v < 0 {
		f.Add(path.at(field), 0, "%d is negative", v)
	}
}

func (f faults) fraction(path entry, field string, v, most float64) {
	if math.IsNaN(v) || v < 0 || v > most {
		f.Add(path.at(field), 0, "%v is not a number from 0 to %v", v, most)
	}
}

func (f faults) points(path entry, field string, v float64) {
	if math.IsNaN(v) || v < 0 || v > maxPoints {
		f.Add(path.at(field), 0, "%v is not a number from 0 to %v", v, float64(maxPoints))
	}
}
