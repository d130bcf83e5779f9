package topology

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/events"
)

// Words for what can change about a node, as events.TopologyChange carries them.
const (
	Added    = "added"
	Removed  = "removed"
	Lost     = "lost"     // silent for too long
	Returned = "returned" // heard of again
	Drained  = "drained"  // takes no new work
	Restored = "restored" // takes it again
	Capacity = "capacity" // cpu, memory, engine or architecture
	Devices  = "devices"
	Labels   = "labels"
	Score    = "score"
	Load     = "load" // the usage of others has changed by loadStep

	// Pods is told by an event of its own, events.PodsChanged: it is nothing to placement.
	Pods = "pods"

	// Network names no node: what lies between nodes was described anew.
	Network = "network"

	// Refreshed names no node: the topology had been older than Fresh, so nobody could decide by it.
	Refreshed = "refreshed"
)

// Room says on which nodes a component that fitted nowhere may fit after these changes: on none if nodes have only gone.
// anywhere says that nobody can tell, since a change is about no node, or the event was cut short and may have left out
// anything.
func Room(all []events.TopologyChange) (on [][2]string, anywhere bool) {
	if len(all) >= announcedChanges {
		return nil, true
	}
	for _, c := range all {
		at := [2]string{c.Cluster, c.Node}
		switch {
		case slices.Contains([]string{Lost, Drained, Removed}, c.Change):
		case c.Cluster == "" || c.Node == "":
			return nil, true
		case !slices.Contains(on, at):
			on = append(on, at)
		}
	}
	return on, false
}

// order begins with the most urgent changes, which an event that is cut short keeps.
var order = []string{Lost, Drained, Removed, Returned, Restored, Added, Capacity, Devices, Labels, Score, Load, Refreshed}

const (
	// loadStep is the change of others' usage, in percent of the node, from which components without a place are looked
	// at again; smaller ones are noise.
	loadStep = 25
	// memoryStep ignores that a kernel reports slightly less memory after an update.
	memoryStep = 0.01
)

// announced is what was announced of a node last. Differences are taken from it, so that many small ones add up.
type announced struct {
	Lost         bool              `json:"lost,omitempty"`
	Drained      bool              `json:"drained,omitempty"`
	Engine       string            `json:"engine,omitempty"`
	Architecture string            `json:"architecture,omitempty"`
	Cores        Measure           `json:"cores,omitzero"`
	Memory       Measure           `json:"memory,omitzero"`
	Devices      []string          `json:"devices,omitempty"` // as of deviceList
	Labels       map[string]string `json:"labels,omitempty"`
	Score        Measure           `json:"score,omitzero"`
	OthersCPU    Measure           `json:"othersCPU,omitzero"` // percent
	OthersMemory Measure           `json:"othersMemory,omitzero"`
	Pods         string            `json:"pods,omitempty"` // digest of the pods of applications; it follows each change
}

func announcedOf(n *Node, at time.Time, staleAfter time.Duration) announced {
	t := announced{
		Lost: n.Lost(at, staleAfter), Drained: !n.CanSchedule(), Engine: n.Engine,
		Architecture: n.StaticMetrics.CPUArchitecture, Cores: n.StaticMetrics.CPUCores, Memory: n.StaticMetrics.RAMMemory,
		Devices: deviceList(n), Labels: n.Labels, Score: n.ScaScore,
	}
	t.OthersCPU, t.OthersMemory = n.othersPercent()
	t.Pods = n.podsDigest()
	return t
}

// added lists the changes of a node that was not known before.
func added(p Place, now announced, at time.Time) []events.TopologyChange {
	return append([]events.TopologyChange{p.change(Added, p.At.summary())}, liveness(p, announced{Drained: now.Drained}, now, at)...)
}

// changes lists the differences of a node that matter to placement.
func changes(p Place, was, now announced, at time.Time) []events.TopologyChange {
	all := liveness(p, was, now, at)
	add := func(change, detail string) {
		if detail != "" {
			all = append(all, p.change(change, detail))
		}
	}
	add(Capacity, capacityChange(was, now))
	if !slices.Equal(was.Devices, now.Devices) {
		add(Devices, bounded(without(was.Devices, now.Devices), "none")+" -> "+bounded(without(now.Devices, was.Devices), "none"))
	}
	if !maps.Equal(was.Labels, now.Labels) {
		add(Labels, labelChange(was.Labels, now.Labels))
	}
	if before, after := show(was.Score), show(now.Score); before != after {
		add(Score, before+" -> "+after)
	}
	add(Load, loadChange(was, now))
	return all
}

func (p *Place) change(change, detail string) events.TopologyChange {
	return events.TopologyChange{Cluster: p.Cluster, Node: p.Node, Change: change, Detail: detail}
}

// urgentFirst sorts changes.
func urgentFirst(all []events.TopologyChange) {
	slices.SortFunc(all, func(a, b events.TopologyChange) int {
		return cmp.Or(
			cmp.Compare(slices.Index(order, a.Change), slices.Index(order, b.Change)),
			cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Node, b.Node))
	})
}

