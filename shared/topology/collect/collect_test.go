package collect_test

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/topology"
	"github.com/littoral-project/littoral/shared/topology/collect"
)

func picture(t *testing.T, c *collect.Collector, at time.Time) *collect.Picture {
	t.Helper()
	p, err := c.Collect(context.Background(), at)
	require.NoError(t, err)
	// The package must accept what it writes.
	body, err := json.Marshal(p.Taxonomy)
	require.NoError(t, err)
	_, err = topology.Parse(body)
	require.NoError(t, err)
	return p
}

func known(t *testing.T, m topology.Measure) float64 {
	t.Helper()
	v, ok := m.Get()
	require.True(t, ok, "measured")
	return v
}

func nodes(t *topology.Taxonomy) (all []string) {
	for _, p := range t.Places() {
		all = append(all, p.Cluster+"/"+p.Node)
	}
	return all
}

func TestCollect_everyKeyFromItsMetric(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	for _, m := range []machine{master, worker, box} {
		f.until(now, m)
	}
	f.scanner(now, "worker", "192.0.2.2", 72)
	f.pod(now, worker, "p1", "web-1", "instance-1")
	f.pod(now, worker, "p2", "other", "")
	f.workload(now, box, "d1", "web", "instance-1")
	f.emit(now, "container_cpu_utilization_ratio", with(box.host(), labels{"container_id": "d1"}), 0.25)
	for name, value := range map[string]float64{
		"littoral_telemetry_lost_samples": 3, "littoral_telemetry_late_seconds": 180, "littoral_telemetry_disordered_samples": 1,
		"tlum_clock_skew_seconds": -75.2,
	} {
		f.emit(now, name, worker.host(), value)
	}
	f.emit(now, "tlum_vnet_info", with(worker.host(), labels{"type": "ClusterLink"}), 1)
	f.emit(now, "tlum_orch_info", labels{"type": "ocm", "agent_name": "own", "icos_agent_id": "self"}, 1)

	taxonomy := picture(t, f.collector(nil), now).Taxonomy
	require.Equal(t, []string{"edge-cluster-b/master", "edge-cluster-b/worker", "nuvlabox/0f/box"}, nodes(taxonomy))
	require.Empty(t, taxonomy.Warnings)
	require.InDelta(t, 0, known(t, taxonomy.Timestamp.TimeSinceOldest), 0.001)

	c := taxonomy.Cluster["agent-ocm-1"]
	require.Equal(t, []any{"ocm", "c1", "edge-cluster-b", "Kubernetes", "agent-ocm-1", true},
		[]any{c.Type, c.UUID, c.Name, c.Engine, c.AgentID, c.ClusterLink})

	n := c.Node["worker"]
	require.Equal(t, []any{"h2", "worker", "Kubernetes", "arm64"},
		[]any{n.UUID, n.Name, n.Engine, n.StaticMetrics.CPUArchitecture})
	require.InDelta(t, 37.98, known(t, n.Location.Latitude), 0)
	require.InDelta(t, float64(now.Unix()), known(t, n.LastSeen), 0.001)
	require.True(t, n.CanSchedule())
	require.InDelta(t, 72, known(t, n.ScaScore), 0)
	require.EqualValues(t, 6, n.Vulnerabilities["critical"])
	require.Equal(t, map[string]string{"color": "green"}, n.Labels)
	require.Equal(t, topology.Hearing{
		LostSamples: topology.Known(3), LateSeconds: topology.Known(180), DisorderedSamples: topology.Known(1), ClockSkewSeconds: topology.Known(-75.2),
	}, n.Hearing)
	require.Zero(t, c.Node["master"].Hearing)
	require.Equal(t, map[string]topology.Device{
		"video_0": {Name: "video_0", Type: "video", Status: "available", Path: "squat.ai/video"},
	}, n.Devices)

	for _, row := range []struct {
		key  string
		got  topology.Measure
		want float64
	}{
		{"cpuCores from kube-state-metrics", n.StaticMetrics.CPUCores, 3},
		{"RAMMemory from kube-state-metrics", n.StaticMetrics.RAMMemory, 7e9},
		{"cpuMaxFrequency in Hz", n.StaticMetrics.CPUMaxFrequency, 1.8e9},
		{"cpuFrequency in Hz", n.DynamicMetrics.CPUFrequency, 1.5e9},
		{"cpuTemperature", n.DynamicMetrics.CPUTemperature, 48.3},
		{"cpuEnergyConsumption in J", n.DynamicMetrics.CPUEnergyConsumption, 1000},
		{"cpuPowerWatts", n.DynamicMetrics.CPUPowerWatts, 4},
		{"freeRAM is what is available", n.DynamicMetrics.FreeRAM, 6e9},
		{"usedRAM is the rest of the kernel's total", n.DynamicMetrics.UsedRAM, 2e9},
		{"memoryUsagePercent", n.DynamicMetrics.MemoryUsagePercent, 25},
		{"cpuUsagePercent is usage, not frequency", n.DynamicMetrics.CPUUsagePercent, 20},
		{"cpuUtilizationPrediction", n.ForecastedMetrics.CPUUtilizationPrediction, 41.2},
	} {
		require.InDelta(t, row.want, known(t, row.got), 1e-6, row.key)
	}
	require.Equal(t, map[string]topology.NetworkInterface{"eth0": {
		Name: "eth0", Type: "full", Speed: topology.Known(125e6), IP: "192.0.2.2", Status: "up", SubnetMask: "24",
	}}, n.NetworkInterfaces)

	pod := n.Pod["p1"]
	require.Equal(t, []any{"ns__web-1", "10.42.0.12", "Running", 1, 1},
		[]any{pod.Name, pod.IP, pod.Status, pod.NumberOfContainers, pod.NumberOfApps})
	require.Equal(t, "web", pod.Workload["instance-1"].AppComponent)
	require.False(t, ours(n.Pod["p2"]))
	cpu, memory := n.OwnUsage()
	require.EqualValues(t, []int64{500, 1e6}, []int64{cpu, memory})
	require.Empty(t, c.Node["master"].Pod)

	docker := taxonomy.Cluster["nuvlabox/0f"].Node["agent-nuvla-1"]
	require.Equal(t, []any{"box", "Docker", "h1"}, []any{docker.Name, docker.Engine, docker.UUID})
	require.InDelta(t, 4, known(t, docker.StaticMetrics.CPUCores), 0, "counted from node_cpu_seconds_total")
	require.InDelta(t, 8e9, known(t, docker.StaticMetrics.RAMMemory), 0)
	require.True(t, docker.ScaScore.IsZero(), "the scanned worker has the same address, which joins nothing")
	require.True(t, docker.CanSchedule())
	cpu, _ = docker.OwnUsage()
	require.EqualValues(t, 250, cpu)
	require.Equal(t, "Running", docker.Pod["d1"].Status)
}

