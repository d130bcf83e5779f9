package fleet

import (
	"strconv"
	"strings"

	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/topology"
)

// The metrics below are those of shared/docs/contracts.md §4.3 and §9, under the labels of shared/topology/METRICS.md. Those
// that only older aggregators read are marked "older".

const exporterVersion = "littoral-fleet"

// agent reports the cluster's agent, on the host that runs it.
func (r *recorder) agent(host *Node) {
	c := r.cluster
	r.add("tlum_orch_info", 1, with(r.of(host), "type", c.Type, "agent_id", c.AgentID, "agent_name", c.Key))
	if kind, _ := kinds.Of(c.Type); kind.Agents {
		r.add("tlum_ocm_agent_info", 1, with(r.of(nil), "id", c.AgentID, "name", c.Name))
	}
}

// clusterView reports what the cluster knows about a node even if the node does not answer. The source is
// kube-state-metrics, or the manager of a Docker swarm, which knows no capacities.
func (r *recorder) clusterView(n *Node) {
	k := with(r.of(nil), "node", n.Name)
	drained := r.fleet.state.Nodes[r.cluster.Name+"/"+n.Name].Drained
	r.add("kube_node_spec_unschedulable", number(drained), k)
	if n.docker() {
		return
	}
	s := r.fleet.settings(r.cluster, n)
	r.add("kube_node_status_capacity", float64(s.cores), with(k, "resource", "cpu", "unit", "core"))
	r.add("kube_node_status_capacity", float64(s.ram), with(k, "resource", "memory", "unit", "byte"))
}

func (r *recorder) identity(n *Node, s settings) {
	h := r.of(n)
	latitude, longitude := degrees(n.Location.Latitude), degrees(n.Location.Longitude)
	r.add("up", 1, with(h, "job", "icos-telemetry", "instance", n.IP+":2545")) // older
	r.add("tlum_info", 1, with(h, "prop_name", exporterVersion))
	r.add("tlum_host_info", 1, with(h, "os", "linux", "arch", goArch(n.Arch), "ip", n.IP, "hostname", n.Name,
		"latitude", latitude, "longitude", longitude, "tlum_host_id", n.HostID))
	r.add("node_uname_info", 1, with(h, "sysname", "Linux", "release", "6.1", "machine", n.Arch, "nodename", n.Name,
		"icos_alpha_latitude", latitude, "icos_alpha_longitude", longitude))
	r.add("tlum_runtime_info", 1, with(h, "type", n.Engine, "version", "1", "node_name", n.Name,
		"cluster_id", r.cluster.UUID))
	if r.cluster.Link {
		r.add("tlum_vnet_info", 1, with(h, "type", "ClusterLink", "vnet_name", "littoral", "vnet_node", r.cluster.Name))
	}
	if len(s.labels) > 0 {
		labels := with(h)
		for key, value := range s.labels {
			labels["label_"+key] = value
		}
		r.add("tlum_host_labels", 1, labels)
	}
	for path, d := range s.devices {
		if mounted, known := deviceStates[d.State]; known {
			r.add("node_mounted", mounted, with(h, "device", deviceName(path, d), "resource_path", path))
		}
	}
}

// deviceStates are the values of node_mounted; an unknown state has no value.
var deviceStates = map[string]float64{
	topology.DeviceAvailable: 1, topology.DeviceBusy: 0, topology.DeviceDetached: -1,
}

// deviceName returns the device's name, or one made from its path: squat.ai/video is video_0.
func deviceName(path string, d Device) string {
	if d.Name != "" {
		return d.Name
	}
	return path[strings.LastIndexByte(path, '/')+1:] + "_0"
}

// security reports the security score of a host that the controller's scanner reaches.
func (r *recorder) security(n *Node, s settings) {
	labels := set{
		label.Controller: Controller, label.Agent: "self",
		"agent_hostname": n.Name, "agent_ip": n.IP, "agent_name": n.Name,
		"agent_uname": "Linux |" + n.Name + " |6.1 |" + n.Arch,
	}
	if s.score >= 0 {
		r.add("SCA_score", s.score, labels)
	}
	for severity, count := range n.Flaws {
		r.add("vulnerabilities", float64(count), with(labels, "severity", severity))
	}
}

