package collect_test

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/infra/runner/prometheus/prometheustest"
	"github.com/littoral-project/littoral/shared/topology"
	"github.com/littoral-project/littoral/shared/topology/collect"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// labels is a short name for the tests.
type labels = map[string]string

// with returns the union of a and b.
func with(a, b labels) labels {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// machine is a host as its exporters report it.
type machine struct {
	agent, cluster, id, name, ip string
	agentName                    string // default if empty
	docker                       bool
}

func (m machine) host() labels {
	return with(m.ofCluster(), labels{"icos_host_id": m.id, "icos_host_name": m.cluster[:1] + ":" + m.name})
}

func (m machine) ofCluster() labels {
	return labels{"icos_controller_id": "controller-a", "icos_agent_id": m.agent, "icos_cluster_id": m.cluster}
}

func (m machine) kube() labels { return with(m.ofCluster(), labels{"node": m.name}) }

// The machines of the tests: an OCM cluster of two nodes and a Docker host under Nuvla. Some share addresses and, being
// clones, a machine identifier.
var (
	master = machine{agent: "agent-ocm-1", cluster: "c1", id: "h1", name: "master", ip: "192.0.2.1"}
	worker = machine{agent: "agent-ocm-1", cluster: "c1", id: "h2", name: "worker", ip: "192.0.2.2"}
	box    = machine{agent: "agent-nuvla-1", cluster: "c2", id: "h1", name: "box", ip: "192.0.2.2", docker: true}
)

// fleet writes samples to a real Prometheus.
type fleet struct {
	t      *testing.T
	server *prometheus.Server
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	server := prometheustest.New(t)
	return &fleet{t, server}
}

func (f *fleet) emit(at time.Time, name string, l labels, value float64) {
	f.t.Helper()
	sample := prometheus.Sample{Name: name, Labels: l, Value: value, At: at}
	require.NoError(f.t, f.server.Append(context.Background(), []prometheus.Sample{sample}))
}

// until emits all samples of a machine, twice within 15 s, the last time at the given one.
func (f *fleet) until(at time.Time, m machine) {
	f.t.Helper()
	h := m.host()
	emit := func(name string, l labels, value float64) { f.emit(at, name, with(h, l), value) }
	emit("tlum_host_info", labels{
		"os": "linux", "arch": "arm64", "ip": m.ip, "hostname": m.name, "latitude": "37.98", "longitude": "23.73",
	}, 1)
	emit("node_uname_info", labels{"machine": "aarch64", "nodename": m.name}, 1)
	emit("tlum_host_labels", labels{"label_color": "green"}, 1)
	emit("tlum_cpu_max_freq", labels{"cpu": "0"}, 1800)
	emit("tlum_cpu_freq", labels{"cpu": "0"}, 1500)
	emit("node_thermal_zone_temp", labels{"zone": "0", "type": "cpu"}, 48.3)
	emit("node_mounted", labels{"device": "video_0", "resource_path": "squat.ai/video"}, 1)
	emit("node_memory_MemTotal_bytes", nil, 8e9)
	emit("node_memory_MemAvailable_bytes", nil, 6e9)
	emit("intelligence_node_cpu_utilization_prediction", nil, 41.2)
	emit("node_network_info", labels{"device": "eth0", "duplex": "full", "operstate": "up"}, 1)
	emit("node_network_up", labels{"device": "eth0"}, 1)
	emit("node_network_speed_bytes", labels{"device": "eth0"}, 125e6)
	emit("node_network_address_info", labels{"device": "eth0", "address": "fe80::1", "scope": "link"}, 1)
	emit("node_network_address_info", labels{"device": "eth0", "address": m.ip, "netmask": "24", "scope": "global"}, 1)
	emit("node_network_info", labels{"device": "veth12", "duplex": "full"}, 1)
	for back, idle := range map[time.Duration]float64{15 * time.Second: 1000, 0: 1012} { // 12 of 15 s idle: 20 %
		for _, cpu := range []string{"0", "1", "2", "3"} {
			f.emit(at.Add(-back), "node_cpu_seconds_total", with(h, labels{"cpu": cpu, "mode": "idle"}), idle)
		}
		f.emit(at.Add(-back), "scaph_host_energy_microjoules_total", h, 1e9-4*1e6*back.Seconds()) // 4 W
	}
	engine := "Kubernetes"
	if m.docker {
		engine = "Docker"
	}
	emit("tlum_runtime_info", labels{"type": engine, "node_name": m.name, "version": "1"}, 1)
	if m.docker {
		emit("tlum_orch_info", labels{"type": "nuvla", "agent_id": m.agent, "agent_name": cmp.Or(m.agentName, "nuvlabox/0f")}, 1)
		return
	}
	emit("tlum_orch_info", labels{"type": "ocm", "agent_id": m.agent, "agent_name": cmp.Or(m.agentName, m.agent)}, 1)
	f.emit(at, "tlum_ocm_agent_info", with(m.ofCluster(), labels{"id": m.agent, "name": "edge-cluster-b"}), 1)
	f.emit(at, "kube_node_status_capacity", with(m.kube(), labels{"resource": "cpu", "unit": "core"}), 3)
	f.emit(at, "kube_node_status_capacity", with(m.kube(), labels{"resource": "memory", "unit": "byte"}), 7e9)
	f.emit(at, "kube_node_spec_unschedulable", m.kube(), 0)
}

// scanner emits the result of the security scanner for a host with the name and address, from the controller's own
// agent.
func (f *fleet) scanner(at time.Time, name, ip string, score float64) {
	l := labels{
		"icos_agent_id": "self", "icos_controller_id": "controller-a", "icos_host_id": "h9",
		"agent_hostname": name, "agent_ip": ip,
	}
	f.emit(at, "SCA_score", l, score)
	f.emit(at, "vulnerabilities", with(l, labels{"severity": "Critical"}), 6)
}

// pod emits a Kubernetes pod with one container that uses half a core; instance "" makes it foreign.
func (f *fleet) pod(at time.Time, m machine, uid, name, instance string) {
	named := with(m.ofCluster(), labels{"namespace": "ns", "pod": name, "uid": uid})
	f.emit(at, "kube_pod_info", with(named, labels{"node": m.name, "pod_ip": "10.42.0.12"}), 1)
	f.emit(at, "kube_pod_status_phase", with(named, labels{"phase": "Running"}), 1)
	f.emit(at, "kube_pod_status_phase", with(named, labels{"phase": "Failed"}), 0)
	f.emit(at, "kube_pod_container_info", with(named, labels{"container": "app"}), 1)
	used := with(m.ofCluster(), labels{"k8s_pod_uid": uid, "k8s_container_name": "app"})
	f.emit(at, "container_cpu_utilization_ratio", used, 0.5)
	f.emit(at, "container_memory_working_set_bytes", used, 1e6)
	if instance != "" {
		f.workload(at, m, uid, name, instance)
	}
}

func (f *fleet) workload(at time.Time, m machine, id, name, instance string) {
	f.emit(at, "tlum_workload_info", with(m.host(), labels{
		"id": id, "name": "ns__" + name, "status": "running",
		"icos_app_name": "shop", "icos_app_instance": instance, "icos_app_component": "web",
	}), 1)
}

// collector queries the fleet's Prometheus, through spoil if a test breaks something.
func (f *fleet) collector(spoil func(http.Handler) http.Handler) *collect.Collector {
	f.t.Helper()
	h := f.server.Handler()
	if spoil != nil {
		h = spoil(h)
	}
	server := httptest.NewServer(h)
	f.t.Cleanup(server.Close)
	c := collect.Config{QueryTimeout: 20 * time.Second, Freshness: topology.Freshness{StaleAfter: time.Minute}, Lookback: 30 * time.Minute}
	c.Address = server.URL
	asking, err := collect.New(c, server.Client())
	require.NoError(f.t, err)
	return asking
}

// failing answers 503 to queries that mention any of the metrics.
func failing(metrics ...string) func(http.Handler) http.Handler {
	return func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for _, metric := range metrics {
				if strings.Contains(r.FormValue("query"), metric) {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
			}
			inner.ServeHTTP(w, r)
		})
	}
}