func ours(p topology.Pod) bool { return p.Ours() }

func TestCollect_aSilentNodeStaysWithItsLastSeen(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	silent := now.Add(-12 * time.Minute)
	f.until(silent, worker)
	f.scanner(silent, "worker", "192.0.2.2", 72)
	f.pod(silent, worker, "p1", "web-1", "instance-1")
	f.until(now, master)

	taxonomy := picture(t, f.collector(nil), now).Taxonomy
	n := taxonomy.Cluster["agent-ocm-1"].Node["worker"]
	require.InDelta(t, float64(silent.Unix()), known(t, n.LastSeen), 0.001)
	require.True(t, n.Lost(now, time.Minute))
	require.InDelta(t, 3, known(t, n.StaticMetrics.CPUCores), 0, "facts are remembered")
	require.InDelta(t, 72, known(t, n.ScaScore), 0)
	require.Equal(t, "green", n.Labels["color"])
	require.True(t, n.DynamicMetrics.CPUUsagePercent.IsZero(), "readings are not")
	require.Empty(t, n.Pod)
	m := taxonomy.Cluster["agent-ocm-1"].Node["master"]
	require.False(t, m.Lost(now, time.Minute))
	require.InDelta(t, 0, known(t, taxonomy.Timestamp.TimeSinceOldest), 0.001, "one dead node does not age the document")

	later := picture(t, f.collector(nil), now.Add(20*time.Minute)).Taxonomy
	require.Equal(t, []string{"edge-cluster-b/master"}, nodes(later), "after the lookback it is gone")
}

