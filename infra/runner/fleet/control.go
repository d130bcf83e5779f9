package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/topology"
)

// Drain removes the work from a node, like kubectl drain: its pods are gone and it reports nothing, while the rest of
// its cluster reports it as unschedulable. A node may be given as "node" if that is unique, else "cluster/node".
func (f *Fleet) Drain(node string) error { return f.setDrained(node, true) }

// Restore undoes Drain. Copies that have not been removed from the node in the meantime run again.
func (f *Fleet) Restore(node string) error { return f.setDrained(node, false) }

func (f *Fleet) setDrained(node string, drained bool) error {
	c, n, err := f.findNode(node)
	if err != nil {
		return err
	}
	f.log.Info("fleet changed", "cluster", c.Name, "node", n.Name, "drained", drained)
	return f.change(func() { f.state.Nodes[c.Name+"/"+n.Name].Drained = drained })
}

// Cut isolates a cluster: no telemetry arrives, and its agent neither polls nor reports. What runs there continues.
func (f *Fleet) Cut(cluster string) error { return f.setCut(cluster, true) }

// Heal undoes Cut. The cluster returns with the copies that it was running. The answers to its next reports tell its
// agent which of their jobs have moved.
func (f *Fleet) Heal(cluster string) error { return f.setCut(cluster, false) }

func (f *Fleet) setCut(cluster string, cut bool) error {
	c, err := f.findCluster(cluster)
	if err != nil {
		return err
	}
	f.log.Info("fleet changed", "cluster", c.Name, "cut", cut)
	return f.change(func() { f.state.Clusters[c.Name].Cut = cut })
}

// Set changes properties of a node: all of them or, with an error that names each fault, none. An empty value restores
// that of the fleet's file. The keys are
//
//	cpu, mem         share of the whole that others use, 0..1
//	sca              security score, 0..100
//	energy           draw in watts
//	cores            number of cpus
//	ram              memory as a Kubernetes quantity
//	device:PATH      available, busy or detached
//	label:KEY        text; empty removes the label
//	telemetry        node: it reports only itself, not what runs there; none: it reports nothing. Its agent works on
//	compss:TASK      COMPSs tasks of that signature that wait at each component there: 40, or 40@60 for 60 s each
//	event:NAME       security events of that name counted in each container there: 3, or 3@critical
func (f *Fleet) Set(node string, values map[string]string) error {
	return f.SetAll(map[string]map[string]string{node: values})
}

// SetAll is Set for several nodes at once, of which none is changed if one cannot be.
func (f *Fleet) SetAll(nodes map[string]map[string]string) error {
	changes := map[string][]func(*nodeState){}
	for node, values := range nodes {
		c, n, err := f.findNode(node)
		if err != nil {
			return err
		}
		var faults problem.Faults
		key := c.Name + "/" + n.Name
		for _, setting := range slices.Sorted(maps.Keys(values)) {
			change, fault := nodeSetting(setting, values[setting])
			if fault != "" {
				faults.Add("set."+setting, 0, "%s", fault)
				continue
			}
			changes[key] = append(changes[key], change)
		}
		if err := faults.Err("the settings are not valid"); err != nil {
			return err
		}
		f.log.Info("fleet changed", "cluster", c.Name, "node", n.Name, "set", values)
	}
	return f.change(func() {
		for key, all := range changes {
			for _, change := range all {
				change(f.state.Nodes[key])
			}
		}
	})
}

// nodeSetting is setting of what a node has.
func nodeSetting(key, value string) (change func(*nodeState), fault string) {
	if isComponent(key) {
		return nil, "is about a component; name no node with it"
	}
	return setting(key, value)
}

const knownSettings = "cpu, mem, sca, energy, cores, ram, device:PATH, label:KEY, telemetry, compss:TASK, event:NAME and, " +
	"without a node, app:COMPONENT"

// setting parses one setting; fault says what is wrong with it.
func setting(key, value string) (change func(*nodeState), fault string) {
	kind, of, _ := strings.Cut(key, ":")
	switch {
	case kind == "device" && of != "":
		return deviceSetting(of, value)
	case kind == "label" && of != "":
		return labelSetting(of, value)
	case kind == "compss" && of != "":
		return named(of, value, parseQueue, func(s *nodeState) *map[string]queue { return &s.Queues })
	case kind == "event" && of != "":
		return named(of, value, parseSighting, func(s *nodeState) *map[string]sighting { return &s.Events })
	case key == "cpu":
		return bounded(value, 1, func(s *nodeState, v *float64) { s.CPU = v })
	case key == "mem":
		return bounded(value, 1, func(s *nodeState, v *float64) { s.Memory = v })
	case key == "sca":
		return bounded(value, 100, func(s *nodeState, v *float64) { s.Score = v })
	case key == "energy":
		return bounded(value, 1e6, func(s *nodeState, v *float64) { s.Watts = v })
	case key == "cores":
		return coresSetting(value)
	case key == "ram":
		return ramSetting(value)
	case key == "telemetry":
		return telemetrySetting(value)
	}
	return nil, "is not known; known are " + knownSettings
}

