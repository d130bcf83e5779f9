package fleet

import (
	"math"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/infra/runner/prometheus/prometheustest"
	"github.com/littoral-project/littoral/shared/telemetry"
	"github.com/littoral-project/littoral/shared/topology"
	"github.com/littoral-project/littoral/shared/topology/collect"
)

// clock is a clock that only the test moves.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

// emit sends a round of telemetry after the clock has moved on.
func emit(t *testing.T, f *Fleet, c *clock, after time.Duration) {
	t.Helper()
	c.now = c.now.Add(after)
	require.NoError(t, f.Emit(t.Context()))
}

// observed returns a fleet with its own clock that records its telemetry.
func observed(t *testing.T, m *manager) (*Fleet, *clock, *store) {
	t.Helper()
	c, s := &clock{start}, &store{}
	return newFleet(t, m, func(o *Options) { o.Now, o.Append = c.Now, s.append }), c, s
}

// value returns the sum of the samples of the metric with the labels, and how many there are.
func value(samples []prometheus.Sample, name string, pairs ...string) (sum float64, found int) {
	for _, s := range samples {
		matches := s.Name == name
		for i := 0; i+1 < len(pairs); i += 2 {
			matches = matches && s.Labels[pairs[i]] == pairs[i+1]
		}
		if matches {
			sum, found = sum+s.Value, found+1
		}
	}
	return sum, found
}

func isStale(v float64) bool { return math.Float64bits(v) == math.Float64bits(prometheus.Stale) }

const (
	controllerLabels = "icos_controller_id"
	clusterLabels    = controllerLabels + " icos_agent_id icos_cluster_id"
	hostLabels       = clusterLabels + " icos_host_id icos_host_name"
	workloadLabels   = hostLabels + " icos_app_name icos_app_instance icos_app_component"
)

// contract is shared/topology/METRICS.md: the labels that each metric must have.
var contract = map[string]string{
	"tlum_orch_info":                                  hostLabels + " type agent_id agent_name",
	"tlum_ocm_agent_info":                             clusterLabels + " id name",
	"tlum_runtime_info":                               hostLabels + " type version node_name cluster_id",
	"tlum_host_info":                                  hostLabels + " os arch ip hostname latitude longitude tlum_host_id",
	"node_uname_info":                                 hostLabels + " machine nodename sysname release",
	"tlum_host_labels":                                hostLabels + " label_color label_shape label_zone",
	"SCA_score":                                       controllerLabels + " agent_hostname agent_ip",
	"vulnerabilities":                                 controllerLabels + " agent_hostname agent_ip severity",
	"kube_node_status_capacity":                       clusterLabels + " node resource unit",
	"kube_node_spec_unschedulable":                    clusterLabels + " node",
	"tlum_cpu_max_freq":                               hostLabels + " cpu",
	"tlum_cpu_freq":                                   hostLabels + " cpu",
	"node_mounted":                                    hostLabels + " device resource_path",
	"node_cpu_seconds_total":                          hostLabels + " cpu mode",
	"node_memory_MemTotal_bytes":                      hostLabels,
	"node_memory_MemAvailable_bytes":                  hostLabels,
	"node_thermal_zone_temp":                          hostLabels + " zone type",
	"scaph_host_energy_microjoules_total":             hostLabels,
	"intelligence_node_cpu_utilization_prediction":    hostLabels,
	"intelligence_node_memory_utilization_prediction": hostLabels,
	"node_network_info":                               hostLabels + " device duplex operstate",
	"node_network_up":                                 hostLabels + " device",
	"node_network_address_info":                       hostLabels + " device address netmask scope",
	"node_network_speed_bytes":                        hostLabels + " device",
	"tlum_vnet_info":                                  hostLabels + " type vnet_name vnet_node",
	"kube_pod_info":                                   clusterLabels + " node namespace pod uid pod_ip host_ip",
	"kube_pod_status_phase":                           clusterLabels + " namespace pod uid phase",
	"kube_pod_container_info":                         clusterLabels + " namespace pod uid container",
	"container_cpu_utilization_ratio":                 clusterLabels,
	"container_memory_working_set_bytes":              clusterLabels,
	"tlum_workload_info": hostLabels + " id name status icos_app_name icos_app_instance" +
		" icos_app_component",
	"compss_node_info":       workloadLabels + " property",
	"compss_avgTime_ratio":   workloadLabels + " CoreSignature",
	"compss_pendTasks_ratio": workloadLabels + " CoreSignature",
	"tetragon_events_total": workloadLabels + " event_name severity command k8s_container_name k8s_pod_name" +
		" k8s_namespace_name k8s_node_name",
	// Read by older aggregators only.
	"up": hostLabels, "tlum_info": hostLabels, "node_cpu_frequency_max_hertz": hostLabels + " cpu",
	"node_memory_MemFree_bytes": hostLabels,
}

