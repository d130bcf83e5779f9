package collect

import (
	"cmp"
	"strings"

	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/telemetry"
	"github.com/littoral-project/littoral/shared/topology"
)

// addFacts adds the properties of nodes that rarely change.
func (b *builder) addFacts() {
	for _, s := range b.samples(qLabels) {
		h := b.hostOf(s.Labels)
		if h == nil {
			continue
		}
		for key, value := range s.Labels {
			if name, found := strings.CutPrefix(key, "label_"); found {
				put(&h.Labels, name, value)
			}
		}
	}
	for _, s := range b.samples(qMounted) {
		if h := b.hostOf(s.Labels); h != nil && s.Labels["device"] != "" {
			put(&h.Devices, s.Labels["device"], device(s))
		}
	}
	b.addCapacity()
	for _, s := range b.ofNodes(qUnschedulable) {
		if h := b.nodeOf(s.Labels); h != nil {
			schedulable := s.Value != 1
			h.Schedulable = &schedulable
		}
	}
	for _, s := range b.samples(qMaxFrequency) {
		b.onHost(s, func(h *host) { h.StaticMetrics.CPUMaxFrequency = hertz(s.Value) })
	}
}

// ofNodes returns the samples of kube-state-metrics in the order in which to apply them. Telemetry still has series of
// a node's former agent, or of its cluster before that was set up anew, so those of the present ones come last.
func (b *builder) ofNodes(name string) []telemetry.Sample {
	var former, present []telemetry.Sample
	for _, s := range b.samples(name) {
		h := b.nodeOf(s.Labels)
		if h != nil && h.in.agent == s.Labels[label.Agent] && h.in.uuid == s.Labels[label.Cluster] {
			present = append(present, s)
		} else {
			former = append(former, s)
		}
	}
	return append(former, present...)
}

// addCapacity prefers what Kubernetes reports as allocatable; a Docker host has only its own metrics.
func (b *builder) addCapacity() {
	for _, s := range b.samples(qCPUs) {
		b.onHost(s, func(h *host) { h.StaticMetrics.CPUCores = positive(s.Value) })
	}
	for _, s := range b.samples(qMemTotal) {
		b.onHost(s, func(h *host) { h.StaticMetrics.RAMMemory = positive(s.Value) })
	}
	for _, s := range b.ofNodes(qCapacity) {
		h, v := b.nodeOf(s.Labels), positive(s.Value)
		if h == nil || v.IsZero() {
			continue
		}
		switch s.Labels["resource"] {
		case "cpu":
			h.StaticMetrics.CPUCores = v
		case "memory":
			h.StaticMetrics.RAMMemory = v
		}
	}
}

// addScores adds what the security scanner found. It knows hosts by name and address only.
func (b *builder) addScores() {
	scanned := b.scanned()
	for _, s := range b.samples(qScore) {
		h := scanned.find(s.Labels)
		switch {
		case h == nil:
			b.doubt("an SCA_score fits no host, or several, by name and address")
		case !(s.Value >= 0 && s.Value <= 100): // NaN too
			b.doubt("an SCA_score was left out that is not within 0..100")
		default:
			// Several policies may have been scanned; the worst result counts.
			h.ScaScore = topology.Known(min(s.Value, h.ScaScore.Or(s.Value)))
		}
	}
	for _, s := range b.samples(qVulnerable) {
		h := scanned.find(s.Labels)
		if count, ok := positive(s.Value).Get(); ok && h != nil && s.Labels["severity"] != "" {
			put(&h.Vulnerabilities, strings.ToLower(s.Labels["severity"]), int64(count))
		}
	}
}

// scanned finds hosts by the names that the scanner uses.
type scanned struct {
	exact, named index[host]
}

func (b *builder) scanned() scanned {
	f := scanned{index[host]{}, index[host]{}}
	for _, h := range b.hosts {
		for _, name := range []string{h.hostname, h.Name} {
			if name != "" {
				f.exact.put(h, h.controller, name, h.ip)
				f.named.put(h, h.controller, name, "")
			}
		}
	}
	return f
}

// find matches name and address within the controller. Behind address translation the addresses differ; then the name
// alone counts, if only one host there has it. An address alone never counts.
func (f scanned) find(l map[string]string) *host {
	controller, name := l[label.Controller], l["agent_hostname"]
	return cmp.Or(f.exact.get(controller, name, l["agent_ip"]), f.named.get(controller, name, ""))
}

// device reads one node_mounted: 1 free, 0 in use, -1 unplugged. Its name begins with its type.
func device(s telemetry.Sample) topology.Device {
	name := s.Labels["device"]
	kind, _, _ := strings.Cut(name, "_")
	d := topology.Device{Name: name, Type: kind, Path: s.Labels["resource_path"], Status: topology.DeviceUnknown}
	switch s.Value {
	case 1:
		d.Status = topology.DeviceAvailable
	case 0:
		d.Status = topology.DeviceBusy
	case -1:
		d.Status = topology.DeviceDetached
	}
	return d
}

// onHost calls set with the host of the sample, if it is known.
func (b *builder) onHost(s telemetry.Sample, set func(*host)) {
	if h := b.hostOf(s.Labels); h != nil {
		set(h)
	}
}

// put adds to a map that may not exist yet.
func put[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = value
}

// positive is unknown for values that no counter or size can have.
func positive(v float64) topology.Measure {
	if v < 0 || v > 1<<60 {
		return topology.Measure{}
	}
	return topology.Known(v)
}

// percent limits a share, which rates may overshoot, to 0..100.
func percent(v float64) topology.Measure { return topology.Known(min(max(v, 0), 100)) }

// hertz converts from the exporter's MHz.
func hertz(mega float64) topology.Measure { return positive(mega * 1e6) }