// TestCollect_saysWhenNobodyWasHeardOf: afterwards telemetry is back, but not from all hosts at the same moment.
func TestCollect_saysWhenNobodyWasHeardOf(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		begin, end time.Duration // of a host's samples every 15 s, before now
		want       time.Duration
	}{
		"telemetry that never broke off":  {32 * time.Minute, 0, -1},
		"telemetry that is away":          {32 * time.Minute, 10 * time.Minute, 0},
		"away for less than makes a loss": {32 * time.Minute, 45 * time.Second, -1},
		"telemetry that has come back":    {2 * time.Minute, 0, 2*time.Minute + 30*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			for at := -row.begin; at <= -row.end; at += 15 * time.Second {
				f.emit(now.Add(at), "tlum_host_info", with(worker.host(), labels{"hostname": worker.name}), 1)
			}
			f.emit(now, "tlum_host_info", labels{"icos_agent_id": "self", "icos_host_id": "h9"}, 1)
			first := picture(t, f.collector(nil), now)
			silent, known := first.Taxonomy.Timestamp.SilentUntil.Get()
			require.Equal(t, row.want >= 0, known)
			if known {
				require.InDelta(t, float64(now.Add(-row.want).Unix()), silent, 0.001)
			}
			later := picture(t, f.collector(failing("vector(time())")), now.Add(time.Second))
			later.Complete(first.Taxonomy)
			require.Equal(t, first.Taxonomy.Timestamp.SilentUntil, later.Taxonomy.Timestamp.SilentUntil, "it is remembered")
		})
	}
}

func TestCollect_aDrainedNodeSaysSo(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.until(now.Add(-time.Minute), worker)
	f.emit(now, "kube_node_spec_unschedulable", worker.kube(), 1)
	// The series of a stopped exporter end at once instead of after Prometheus' five minutes.
	f.emit(now, "tlum_host_info", with(worker.host(), labels{
		"os": "linux", "arch": "arm64", "ip": worker.ip, "hostname": worker.name, "latitude": "37.98", "longitude": "23.73",
	}), prometheus.Stale)
	f.emit(now, "node_uname_info", with(worker.host(), labels{
		"machine": "aarch64", "nodename": worker.name,
	}), prometheus.Stale)

	at := now.Add(30 * time.Second)
	n := picture(t, f.collector(nil), at).Taxonomy.Cluster["agent-ocm-1"].Node["worker"]
	require.False(t, n.CanSchedule())
	require.True(t, n.Lost(at, time.Minute))
}

// TestCollect_aNodeIsAsItsPresentAgentSays: telemetry contains the series of a former agent for half an hour.
func TestCollect_aNodeIsAsItsPresentAgentSays(t *testing.T) {
	t.Parallel()
	other := func(agent, cluster string) machine { m := worker; m.agent, m.cluster = agent, cluster; return m }
	for name, anew := range map[string]machine{
		"with an earlier id": other("agent-ocm-0", worker.cluster),
		"with a later id":    other("agent-ocm-2", worker.cluster),
		"of a site that was set up anew, with an earlier id": other(worker.agent, "c0"),
		"of a site that was set up anew, with a later id":    other(worker.agent, "c2"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			f.until(now.Add(-10*time.Minute), worker)
			anew.agentName = worker.agent
			f.until(now.Add(-time.Second), anew)
			f.emit(now, "kube_node_spec_unschedulable", anew.kube(), 1)
			f.emit(now, "kube_node_status_capacity", with(anew.kube(), labels{"resource": "cpu", "unit": "core"}), 2)
			taxonomy := picture(t, f.collector(nil), now).Taxonomy
			require.Equal(t, []string{"edge-cluster-b/worker"}, nodes(taxonomy))
			n := taxonomy.Cluster["agent-ocm-1"].Node["worker"]
			require.False(t, n.CanSchedule())
			require.InDelta(t, 2, known(t, n.StaticMetrics.CPUCores), 0)
		})
	}
}

func TestCollect_labelsThatChangedAreNotMixed(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.until(now.Add(-10*time.Minute), worker)
	f.emit(now.Add(-10*time.Minute), "tlum_host_labels", with(worker.host(), labels{"label_old": "1"}), 1)
	f.until(now, worker)
	n := picture(t, f.collector(nil), now).Taxonomy.Cluster["agent-ocm-1"].Node["worker"]
	require.Equal(t, map[string]string{"color": "green"}, n.Labels)
}

func TestCollect_scoresFindTheirHost(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		hostname, ip string
		want         map[string]bool
	}{
		"by name and address":                      {"worker", "192.0.2.2", map[string]bool{"worker": true}},
		"by name where the address is translated":  {"worker", "198.51.100.7", map[string]bool{"worker": true}},
		"not by address alone":                     {"stranger", "192.0.2.2", map[string]bool{}},
		"not by a name that two hosts have":        {"twin", "198.51.100.7", map[string]bool{}},
		"by name and address where two have it":    {"twin", "192.0.2.11", map[string]bool{"twin": true}},
		"not by a name and address that both have": {"clone", "192.0.2.20", map[string]bool{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			f.until(now, worker)
			f.until(now, box)
			f.until(now, machine{agent: "agent-ocm-1", cluster: "c1", id: "t1", name: "twin", ip: "192.0.2.11"})
			f.until(now, machine{agent: "agent-nuvla-1", cluster: "c2", id: "t2", name: "twin", ip: "192.0.2.12", docker: true})
			f.until(now, machine{agent: "agent-ocm-1", cluster: "c1", id: "k1", name: "clone", ip: "192.0.2.20"})
			f.until(now, machine{agent: "agent-nuvla-1", cluster: "c2", id: "k2", name: "clone", ip: "192.0.2.20", docker: true})
			f.scanner(now, row.hostname, row.ip, 55)
			scored := map[string]bool{}
			taxonomy := picture(t, f.collector(nil), now).Taxonomy
			for _, p := range taxonomy.Places() {
				if !p.At.ScaScore.IsZero() {
					scored[p.Node] = true
				}
			}
			require.Equal(t, row.want, scored)
			require.Equal(t, len(row.want) == 0, len(taxonomy.Warnings) > 0, "a score for nobody is told")
		})
	}
}