func TestEmit_everyMetricOfTheContractWithItsLabels(t *testing.T) {
	t.Parallel()
	m := newManager()
	f, c, s := observed(t, m)
	m.put(typeCreate, "edge", "edge-1", 1)
	m.put(typeCreate, "harbour", "quay-1", 1)
	poll(t, f, "edge")
	poll(t, f, "harbour")
	for _, node := range []string{"edge-1", "quay-1"} {
		require.NoError(t, f.Set(node, map[string]string{"compss:sort": "40", "event:exec": "3"}))
	}
	emit(t, f, c, time.Second)

	seen := map[string]bool{}
	for _, sample := range s.last() {
		labels, known := contract[sample.Name]
		require.True(t, known, "%s is in no contract", sample.Name)
		seen[sample.Name] = true
		for _, label := range strings.Fields(labels) {
			_, has := sample.Labels[label]
			require.True(t, has, "%s lacks the label %s", sample.Name, label)
		}
		require.False(t, math.IsNaN(sample.Value), sample.Name)
		require.Equal(t, c.now, sample.At)
	}
	for name := range contract {
		require.True(t, seen[name], "%s was not emitted", name)
	}
	_, pods := value(s.last(), "container_cpu_utilization_ratio", "k8s_container_name", "nginx")
	require.Equal(t, 2, pods)
	docker, labelled := 0, 0
	for _, sample := range s.last() {
		if sample.Name == "container_cpu_utilization_ratio" && sample.Labels["icos_agent_id"] == "agent-nuvla-1" {
			docker++
			if sample.Labels["container_id"] != "" && sample.Labels["icos_host_id"] != "" {
				labelled++
			}
		}
	}
	require.Equal(t, 2, docker)
	require.Equal(t, docker, labelled, "a Docker host names its containers itself")
}

func TestEmit_countersFollowTheClockAlone(t *testing.T) {
	t.Parallel()
	m := newManager()
	f, c, s := observed(t, m)
	require.NoError(t, f.Set("edge-4", map[string]string{"cpu": "0.5", "energy": "40"}))
	emit(t, f, c, time.Second)
	before := s.last()
	for range 97 { // one full swing of the load
		emit(t, f, c, time.Second)
	}
	host := []string{"icos_host_id", f.plan.cluster("edge").node("edge-4").HostID}
	gained := func(name string, more ...string) float64 {
		from, _ := value(before, name, append(host, more...)...)
		to, _ := value(s.last(), name, append(host, more...)...)
		return to - from
	}
	require.InDelta(t, 97*4*0.5, gained("node_cpu_seconds_total", "mode", "idle"), 0.1, "4 cpus, half idle")
	require.InDelta(t, 97*4, gained("node_cpu_seconds_total"), 0.001, "all modes together are the time itself")
	require.InDelta(t, 97*40e6, gained("scaph_host_energy_microjoules_total"), 1, "40 W as set")

	all := s.all()
	for i := 1; i < len(all); i++ {
		for _, name := range []string{"node_cpu_seconds_total", "scaph_host_energy_microjoules_total"} {
			earlier, _ := value(all[i-1], name, host...)
			later, _ := value(all[i], name, host...)
			require.Greater(t, later, earlier, "counters only grow")
		}
	}

	again := newFleet(t, m, func(o *Options) { // killed: nothing was saved since Set
		o.File, o.Now, o.Append = f.options.File, c.Now, s.append
	})
	last, _ := value(s.last(), "node_cpu_seconds_total", append(host, "mode", "idle")...)
	emit(t, again, c, time.Second)
	next, _ := value(s.last(), "node_cpu_seconds_total", append(host, "mode", "idle")...)
	require.InDelta(t, 4*0.5, next-last, 0.1, "after a restart they go on where they would be without")
}

