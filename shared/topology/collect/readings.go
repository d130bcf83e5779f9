package collect

import (
	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/topology"
)

// addReadings adds the present readings of nodes.
func (b *builder) addReadings() {
	each := func(name string, set func(n *host, v float64)) {
		for _, s := range b.samples(name) {
			b.onHost(s, func(h *host) { set(h, s.Value) })
		}
	}
	each(qCPUUsage, func(h *host, v float64) { h.DynamicMetrics.CPUUsagePercent = percent(v) })
	each(qFrequency, func(h *host, v float64) { h.DynamicMetrics.CPUFrequency = hertz(v) })
	each(qTemperature, func(h *host, v float64) { h.DynamicMetrics.CPUTemperature = topology.Known(v) })
	each(qEnergy, func(h *host, v float64) { h.DynamicMetrics.CPUEnergyConsumption = joules(v) })
	each(qPower, func(h *host, v float64) { h.DynamicMetrics.CPUPowerWatts = joules(v) }) // uJ/s to W is the same factor
	each(qForecastCPU, func(h *host, v float64) { h.ForecastedMetrics.CPUUtilizationPrediction = percent(v) })
	each(qForecastMem, func(h *host, v float64) { h.ForecastedMetrics.MemoryUtilizationPrediction = percent(v) })
	each(qLost, func(h *host, v float64) { h.Hearing.LostSamples = positive(v) })
	each(qLate, func(h *host, v float64) { h.Hearing.LateSeconds = positive(v) })
	each(qDisordered, func(h *host, v float64) { h.Hearing.DisorderedSamples = positive(v) })
	each(qSkew, func(h *host, v float64) { h.Hearing.ClockSkewSeconds = topology.Known(v) })

	totals := map[*host]float64{}
	each(qMemTotal, func(h *host, v float64) { totals[h] = v })
	each(qMemAvailable, func(h *host, free float64) { addMemory(&h.Node, totals[h], free) })
}

func joules(micro float64) topology.Measure { return positive(micro / 1e6) }

// addMemory counts as used what no new program could get: total - available. The total is the kernel's; if that is
// missing, what Kubernetes reports.
func addMemory(n *topology.Node, total, free float64) {
	d := &n.DynamicMetrics
	d.FreeRAM = positive(free)
	if total <= 0 {
		total = n.StaticMetrics.RAMMemory.Or(0)
	}
	if total <= 0 || d.FreeRAM.IsZero() {
		return
	}
	used := max(total-free, 0)
	d.UsedRAM, d.MemoryUsagePercent = topology.Known(used), percent(100*used/total)
}

// addNetwork adds interfaces.
func (b *builder) addNetwork() {
	each := func(name string, set func(i *topology.NetworkInterface, l map[string]string, v float64)) {
		for _, s := range b.samples(name) {
			h, device := b.hostOf(s.Labels), s.Labels["device"]
			if h == nil || device == "" {
				continue
			}
			i := h.NetworkInterfaces[device]
			i.Name = device
			set(&i, s.Labels, s.Value)
			put(&h.NetworkInterfaces, device, i)
		}
	}
	each(qNetInfo, func(i *topology.NetworkInterface, l map[string]string, _ float64) {
		i.Type, i.Status = l["duplex"], l["operstate"]
	})
	each(qNetUp, func(i *topology.NetworkInterface, _ map[string]string, v float64) {
		if i.Status = "down"; v == 1 {
			i.Status = "up"
		}
	})
	each(qNetSpeed, func(i *topology.NetworkInterface, _ map[string]string, v float64) { i.Speed = positive(v) })
	global := map[string]bool{}
	each(qNetAddress, func(i *topology.NetworkInterface, l map[string]string, _ float64) {
		// An interface has several addresses; others reach it by the first global one.
		if at := l[label.Host] + "/" + i.Name; i.IP == "" || (l["scope"] == "global" && !global[at]) {
			i.IP, i.SubnetMask = l["address"], l["netmask"]
			global[at] = l["scope"] == "global"
		}
	})
}
