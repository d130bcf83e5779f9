package topology

import "math"

// CPUMilli returns the cpu of the node in millicores; ok is false when nobody measured it.
func (n *Node) CPUMilli() (milli int64, ok bool) {
	cores, ok := n.StaticMetrics.CPUCores.Get()
	return whole(cores * 1000), ok
}

// MemoryBytes returns the memory of the node; ok is false when nobody measured it.
func (n *Node) MemoryBytes() (bytes int64, ok bool) {
	b, ok := n.StaticMetrics.RAMMemory.Get()
	return whole(b), ok
}

// UsedCPUMilli returns the cpu in use, by anyone, in millicores: usage percent of all cores.
func (n *Node) UsedCPUMilli() (milli int64, ok bool) {
	percent, known := n.DynamicMetrics.CPUUsagePercent.Get()
	cores, ok := n.StaticMetrics.CPUCores.Get()
	return whole(percent / 100 * cores * 1000), known && ok
}

// UsedMemoryBytes returns the memory in use by anyone. Older documents give the free part only; used = all - free then.
func (n *Node) UsedMemoryBytes() (bytes int64, ok bool) {
	d := n.DynamicMetrics
	if used, known := d.UsedRAM.Get(); known {
		return whole(used), true
	}
	free, known := d.FreeRAM.Get()
	all, ok := n.StaticMetrics.RAMMemory.Get()
	if !known || !ok {
		return 0, false
	}
	return whole(all - free), true
}

// OwnUsage returns what our applications use of the node: the sum over the containers of all pods that belong to an
// application instance, cpu in millicores and memory in bytes.
func (n *Node) OwnUsage() (cpuMilli, memoryBytes int64) { return n.usageOf((*Pod).Ours) }

// UsageOf is OwnUsage of one application instance.
func (n *Node) UsageOf(instance string) (cpuMilli, memoryBytes int64) {
	return n.usageOf(func(p *Pod) bool { return p.of(instance) })
}

func (n *Node) usageOf(counts func(*Pod) bool) (cpuMilli, memoryBytes int64) {
	var cores, bytes float64
	for _, p := range n.Pod {
		if !counts(&p) {
			continue
		}
		for _, c := range p.Container {
			cores += c.CPUUsage.Or(0)
			bytes += c.ContainerMemory.Or(0)
		}
	}
	return whole(cores * 1000), whole(bytes)
}

// OthersUsage returns what everything but our applications uses: max(0, used - own). Placement subtracts it together
// with our own reservations, so that what our applications use and have reserved is not counted twice. Unmeasured usage
// counts as none.
func (n *Node) OthersUsage() (cpuMilli, memoryBytes int64) {
	ownCPU, ownMemory := n.OwnUsage()
	cpu, _ := n.UsedCPUMilli()
	memory, _ := n.UsedMemoryBytes()
	return max(0, cpu-ownCPU), max(0, memory-ownMemory)
}

// Ours reports whether the pod belongs to an application instance.
func (p *Pod) Ours() bool {
	for _, w := range p.Workload {
		if w.AppInstance != "" {
			return true
		}
	}
	return false
}

func (p *Pod) of(instance string) bool {
	for _, w := range p.Workload {
		if w.AppInstance == instance {
			return true
		}
	}
	return false
}

// whole rounds to an integer within 0..2^62, whatever the source claims.
func whole(v float64) int64 {
	const top = 1 << 62
	switch {
	case !(v > 0): // NaN too
		return 0
	case v >= top:
		return top
	}
	return int64(math.Round(v))
}