func TestEmit_usageIsBasePlusPods(t *testing.T) {
	t.Parallel()
	m := newManager()
	f, c, s := observed(t, m)
	host := f.plan.cluster("edge").node("edge-1")
	require.NoError(t, f.Set("edge-1", map[string]string{"cpu": "0.1", "mem": "0.25"}))
	m.put(typeCreate, "edge", "edge-1", 1)
	poll(t, f, "edge")
	emit(t, f, c, time.Second)
	before := s.last()
	emit(t, f, c, breathPeriod*time.Second)

	idle := func(samples []prometheus.Sample) float64 {
		v, _ := value(samples, "node_cpu_seconds_total", "icos_host_id", host.HostID, "mode", "idle")
		return v
	}
	used := float64(host.Cores) - (idle(s.last())-idle(before))/breathPeriod
	const podCores = 2 * cpuShare * 0.5 // two replicas that ask for half a core
	require.InDelta(t, 0.1*float64(host.Cores)+podCores, used, 0.001)
	available, _ := value(s.last(), "node_memory_MemAvailable_bytes", "icos_host_id", host.HostID)
	pods, _ := value(s.last(), "container_memory_working_set_bytes", "icos_cluster_id", f.plan.cluster("edge").UUID)
	require.InDelta(t, 2*memoryShare*(256<<20), pods, 1)
	require.InDelta(t, 0.75*float64(host.RAM)-pods, available, 1)
}

func TestEmit_aFullNodeSharesWhatItHas(t *testing.T) {
	t.Parallel()
	m := newManager()
	f, c, s := observed(t, m)
	m.put(typeCreate, "edge", "edge-1", 1)
	poll(t, f, "edge")
	require.NoError(t, f.Set("edge-1", map[string]string{"cpu": "1"}))
	emit(t, f, c, time.Second)
	host := f.plan.cluster("edge").node("edge-1").HostID
	before, _ := value(s.last(), "node_cpu_seconds_total", "icos_host_id", host, "mode", "idle")
	emit(t, f, c, 10*time.Second)
	after, _ := value(s.last(), "node_cpu_seconds_total", "icos_host_id", host, "mode", "idle")
	require.GreaterOrEqual(t, after, before)
	require.InDelta(t, 0, after-before, 0.1)
	pods, _ := value(s.last(), "container_cpu_utilization_ratio", "icos_agent_id", "agent-ocm-2")
	require.Less(t, pods, 2*cpuShare*0.5)
}