func bounded(value string, most float64, put func(*nodeState, *float64)) (func(*nodeState), string) {
	if value == "" {
		return func(s *nodeState) { put(s, nil) }, ""
	}
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || !(v >= 0 && v <= most) { // the condition is false for NaN
		return nil, fmt.Sprintf("%q is not a number from 0 to %g", value, most)
	}
	return func(s *nodeState) { put(s, &v) }, ""
}

func coresSetting(value string) (func(*nodeState), string) {
	if value == "" {
		return func(s *nodeState) { s.Cores = nil }, ""
	}
	v, err := strconv.Atoi(value)
	if err != nil || v < 1 || v > maxCores {
		return nil, fmt.Sprintf("%q is not a whole number from 1 to %d", value, maxCores)
	}
	return func(s *nodeState) { s.Cores = &v }, ""
}

const (
	leastRAM = 1 << 20 // bytes
	mostRAM  = 1 << 50
)

func ramSetting(value string) (func(*nodeState), string) {
	if value == "" {
		return func(s *nodeState) { s.RAM = nil }, ""
	}
	q, err := resource.ParseQuantity(value)
	v := q.Value()
	if err != nil || v < leastRAM || v > mostRAM {
		return nil, fmt.Sprintf("%q is not a quantity of memory from 1Mi to 1Pi, such as 8Gi", value)
	}
	return func(s *nodeState) { s.RAM = &v }, ""
}

func deviceSetting(path, value string) (func(*nodeState), string) {
	if len(path) > maxLabel || hasControl(path) {
		return nil, fmt.Sprintf("a path has at most %d bytes and no control characters", maxLabel)
	}
	known := []string{topology.DeviceAvailable, topology.DeviceBusy, topology.DeviceDetached}
	if value != "" && !slices.Contains(known, value) {
		return nil, fmt.Sprintf("%q is not one of %s", value, strings.Join(known, ", "))
	}
	return func(s *nodeState) {
		if value == "" {
			delete(s.Devices, path)
			return
		}
		if s.Devices == nil {
			s.Devices = map[string]string{}
		}
		s.Devices[path] = value
	}, ""
}

const maxLabel = 317 // bytes of a Kubernetes label key including its prefix

func labelSetting(key, value string) (func(*nodeState), string) {
	if len(key) > maxLabel || len(value) > maxLabel || hasControl(key+value) {
		return nil, fmt.Sprintf("a label has at most %d bytes and no control characters", maxLabel)
	}
	return func(s *nodeState) {
		if s.Labels == nil {
			s.Labels = map[string]*string{}
		}
		s.Labels[key] = &value
		if value == "" {
			s.Labels[key] = nil
		}
	}, ""
}

func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

func (f *Fleet) findCluster(name string) (*Cluster, error) {
	if c := f.plan.cluster(name); c != nil {
		return c, nil
	}
	names := make([]string, len(f.plan.Clusters))
	for i, c := range f.plan.Clusters {
		names[i] = c.Name
	}
	return nil, problem.New(problem.NotFound, "there is no cluster %q; there are %s", name, strings.Join(names, ", "))
}

// findNode returns the node with the name; the error lists the nodes that exist.
func (f *Fleet) findNode(name string) (*Cluster, *Node, error) {
	holders := map[string]int{}
	for _, c := range f.plan.Clusters {
		for _, n := range c.Nodes {
			holders[n.Name]++
		}
	}
	var names []string
	for _, c := range f.plan.Clusters {
		for _, n := range c.Nodes {
			full := c.Name + "/" + n.Name
			if name == full || (name == n.Name && holders[name] == 1) {
				return c, n, nil
			}
			if holders[n.Name] == 1 {
				full = n.Name
			}
			names = append(names, full)
		}
	}
	return nil, nil, problem.New(problem.NotFound, "there is no node %q; there are %s", name, strings.Join(names, ", "))
}