// TestCollect_aCPUThatIsReportedTwiceIsCountedOnce: the exporter was restarted, and its former series were not ended.
func TestCollect_aCPUThatIsReportedTwiceIsCountedOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	again := with(box.host(), labels{"mode": "idle", "instance": "restarted"})
	f.until(now.Add(-30*time.Second), box)
	for _, cpu := range []string{"0", "1", "2", "3"} {
		f.emit(now, "node_cpu_seconds_total", with(again, labels{"cpu": cpu}), 1)
	}
	for _, at := range []time.Time{now, now.Add(10 * time.Minute)} { // then it is silent
		n := picture(t, f.collector(nil), at).Taxonomy.Cluster["nuvlabox/0f"].Node["agent-nuvla-1"]
		require.InDelta(t, 4, known(t, n.StaticMetrics.CPUCores), 0)
	}
}

func TestCollect_aScoreThatIsNoNumberIsNone(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.until(now, worker)
	for policy, score := range map[string]float64{"a": 72, "b": math.NaN()} {
		f.emit(now, "SCA_score", labels{
			"icos_agent_id": "self", "icos_controller_id": "controller-a", "agent_hostname": "worker",
			"agent_ip": "192.0.2.2", "policy_id": policy,
		}, score)
	}
	taxonomy := picture(t, f.collector(nil), now).Taxonomy
	require.InDelta(t, 72, known(t, taxonomy.Cluster["agent-ocm-1"].Node["worker"].ScaScore), 0)
	require.Len(t, taxonomy.Warnings, 1)
}

func TestCollect_whatIsMissingIsUnknown(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	h := worker.host()
	f.emit(now, "tlum_orch_info", with(h, labels{
		"type": "ocm", "agent_id": "agent-ocm-1", "agent_name": "agent-ocm-1",
	}), 1)
	f.emit(now, "node_uname_info", with(h, labels{"nodename": "worker", "machine": "x86_64"}), 1)
	f.emit(now, "node_cpu_seconds_total", with(h, labels{"cpu": "0", "mode": "idle"}), 7)
	f.emit(now, "node_memory_MemAvailable_bytes", h, 5)
	f.emit(now, "SCA_score", labels{"agent_hostname": "worker", "icos_controller_id": "controller-a"}, 400)

	taxonomy := picture(t, f.collector(nil), now).Taxonomy
	c := taxonomy.Cluster["agent-ocm-1"]
	require.Equal(t, []any{"agent-ocm-1", "Kubernetes"}, []any{c.Name, c.Engine}, "name and engine have a fallback")
	n := c.Node["worker"]
	require.Equal(t, "Kubernetes", n.Engine)
	require.Equal(t, "x86_64", n.StaticMetrics.CPUArchitecture)
	for key, m := range map[string]topology.Measure{
		"ScaScore out of range":              n.ScaScore,
		"RAMMemory":                          n.StaticMetrics.RAMMemory,
		"cpuUsagePercent of a single sample": n.DynamicMetrics.CPUUsagePercent,
		"usedRAM without a total":            n.DynamicMetrics.UsedRAM,
		"cpuPowerWatts":                      n.DynamicMetrics.CPUPowerWatts,
	} {
		require.True(t, m.IsZero(), key)
	}
	require.InDelta(t, 1, known(t, n.StaticMetrics.CPUCores), 0)
	require.True(t, n.CanSchedule())
}