func liveness(p Place, was, now announced, at time.Time) (all []events.TopologyChange) {
	seen, _ := p.At.SeenAt()
	switch {
	case now.Lost && !was.Lost:
		silent := at.Sub(seen).Round(time.Second)
		all = append(all, p.change(Lost, fmt.Sprintf("silent for %s, last seen %s", silent, seen.Format(time.RFC3339))))
	case was.Lost && !now.Lost:
		all = append(all, p.change(Returned, "telemetry again since "+seen.Format(time.RFC3339)))
	}
	switch {
	case !was.Drained && now.Drained:
		all = append(all, p.change(Drained, "takes no new work"))
	case was.Drained && !now.Drained:
		all = append(all, p.change(Restored, "takes new work again"))
	}
	return all
}

func capacityChange(was, now announced) string {
	var parts []string
	differ := func(what, before, after string) {
		if before != after {
			parts = append(parts, fmt.Sprintf("%s %s -> %s", what, before, after))
		}
	}
	differ("cores", show(was.Cores), show(now.Cores))
	before, knownBefore := was.Memory.Get()
	after, knownAfter := now.Memory.Get()
	if knownBefore != knownAfter || math.Abs(after-before) > memoryStep*before {
		differ("memory", show(was.Memory), show(now.Memory))
	}
	differ("engine", was.Engine, now.Engine)
	differ("architecture", was.Architecture, now.Architecture)
	return strings.Join(parts, ", ")
}

func loadChange(was, now announced) string {
	var parts []string
	for _, part := range []struct {
		what          string
		before, after Measure
	}{{"cpu", was.OthersCPU, now.OthersCPU}, {"memory", was.OthersMemory, now.OthersMemory}} {
		before, known := part.before.Get()
		after, ok := part.after.Get()
		if known && ok && math.Abs(after-before) >= loadStep {
			parts = append(parts, fmt.Sprintf("others use %.0f%% -> %.0f%% of %s", before, after, part.what))
		}
	}
	return strings.Join(parts, ", ")
}

// podsDigest is equal as long as the applications' pods and their addresses are; "" without any.
func (n *Node) podsDigest() string {
	h := fnv.New64a()
	any := false
	for _, uid := range slices.Sorted(maps.Keys(n.Pod)) {
		p := n.Pod[uid]
		if !p.Ours() {
			continue
		}
		any = true
		fmt.Fprintf(h, "%q %q %q", uid, p.Name, p.IP)
		for _, instance := range slices.Sorted(maps.Keys(p.Workload)) {
			fmt.Fprintf(h, " %q %q", instance, p.Workload[instance].AppComponent)
		}
		for _, c := range slices.Sorted(maps.Keys(p.Container)) {
			fmt.Fprintf(h, " %q", p.Container[c].Port)
		}
	}
	if !any {
		return ""
	}
	return strconv.FormatUint(h.Sum64(), 36)
}

// othersPercent is the usage of others in percent of the node; unknown when usage or capacity is.
func (n *Node) othersPercent() (cpu, memory Measure) {
	usedCPU, usedMemory := n.OthersUsage()
	if _, known := n.UsedCPUMilli(); known {
		if all, _ := n.CPUMilli(); all > 0 {
			cpu = Known(100 * float64(usedCPU) / float64(all))
		}
	}
	if _, known := n.UsedMemoryBytes(); known {
		if all, _ := n.MemoryBytes(); all > 0 {
			memory = Known(100 * float64(usedMemory) / float64(all))
		}
	}
	return cpu, memory
}

func (n *Node) summary() string {
	return fmt.Sprintf("%s %s, cores %s, memory %s, score %s", cmp.Or(n.Engine, EngineUnknown),
		n.StaticMetrics.CPUArchitecture, show(n.StaticMetrics.CPUCores), show(n.StaticMetrics.RAMMemory), show(n.ScaScore))
}

// deviceList names the devices that a component can ask for, with their state. Names may repeat.
func deviceList(n *Node) []string {
	var list []string
	for _, d := range n.Devices {
		list = append(list, cmp.Or(d.Path, d.Name)+" "+cmp.Or(d.Status, DeviceUnknown))
	}
	slices.Sort(list)
	return list
}

// without returns the list minus one element for each equal one of others, so that people are only told what differs.
func without(list, others []string) []string {
	list = slices.Clone(list)
	for _, o := range others {
		if i := slices.Index(list, o); i >= 0 {
			list = slices.Delete(list, i, i+1)
		}
	}
	return list
}

func labelChange(before, after map[string]string) string {
	var list []string
	for key, value := range after {
		if old, had := before[key]; !had || old != value {
			list = append(list, key+"="+value)
		}
	}
	for key := range before {
		if _, has := after[key]; !has {
			list = append(list, key+" gone")
		}
	}
	slices.Sort(list)
	return bounded(list, "")
}

// bounded joins the beginning of a list for people; a node with hundreds of devices must not fill an event.
func bounded(list []string, empty string) string {
	const most = 5
	switch {
	case len(list) == 0:
		return empty
	case len(list) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list, ", ")
}

// show writes a measure for people; scores and cores to one decimal, so that rounding is not a change.
func show(m Measure) string {
	v, known := m.Get()
	if !known {
		return "unknown"
	}
	return text(Known(math.Round(v*10) / 10))
}
