package topology

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
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

	// Refreshed is used alone and names no node: the topology had been older than Fresh.
	Refreshed = "refreshed"
)

// order begins with the most urgent changes, which an event that is cut short keeps.
var order = []string{Lost, Drained, Removed, Returned, Restored, Added, Capacity, Devices, Labels, Score, Load}

const (
	// loadStep is the change of others' usage, in percent of the node, from which components without a place are looked
	// at again; smaller ones are noise.
	loadStep = 25
	// memoryStep ignores that a kernel reports slightly less memory after an update.
	memoryStep = 0.01
)

// moment is the topology at a time, with the silence from which a node counts as lost.
type moment struct {
	taxonomy   *Taxonomy
	at         time.Time
	staleAfter time.Duration
}

// changes lists the differences between two moments that matter to placement, most urgent first.
func changes(before, after moment) []events.TopologyChange {
	old := before.byPlace()
	var all []events.TopologyChange
	add := func(p Place, change, detail string) {
		all = append(all, events.TopologyChange{Cluster: p.Cluster, Node: p.Node, Change: change, Detail: detail})
	}
	for _, now := range after.taxonomy.Places() {
		name := [2]string{now.Cluster, now.Node}
		was, known := old[name]
		delete(old, name)
		if !known {
			add(now, Added, now.At.summary())
			was.At = &Node{Schedulable: now.At.Schedulable}
		}
		liveness(before, after, was.At, now, add)
		if known {
			facts(was, now, add)
		}
	}
	for _, was := range old {
		add(was, Removed, "telemetry knows it no longer")
	}
	slices.SortFunc(all, func(a, b events.TopologyChange) int {
		return cmp.Or(
			cmp.Compare(slices.Index(order, a.Change), slices.Index(order, b.Change)),
			cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Node, b.Node))
	})
	return all
}

func (m moment) byPlace() map[[2]string]Place {
	all := map[[2]string]Place{}
	if m.taxonomy != nil {
		for _, p := range m.taxonomy.Places() {
			all[[2]string{p.Cluster, p.Node}] = p
		}
	}
	return all
}

func liveness(before, after moment, was *Node, now Place, add func(Place, string, string)) {
	wasLost, isLost := was.Lost(before.at, before.staleAfter), now.At.Lost(after.at, after.staleAfter)
	seen, _ := now.At.SeenAt()
	switch {
	case isLost && !wasLost:
		silent := after.at.Sub(seen).Round(time.Second)
		add(now, Lost, fmt.Sprintf("silent for %s, last seen %s", silent, seen.Format(time.RFC3339)))
	case wasLost && !isLost:
		add(now, Returned, "telemetry again since "+seen.Format(time.RFC3339))
	}
	switch {
	case was.CanSchedule() && !now.At.CanSchedule():
		add(now, Drained, "takes no new work")
	case !was.CanSchedule() && now.At.CanSchedule():
		add(now, Restored, "takes new work again")
	}
}

// facts compares what placement filters and scores by.
func facts(was, now Place, add func(Place, string, string)) {
	a, b := was.At, now.At
	if detail := capacityChange(a, b); detail != "" {
		add(now, Capacity, detail)
	}
	if before, after := deviceList(a), deviceList(b); !slices.Equal(before, after) {
		add(now, Devices, bounded(without(before, after), "none")+" -> "+bounded(without(after, before), "none"))
	}
	if !maps.Equal(a.Labels, b.Labels) {
		add(now, Labels, labelChange(a.Labels, b.Labels))
	}
	if before, after := show(a.ScaScore), show(b.ScaScore); before != after {
		add(now, Score, before+" -> "+after)
	}
	if detail := loadChange(a, b); detail != "" {
		add(now, Load, detail)
	}
}

func capacityChange(a, b *Node) string {
	var parts []string
	differ := func(what, before, after string) {
		if before != after {
			parts = append(parts, fmt.Sprintf("%s %s -> %s", what, before, after))
		}
	}
	differ("cores", show(a.StaticMetrics.CPUCores), show(b.StaticMetrics.CPUCores))
	before, knownBefore := a.StaticMetrics.RAMMemory.Get()
	after, knownAfter := b.StaticMetrics.RAMMemory.Get()
	if knownBefore != knownAfter || math.Abs(after-before) > memoryStep*before {
		differ("memory", show(a.StaticMetrics.RAMMemory), show(b.StaticMetrics.RAMMemory))
	}
	differ("engine", a.Engine, b.Engine)
	differ("architecture", a.StaticMetrics.CPUArchitecture, b.StaticMetrics.CPUArchitecture)
	return strings.Join(parts, ", ")
}

func loadChange(a, b *Node) string {
	cpuBefore, memoryBefore := a.othersPercent()
	cpuAfter, memoryAfter := b.othersPercent()
	var parts []string
	for _, part := range []struct {
		what          string
		before, after Measure
	}{{"cpu", cpuBefore, cpuAfter}, {"memory", memoryBefore, memoryAfter}} {
		before, known := part.before.Get()
		after, ok := part.after.Get()
		if known && ok && math.Abs(after-before) >= loadStep {
			parts = append(parts, fmt.Sprintf("others use %.0f%% -> %.0f%% of %s", before, after, part.what))
		}
	}
	return strings.Join(parts, ", ")
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