func TestCollect_warnsOfHostsOfUnknownAgents(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.until(now, worker)
	stranger := machine{agent: "agent-9", cluster: "c9", id: "h2", name: "worker", ip: "192.0.2.2"}
	f.emit(now, "tlum_host_info", with(stranger.host(), labels{"hostname": "worker"}), 1)
	f.emit(now, "node_memory_MemTotal_bytes", stranger.host(), 1)
	taxonomy := picture(t, f.collector(nil), now).Taxonomy
	require.Equal(t, []string{"edge-cluster-b/worker"}, nodes(taxonomy))
	require.Equal(t, []string{"a host was left out whose agent is not known (1 times)"}, taxonomy.Warnings)
}

func TestCollect_aSiteThatWasSetUpAnewIsWhatItIsNow(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.until(now.Add(-10*time.Minute), box)
	anew := box // with its old name, but all identifiers new
	anew.agent, anew.cluster, anew.id = "agent-nuvla-2", "c3", "h3"
	f.until(now, anew)
	c := picture(t, f.collector(nil), now).Taxonomy.Cluster["nuvlabox/0f"]
	require.Equal(t, "agent-nuvla-2", c.AgentID)
	require.Equal(t, "c3", c.UUID)
	n := c.Node[anew.agent] // ICOS lists the host of a Nuvla agent so
	require.Equal(t, "h3", n.UUID)
	require.False(t, n.Lost(now, time.Minute))
}

func TestCollect_twoLiveSitesOfOneNameDoNotAlternate(t *testing.T) {
	t.Parallel()
	other := box
	other.agent, other.cluster, other.id = "agent-nuvla-2", "c3", "h3"
	for _, order := range [][]machine{{box, other}, {other, box}} {
		f := newFleet(t)
		f.until(now.Add(-10*time.Second), order[0])
		f.until(now, order[1])
		require.Equal(t, box.agent, picture(t, f.collector(nil), now).Taxonomy.Cluster["nuvlabox/0f"].AgentID)
	}
}

func TestCollect_hostileLabelsReachNoStore(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.until(now, worker)
	f.emit(now, "tlum_host_labels", with(worker.host(), labels{"label_evil": "a\x00b\nc"}), 1)
	n := picture(t, f.collector(nil), now).Taxonomy.Cluster["agent-ocm-1"].Node["worker"]
	require.Equal(t, "abc", n.Labels["evil"])
}

func TestCollect_anEmptyStoreIsSaidToBeEmpty(t *testing.T) {
	t.Parallel()
	taxonomy := picture(t, newFleet(t).collector(nil), now).Taxonomy
	require.NotNil(t, taxonomy.Cluster)
	require.Empty(t, taxonomy.Cluster)
	require.Equal(t, []string{"telemetry answers, but no agent has reported to it"}, taxonomy.Warnings)
}

func TestCollect_oneQueryFailing(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.until(now, worker)
	taxonomy := picture(t, f.collector(failing("SCA_score", "kube_node_status_capacity")), now).Taxonomy
	require.Len(t, taxonomy.Warnings, 2)
	require.Contains(t, taxonomy.Warnings[0], "SCA_score failed: the telemetry store answered 503")
	require.Contains(t, taxonomy.Warnings[1], "kube_node_status_capacity failed")
	n := taxonomy.Cluster["agent-ocm-1"].Node["worker"]
	require.InDelta(t, 4, known(t, n.StaticMetrics.CPUCores), 0, "the node exporter stands in")
}

// TestCollect_partOfTheStoresAway: by default Thanos answers without a store that it cannot reach, as if the hosts in
// that store were silent.
func TestCollect_partOfTheStoresAway(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.until(now, worker)
	thanos := func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.FormValue("partial_response") != "false" {
				inner.ServeHTTP(w, r)
				return
			}
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, `{"status":"error","errorType":"execution","error":"no store matches"}`)
		})
	}
	_, err := f.collector(thanos).Collect(context.Background(), now)
	require.Equal(t, problem.Unavailable, problem.KindOf(err))
}

func TestCollect_passesOnWarningsOfTheStore(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.until(now, worker)
	warning := func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Accept-Encoding")
			answer := httptest.NewRecorder()
			inner.ServeHTTP(answer, r)
			_, _ = io.WriteString(w, `{"warnings":["remote \u0000read: away"],`+strings.TrimPrefix(answer.Body.String(), "{"))
		})
	}
	taxonomy := picture(t, f.collector(warning), now).Taxonomy
	require.Equal(t, []string{"edge-cluster-b/worker"}, nodes(taxonomy))
	require.Len(t, taxonomy.Warnings, 1, "once, however many queries")
	require.Contains(t, taxonomy.Warnings[0], "the telemetry store warns: remote read: away")
}