func TestEmit_drainAndRestore(t *testing.T) {
	t.Parallel()
	m := newManager()
	f, c, s := observed(t, m)
	m.put(typeCreate, "edge", "edge-1", 1)
	poll(t, f, "edge")
	emit(t, f, c, time.Second)
	host := f.plan.cluster("edge").node("edge-1").HostID

	require.NoError(t, f.Drain("edge-1"))
	emit(t, f, c, time.Second)
	for _, sample := range s.last() {
		if sample.Labels["icos_host_id"] == host || sample.Name == "kube_pod_info" {
			require.True(t, isStale(sample.Value), "%s ends with the node", sample.Name)
		}
	}
	unschedulable, _ := value(s.last(), "kube_node_spec_unschedulable", "node", "edge-1")
	require.InDelta(t, 1, unschedulable, 0, "the rest of the cluster says so")
	capacity, _ := value(s.last(), "kube_node_status_capacity", "node", "edge-1", "resource", "cpu")
	require.InDelta(t, 4, capacity, 0)
	emit(t, f, c, time.Second)
	_, found := value(s.last(), "tlum_host_info", "icos_host_id", host)
	require.Zero(t, found, "the node itself stays silent")

	require.NoError(t, f.Restore("edge-1"))
	emit(t, f, c, time.Second)
	unschedulable, _ = value(s.last(), "kube_node_spec_unschedulable", "node", "edge-1")
	require.Zero(t, unschedulable)
	_, pods := value(s.last(), "kube_pod_info", "node", "edge-1")
	require.Equal(t, 2, pods, "what was not removed in the meantime runs again")
}

func TestEmit_agentMovesToAnotherNodeOfItsCluster(t *testing.T) {
	t.Parallel()
	f, c, s := observed(t, newManager())
	require.NoError(t, f.Drain("edge-1"))
	emit(t, f, c, time.Second)
	_, found := value(s.last(), "tlum_orch_info", "agent_id", "agent-ocm-2",
		"icos_host_id", f.plan.cluster("edge").node("edge-2").HostID)
	require.Equal(t, 1, found)
}

func TestEmit_cutIsSilence(t *testing.T) {
	t.Parallel()
	f, c, s := observed(t, newManager())
	emit(t, f, c, time.Second)
	require.NoError(t, f.Cut("edge"))
	emit(t, f, c, time.Second)
	_, found := value(s.last(), "tlum_host_info", "icos_agent_id", "agent-ocm-2")
	require.Zero(t, found, "not even the end of a series gets through")
	require.False(t, slices.ContainsFunc(s.last(), func(s prometheus.Sample) bool { return isStale(s.Value) }))
	require.NoError(t, f.Heal("edge"))
	emit(t, f, c, time.Second)
	_, found = value(s.last(), "tlum_host_info", "icos_agent_id", "agent-ocm-2")
	require.Equal(t, 5, found)
}