// readings reports cpu, memory, temperature and energy, all derived from the same load.
func (r *recorder) readings(n *Node, s settings, l load, m meter) {
	h := r.of(n)
	share := l.now(r.now)
	for i := range s.cores {
		cpu := with(h, "cpu", strconv.Itoa(i))
		r.add("node_cpu_seconds_total", m.idle(), with(cpu, "mode", "idle"))
		r.add("node_cpu_seconds_total", 0.7*m.Busy, with(cpu, "mode", "user"))
		r.add("node_cpu_seconds_total", 0.3*m.Busy, with(cpu, "mode", "system"))
		r.add("tlum_cpu_max_freq", n.MaxMHz, cpu)
		r.add("tlum_cpu_freq", n.MaxMHz*(0.4+0.6*share), cpu)
		r.add("node_cpu_frequency_max_hertz", n.MaxMHz*1e6, cpu) // older
	}
	free := max(0, float64(s.ram)-l.memory)
	r.add("node_memory_MemTotal_bytes", float64(s.ram), h)
	r.add("node_memory_MemAvailable_bytes", free, h)
	r.add("node_memory_MemFree_bytes", 0.8*free, h) // older: the rest is used for caches
	r.add("node_thermal_zone_temp", 35+40*share, with(h, "zone", "0", "type", "x86_pkg_temp"))
	r.add("scaph_host_energy_microjoules_total", 1e6*m.Joules, h)
	r.add("intelligence_node_cpu_utilization_prediction", 100*l.mean, h)
	r.add("intelligence_node_memory_utilization_prediction", 100*l.memory/float64(s.ram), h)
}

func (r *recorder) network(n *Node) {
	h := with(r.of(n), "device", "eth0")
	r.add("node_network_info", 1, with(h, "duplex", "full", "operstate", "up"))
	r.add("node_network_up", 1, h)
	r.add("node_network_speed_bytes", n.Speed, h)
	r.add("node_network_address_info", 1, with(h, "address", n.IP, "netmask", n.Netmask, "scope", "global"))
}

// clusterPods reports what the cluster knows about the pods of a node; a Docker host knows only its own.
func (r *recorder) clusterPods(n *Node, pods []pod) {
	if n.docker() {
		return
	}
	for _, p := range pods {
		named := with(r.of(nil), "namespace", p.copy.Namespace, "pod", p.name, "uid", p.uid)
		r.add("kube_pod_info", 1, with(named, "node", n.Name, "pod_ip", p.ip, "host_ip", n.IP))
		r.add("kube_pod_status_phase", 1, with(named, "phase", "Running"))
		for _, container := range p.containers {
			r.add("kube_pod_container_info", 1, with(named, "container", container.Name))
		}
	}
}

// pods reports the pods on a node, with the share of the node's load that each container takes.
func (r *recorder) pods(n *Node, pods []pod, l load) {
	c, h := r.of(nil), r.of(n)
	for _, p := range pods {
		r.add("tlum_workload_info", 1, with(h, "id", p.uid, "name", p.copy.Namespace+"__"+p.name, "status", "running",
			label.AppName, p.copy.Application, label.AppInstance, p.copy.Instance,
			label.AppComponent, p.copy.Component, "icos_app_managed_by", "jobmanager"))
		if n.docker() {
			var cores, bytes float64
			for _, container := range p.containers {
				cores, bytes = cores+l.coresAt(container, r.now), bytes+container.memory()
			}
			r.add("container_cpu_utilization_ratio", cores, with(h, "container_id", p.uid))
			r.add("container_memory_working_set_bytes", bytes, with(h, "container_id", p.uid))
			continue
		}
		for _, container := range p.containers {
			used := with(c, "k8s_pod_uid", p.uid, "k8s_container_name", container.Name)
			r.add("container_cpu_utilization_ratio", l.coresAt(container, r.now), used)
			r.add("container_memory_working_set_bytes", container.memory(), used)
		}
	}
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// degrees formats a coordinate like the leaf exporter; empty if it is not known.
func degrees(m topology.Measure) string {
	if v, ok := m.Get(); ok {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// goArch converts a machine name of uname to the name that the leaf exporter, a Go program, reports.
func goArch(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return machine
}