func TestCollect_withoutTheEssentialThereIsNoTaxonomy(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.until(now, worker)
	for name, metric := range map[string]string{
		"clusters": "tlum_orch_info", "their names": "tlum_ocm_agent_info", "hosts": "tlum_host_info", "all": "",
	} {
		_, err := f.collector(failing(metric)).Collect(context.Background(), now)
		require.Equal(t, problem.Unavailable, problem.KindOf(err), name)
		require.ErrorContains(t, err, metric)
	}
}

func TestComplete_takesFromBeforeWhatFailed(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.until(now.Add(-time.Second), worker)
	f.scanner(now, "worker", "192.0.2.2", 72)
	f.emit(now, "kube_node_spec_unschedulable", worker.kube(), 1)
	before := picture(t, f.collector(nil), now)

	spoilt := failing("SCA_score", "unschedulable", "kube_node_status_capacity", "mounted", "host_labels")
	p := picture(t, f.collector(spoilt), now.Add(15*time.Second))
	p.Complete(before.Taxonomy)
	n, was := p.Taxonomy.Cluster["agent-ocm-1"].Node["worker"], before.Taxonomy.Cluster["agent-ocm-1"].Node["worker"]
	require.False(t, n.CanSchedule(), "a failed query puts no drained node back into service")
	require.Equal(t, was.ScaScore, n.ScaScore)
	require.Equal(t, was.StaticMetrics, n.StaticMetrics)
	require.Equal(t, was.Devices, n.Devices)
	require.Equal(t, was.Labels, n.Labels)
}

// TestComplete_knowsTheUsageOfMemory: it needs both the available and the total memory, and either query may fail.
func TestComplete_knowsTheUsageOfMemory(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.until(now.Add(-time.Second), box)
	before := picture(t, f.collector(nil), now).Taxonomy
	was := before.Cluster["nuvlabox/0f"].Node[box.agent].DynamicMetrics
	require.InDelta(t, 25, known(t, was.MemoryUsagePercent), 0)
	for _, metric := range []string{"MemTotal", "MemAvailable"} {
		p := picture(t, f.collector(failing(metric)), now.Add(15*time.Second))
		p.Complete(before)
		n := p.Taxonomy.Cluster["nuvlabox/0f"].Node[box.agent]
		require.Equal(t, was.MemoryUsagePercent, n.DynamicMetrics.MemoryUsagePercent, metric)
		require.Equal(t, was.UsedRAM, n.DynamicMetrics.UsedRAM, metric)
	}
}

// TestComplete_takesFromBeforeWhatContainersUse: otherwise all usage would count as that of others, and be deducted in
// addition to reservations.
func TestComplete_takesFromBeforeWhatContainersUse(t *testing.T) {
	t.Parallel()
	const cpu, memory = "container_cpu_utilization_ratio", "container_memory_working_set_bytes"
	f := newFleet(t)
	f.until(now.Add(-time.Second), worker)
	f.until(now.Add(-time.Second), box)
	f.pod(now, worker, "p1", "web-1", "instance-1")
	f.pod(now, worker, "p2", "web-2", "instance-1")
	f.workload(now, box, "d1", "web", "instance-1")
	f.emit(now, cpu, with(box.host(), labels{"container_id": "d1"}), 0.25)
	before := picture(t, f.collector(nil), now).Taxonomy

	later := now.Add(15 * time.Second)
	f.emit(later, "kube_pod_info", with(worker.kube(), labels{
		"namespace": "ns", "pod": "web-2", "uid": "p2", "pod_ip": "10.42.0.12",
	}), prometheus.Stale)
	f.pod(later, worker, "p3", "web-3", "instance-1")
	for name, row := range map[string]struct {
		spoilt      []string
		cpu, memory int64
	}{
		"nothing fails":                   {nil, 1000, 2e6},
		"their cpu":                       {[]string{cpu}, 500, 2e6},
		"their memory":                    {[]string{memory}, 1000, 1e6},
		"both":                            {[]string{cpu, memory}, 500, 1e6},
		"all that tells of them":          {[]string{cpu, memory, "kube_pod_container_info"}, 500, 1e6},
		"all that tells of them and pods": {[]string{cpu, memory, "kube_pod"}, 1000, 2e6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := picture(t, f.collector(failing(row.spoilt...)), later)
			p.Complete(before)
			n := p.Taxonomy.Cluster["agent-ocm-1"].Node["worker"]
			usedCPU, usedMemory := n.OwnUsage()
			require.Equal(t, []int64{row.cpu, row.memory}, []int64{usedCPU, usedMemory})
			n = p.Taxonomy.Cluster["nuvlabox/0f"].Node["agent-nuvla-1"]
			usedCPU, _ = n.OwnUsage()
			require.EqualValues(t, 250, usedCPU)
		})
	}
}