// TestEmit_theAggregatorSeesTheFleet covers the whole path: the real Prometheus stores the fleet's telemetry, and the
// aggregator's own queries make a taxonomy of it.
func TestEmit_theAggregatorSeesTheFleet(t *testing.T) {
	t.Parallel()
	m := newManager()
	p := prometheustest.New(t)
	server := httptest.NewServer(p.Handler())
	t.Cleanup(server.Close)
	aggregator, err := collect.New(collect.Config{
		Config:       telemetry.Config{Address: server.URL},
		QueryTimeout: 30 * time.Second, Freshness: topology.Freshness{StaleAfter: time.Minute}, Lookback: 30 * time.Minute,
	}, server.Client())
	require.NoError(t, err)
	c := &clock{start}
	f := newFleet(t, m, func(o *Options) { o.Now, o.Append = c.Now, p.Append })
	j := m.put(typeCreate, "edge", "edge-1", 1)
	docker := m.put(typeCreate, "harbour", "quay-1", 1)
	poll(t, f, "edge")
	poll(t, f, "harbour")
	require.NoError(t, f.Set("cloud-1", map[string]string{
		"cpu": "0.95", "sca": "30", "label:color": "red", "label:new": "yes", "cores": "12",
	}))
	require.NoError(t, f.Set("edge-2", map[string]string{"device:squat.ai/video": "busy"}))

	for range 10 {
		emit(t, f, c, DefaultEvery)
	}
	taxonomy := collected(t, aggregator, c)
	require.Empty(t, taxonomy.Warnings)
	places := map[string]*topology.Node{}
	for _, place := range taxonomy.Places() {
		places[place.Cluster+"/"+place.Node] = place.At
	}
	require.Len(t, places, 12)
	for _, cluster := range f.plan.Clusters {
		for _, n := range cluster.Nodes {
			at := places[cluster.Name+"/"+n.Name]
			require.NotNil(t, at, n.Name)
			s := f.settings(cluster, n)
			require.Equal(t, n.HostID, at.UUID)
			require.Equal(t, n.Engine, at.Engine)
			require.InDelta(t, float64(s.cores), at.StaticMetrics.CPUCores.Or(-1), 0, n.Name)
			require.InDelta(t, float64(s.ram), at.StaticMetrics.RAMMemory.Or(-1), 0, n.Name)
			require.InDelta(t, s.score, at.ScaScore.Or(-1), 0, n.Name)
			require.Equal(t, s.labels, at.Labels, n.Name)
			require.Len(t, at.Devices, len(s.devices), n.Name)
			require.Equal(t, n.Flaws, at.Vulnerabilities, n.Name)
			require.True(t, at.CanSchedule(), n.Name)
			l := s.usage(n, f.schedule(cluster).pods[n.Name])
			require.InDelta(t, 100*l.mean, at.DynamicMetrics.CPUUsagePercent.Or(-1), 100*l.mean*breath+0.1, n.Name)
			require.InDelta(t, 100*l.memory/float64(s.ram), at.DynamicMetrics.MemoryUsagePercent.Or(-1), 0.1, n.Name)
			require.InDelta(t, l.base+l.slope*l.mean, at.DynamicMetrics.CPUPowerWatts.Or(-1), s.watts*0.1, n.Name)
		}
	}
	require.Equal(t, "busy", places["edge/edge-2"].Devices["video_0"].Status)
	require.InDelta(t, 95, places["cloud/cloud-1"].DynamicMetrics.CPUUsagePercent.Or(0), 5)
	for name, want := range map[string]int{"edge/edge-1": 2, "harbour/quay-1": 2} {
		require.Len(t, places[name].Pod, want, name)
		for _, pod := range places[name].Pod {
			require.True(t, pod.Ours())
			require.Contains(t, pod.Workload, j.GroupID)
			require.Equal(t, "web", pod.Workload[docker.GroupID].AppComponent)
		}
		cpuMilli, memory := places[name].OwnUsage()
		require.InDelta(t, 2*1000*cpuShare*0.5, cpuMilli, 30, name)
		require.InDelta(t, 2*memoryShare*(256<<20), memory, 2, name)
	}

	require.NoError(t, f.Drain("edge-1"))
	require.NoError(t, f.Cut("cloud"))
	for range 35 {
		emit(t, f, c, DefaultEvery)
	}
	taxonomy = collected(t, aggregator, c)
	for _, place := range taxonomy.Places() {
		lost := place.Cluster == "cloud" || place.Node == "edge-1"
		require.Equal(t, lost, place.At.Lost(c.now, time.Minute), place.Node)
		require.Equal(t, place.Node != "edge-1", place.At.CanSchedule(), place.Node)
	}

	// A cluster whose nodes were all drained still reports that.
	for _, n := range f.plan.cluster("edge").Nodes {
		require.NoError(t, f.Drain(n.Name))
	}
	for range 35 {
		emit(t, f, c, DefaultEvery)
	}
	drained := 0
	for _, place := range collected(t, aggregator, c).Places() {
		if place.Cluster == "edge" {
			require.False(t, place.At.CanSchedule(), place.Node)
			drained++
		}
	}
	require.Equal(t, len(f.plan.cluster("edge").Nodes), drained)
}

func collected(t *testing.T, aggregator *collect.Collector, c *clock) *topology.Taxonomy {
	t.Helper()
	picture, err := aggregator.Collect(t.Context(), c.now)
	require.NoError(t, err)
	return picture.Taxonomy
}