func TestComplete_remembersWhatTelemetryForgot(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.until(now, worker)
	f.until(now, box)
	before := picture(t, f.collector(nil), now).Taxonomy
	for name, row := range map[string]struct {
		after time.Duration
		want  []string
	}{
		"within the lookback": {29 * time.Minute, []string{"edge-cluster-b/worker", "nuvlabox/0f/box"}},
		"after it":            {31 * time.Minute, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := picture(t, newFleet(t).collector(nil), now.Add(row.after))
			p.Complete(before)
			require.Equal(t, row.want, nodes(p.Taxonomy))
		})
	}
	require.Len(t, before.Cluster, 2, "what was before is left alone")
}

// TestComplete_aClusterIsCalledAsItWas: the jobs on its nodes use that name, and would otherwise count the nodes as
// silent.
func TestComplete_aClusterIsCalledAsItWas(t *testing.T) {
	t.Parallel()
	agent := func(id string) machine { m := worker; m.agent = id; return m }
	named := func(agentName string) machine { m := worker; m.agentName = agentName; return m }
	stranger := machine{agent: "agent-ocm-0", cluster: "c0", id: "h0", name: "other"}
	for name, row := range map[string]struct {
		then []machine
		want []string
	}{
		"when another claims its name": {
			[]machine{worker, stranger}, []string{"agent-ocm-0/other", "edge-cluster-b/worker"},
		},
		"when its agent is another, by an earlier id":   {[]machine{agent("agent-ocm-0")}, []string{"edge-cluster-b/worker"}},
		"when its agent is another, by a later id":      {[]machine{agent("agent-ocm-2")}, []string{"edge-cluster-b/worker"}},
		"when its agent is called otherwise, earlier":   {[]machine{named("agent-ocm-0")}, []string{"edge-cluster-b/worker"}},
		"when its agent is called otherwise, and later": {[]machine{named("agent-ocm-2")}, []string{"edge-cluster-b/worker"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			f.until(now, worker)
			before := picture(t, f.collector(nil), now).Taxonomy
			for _, after := range []time.Duration{20 * time.Second, 3 * time.Minute, 29 * time.Minute, 40 * time.Minute} {
				at := now.Add(after)
				for _, m := range row.then {
					f.until(at, m)
				}
				p := picture(t, f.collector(nil), at)
				p.Complete(before)
				require.Equal(t, row.want, nodes(p.Taxonomy), after)
				for _, place := range p.Taxonomy.Places() {
					require.InDelta(t, float64(at.Unix()), known(t, place.At.LastSeen), 0.001, "%s is heard of", place.Node)
				}
				before = p.Taxonomy
			}
		})
	}
}

// TestComplete_aSiteWhoseAgentIsRenamed: a site that is not a managed cluster has its agent's name. While telemetry has
// both names, the site has one of them, and never none.
func TestComplete_aSiteWhoseAgentIsRenamed(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]string{"to an earlier name": "nuvlabox/0a", "to a later name": "nuvlabox/0z"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			f.until(now, box)
			before := picture(t, f.collector(nil), now).Taxonomy
			renamed := box
			renamed.agentName = to
			for _, after := range []time.Duration{20 * time.Second, 3 * time.Minute, 6 * time.Minute, 29 * time.Minute} {
				at := now.Add(after)
				f.until(at, renamed)
				p := picture(t, f.collector(nil), at)
				require.Empty(t, p.Taxonomy.Warnings)
				p.Complete(before)
				places := p.Taxonomy.Places()
				require.Len(t, places, 1, after)
				require.InDelta(t, float64(at.Unix()), known(t, places[0].At.LastSeen), 0.001, "it is heard of")
				if after > 5*time.Minute { // until then Prometheus still returns the stopped series as present
					require.Equal(t, to, places[0].Cluster)
				}
				before = p.Taxonomy
			}
		})
	}
}

// TestCollect_aRenamedMachine is identified by its machine id, which it keeps, and is reported under its present name.
func TestCollect_aRenamedMachine(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]string{"to an earlier name": "a-worker", "to a later name": "z-worker"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			f.until(now, worker)
			f.emit(now, "tlum_host_labels", with(worker.host(), labels{"label_former": "1"}), 1)
			renamed := worker
			renamed.name, renamed.ip = to, "192.0.2.9"
			for _, after := range []time.Duration{2 * time.Minute, 10 * time.Minute} {
				f.until(now.Add(after), renamed)
			}
			for _, after := range []time.Duration{2 * time.Minute, 10 * time.Minute, 12 * time.Minute} { // then it is lost
				at := now.Add(after)
				taxonomy := picture(t, f.collector(nil), at).Taxonomy
				require.Equal(t, []string{"edge-cluster-b/" + to}, nodes(taxonomy), after)
				n := taxonomy.Cluster["agent-ocm-1"].Node[to]
				require.Equal(t, map[string]string{"color": "green"}, n.Labels)
				require.Equal(t, after > 10*time.Minute, n.Lost(at, time.Minute))
			}
		})
	}
}

// TestCollect_aNodeThatWasInstalledAnew: only the present series count for it, while telemetry still has those of the
// former machine.
func TestCollect_aNodeThatWasInstalledAnew(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	former := worker
	former.id = "h0"
	f.until(now.Add(-10*time.Minute), former)
	f.until(now.Add(-time.Second), worker)
	f.emit(now, "kube_node_spec_unschedulable", worker.kube(), 1)
	f.scanner(now, "worker", "192.0.2.2", 72)
	f.pod(now, worker, "p1", "web-1", "instance-1")

	taxonomy := picture(t, f.collector(nil), now).Taxonomy
	require.Equal(t, []string{"edge-cluster-b/worker"}, nodes(taxonomy))
	n := taxonomy.Cluster["agent-ocm-1"].Node["worker"]
	require.Equal(t, "h2", n.UUID)
	require.False(t, n.CanSchedule())
	require.InDelta(t, 3, known(t, n.StaticMetrics.CPUCores), 0)
	require.InDelta(t, 72, known(t, n.ScaScore), 0)
	cpu, _ := n.OwnUsage()
	require.EqualValues(t, 500, cpu)
}

func TestComplete_retainsTheNameOfAClusterThatIsNoLongerReported(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.until(now, worker)
	before := picture(t, f.collector(nil), now).Taxonomy
	at := now.Add(40 * time.Minute)
	tell := func(kind string) []string {
		f.emit(at, "tlum_orch_info", with(worker.host(), labels{
			"type": kind, "agent_id": worker.agent, "agent_name": worker.agent,
		}), 1)
		f.emit(at, "node_uname_info", with(worker.host(), labels{"nodename": worker.name}), 1)
		p := picture(t, f.collector(nil), at)
		require.Equal(t, []string{"agent-ocm-1/worker"}, nodes(p.Taxonomy))
		p.Complete(before)
		return nodes(p.Taxonomy)
	}
	require.Equal(t, []string{"edge-cluster-b/worker"}, tell("ocm"))
	at = at.Add(40 * time.Minute)
	require.Equal(t, []string{"agent-ocm-1/worker"}, tell("kubernetes"), "it is no managed cluster any more")
}

// TestComplete_ofTwoNodesOfOneName: the node that had the name keeps it while it lives, whichever was seen last.
func TestComplete_ofTwoNodesOfOneName(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	twin := worker
	twin.id = "t2"
	var before *topology.Taxonomy
	ids := func(at time.Time) map[string]string {
		p := picture(t, f.collector(nil), at)
		if before != nil {
			p.Complete(before)
		}
		before = p.Taxonomy
		found := map[string]string{}
		for _, place := range before.Places() {
			found[place.Node] = place.At.UUID
		}
		return found
	}
	for i, m := range []machine{worker, twin, worker, twin} {
		at := now.Add(time.Duration(i) * 20 * time.Second)
		f.until(at, m)
		found := ids(at)
		require.Equal(t, "h2", found["worker"])
		require.Equal(t, i > 0, found["t2"] == "t2")
	}
	at := now.Add(10 * time.Minute)
	f.until(at, twin)
	require.Equal(t, map[string]string{"worker": "t2"}, ids(at), "the other was its former installation")
}

func TestNew_refusesSettingsThatCannotWork(t *testing.T) {
	t.Parallel()
	good := collect.Config{QueryTimeout: 1, Freshness: topology.Freshness{StaleAfter: time.Minute}, Lookback: time.Hour}
	good.Address = "http://prometheus:9090"
	for setting, spoil := range map[string]func(*collect.Config){
		"QUERY_TIMEOUT":      func(c *collect.Config) { c.QueryTimeout = 0 },
		"STALE_AFTER":        func(c *collect.Config) { c.StaleAfter = -1 },
		"TELEMETRY_LOOKBACK": func(c *collect.Config) { c.Lookback = time.Second },
		"PROMETHEUS_ADDRESS": func(c *collect.Config) { c.Address = "prometheus" },
	} {
		c := good
		spoil(&c)
		_, err := collect.New(c, nil)
		require.ErrorContains(t, err, setting)
	}
}
