package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	enginetypes "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/prometheus/prometheustest"
	"github.com/littoral-project/littoral/shared/loopback"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/topology/collect"
)

const machineID = "57e17cac94714bf6976f1e071d64d586"

// host is a root folder with what a small machine has in /proc, /sys, /dev and /etc.
func host(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"etc/machine-id":                                       machineID,
		"etc/passwd":                                           "root:x:0:0::/root:/bin/sh\ntoor:x:0:0::/root:/bin/sh\n",
		"etc/shadow":                                           "root:*:1::::::\n",
		"etc/ssh/sshd_config":                                  "# PermitRootLogin yes\nPermitRootLogin no\nPermitEmptyPasswords yes\n",
		"proc/sys/kernel/hostname":                             "edge-1",
		"proc/sys/kernel/osrelease":                            "6.1.0",
		"proc/sys/kernel/randomize_va_space":                   "2",
		"proc/stat":                                            "cpu  30 0 10 160 0 0 0 0 0 0\ncpu0 20 0 5 75 0 0 0 0 0 0\ncpu1 10 0 5 85 0 0 0 0 0 0\nbtime 1700000000\n",
		"proc/meminfo":                                         "MemTotal:        4000 kB\nMemFree:         1000 kB\nMemAvailable:    2500 kB\n",
		"proc/loadavg":                                         "0.50 0.40 0.30 1/100 1234",
		"proc/1/net/dev":                                       "Inter-|\n face |\n  eth0: 1000 1 0 0 0 0 0 0 2000 2 0 0 0 0 0 0\n    lo: 5 1 0 0 0 0 0 0 5 2 0 0 0 0 0 0\n",
		"sys/class/net/eth0/operstate":                         "up",
		"sys/class/net/eth0/duplex":                            "full",
		"sys/class/net/eth0/speed":                             "1000",
		"sys/class/thermal/thermal_zone0/temp":                 "48300",
		"sys/class/thermal/thermal_zone0/type":                 "cpu-thermal",
		"sys/class/powercap/intel-rapl:0/energy_uj":            "12000000",
		"sys/class/powercap/intel-rapl:0:0/energy_uj":          "5",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "1500000",
		"sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "1800000",
		"dev/video0":                                           "",
		"dev/ttyUSB3":                                          "",
		"dev/null":                                             "",
	} {
		file := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(root, "proc/77/fd"), 0o755))
	require.NoError(t, os.Symlink("/dev/ttyUSB3", filepath.Join(root, "proc/77/fd/3")))
	return root
}

func open(t *testing.T, o options) *leaf {
	t.Helper()
	l, err := newLeaf(o, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return l
}

// lines are those of the text without comments.
func lines(text []byte) (list []string) {
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			list = append(list, strings.TrimSpace(line))
		}
	}
	return list
}

// owned matches the labels that every series has.
const owned = `icos_agent_id="agent-1",icos_cluster_id="` + machineID + `",icos_controller_id="controller-1",icos_host_id="` + machineID +
	`",icos_host_name="57e17cac:edge-1"`

// has requires a series with these labels beside those of the owner, in any order.
func has(t *testing.T, all []string, name, value string, parts ...string) {
	t.Helper()
	for _, line := range all {
		rest, ok := strings.CutPrefix(line, name+"{")
		if !ok || !strings.HasSuffix(line, "} "+value) {
			continue
		}
		found := true
		for _, part := range parts {
			found = found && strings.Contains(rest, part)
		}
		if found {
			return
		}
	}
	require.Fail(t, "no series", "%s %v %s in\n%s", name, parts, value, strings.Join(all, "\n"))
}

func TestAHost(t *testing.T) {
	t.Parallel()
	root := host(t)
	l := open(t, options{
		Root: root, Agent: "agent-1", Controller: "controller-1", Orchestrator: "ocm", ClusterName: "edge", Kubernetes: "off", Docker: "off",
		Location: "37.98:23.73", Labels: "color=green, shape=round", NodeExporter: "on", SCA: true,
	})
	all := lines(l.text(t.Context()))
	for _, line := range all {
		for _, label := range strings.Split(owned, ",") {
			require.Contains(t, line, label)
		}
	}
	has(t, all, "tlum_host_info", "1", `hostname="edge-1"`, `latitude="37.98"`, `longitude="23.73"`, `os="linux"`, `tlum_host_id="`+machineID+`"`)
	has(t, all, "tlum_host_labels", "1", `label_color="green"`, `label_shape="round"`)
	has(t, all, "tlum_orch_info", "1", `agent_id="agent-1"`, `agent_name="agent-1"`, `type="ocm"`)
	has(t, all, "tlum_ocm_agent_info", "1", `id="agent-1"`, `name="edge"`)
	has(t, all, "tlum_cpu_freq", "1500", `cpu="0"`)
	has(t, all, "tlum_cpu_max_freq", "1800", `cpu="0"`)
	has(t, all, "node_mounted", "1", `device="video_0"`, `resource_path="squat.ai/video"`)
	has(t, all, "node_mounted", "0", `device="serial_3"`, `resource_path="squat.ai/serial"`)
	has(t, all, "node_cpu_seconds_total", "0.75", `cpu="0"`, `mode="idle"`)
	has(t, all, "node_memory_MemAvailable_bytes", "2.56e+06")
	has(t, all, "node_network_up", "1", `device="eth0"`)
	has(t, all, "node_network_speed_bytes", "1.25e+08", `device="eth0"`)
	has(t, all, "node_network_receive_bytes_total", "1000", `device="eth0"`)
	has(t, all, "node_thermal_zone_temp", "48.3", `type="cpu-thermal"`, `zone="0"`)
	has(t, all, "scaph_host_energy_microjoules_total", "1.2e+07", `method="rapl"`)
	has(t, all, "node_uname_info", "1", `nodename="edge-1"`, `sysname="Linux"`)
	has(t, all, "tlum_sca_check", "1", `check="nobody but root has the id 0"`, `result="failed"`)
	has(t, all, "tlum_sca_check", "1", `check="root does not sign in by password over SSH"`, `result="passed"`)
	has(t, all, "tlum_sca_check", "1", `check="SSH takes no empty passwords"`, `result="failed"`)
	has(t, all, "tlum_sca_check", "1", `check="crontab is written by root alone"`, `result="unknown"`)
	has(t, all, "tlum_leaf_errors", "0")
	require.NotContains(t, strings.Join(all, "\n"), `device="lo"`)

	// A device goes and comes back.
	require.NoError(t, os.Remove(filepath.Join(root, "dev/video0")))
	before := l.present()
	all = lines(l.text(t.Context()))
	has(t, all, "node_mounted", "-1", `device="video_0"`)
	require.NoError(t, os.WriteFile(filepath.Join(root, "dev/video0"), nil, 0o600))
	require.NotEqual(t, before, l.present())
	has(t, lines(l.text(t.Context())), "node_mounted", "1", `device="video_0"`)
}

func TestEnergyIsEstimatedAndSaysSo(t *testing.T) {
	t.Parallel()
	root := host(t)
	require.NoError(t, os.RemoveAll(filepath.Join(root, "sys/class/powercap")))
	l := open(t, options{Root: root, Kubernetes: "off", Docker: "off", NodeExporter: "on", WattsIdle: 2, WattsMax: 10})
	has(t, lines(l.text(t.Context())), "scaph_host_energy_microjoules_total", "0", `method="estimated"`)
	before := l.energy.at.Add(-time.Second)
	l.energy.at = before
	require.NoError(t, os.WriteFile(filepath.Join(root, "proc/stat"), []byte("cpu  80 0 10 210 0 0 0 0\n"), 0o600)) // half of it busy
	l.text(t.Context())
	require.InEpsilon(t, 6e6*l.energy.at.Sub(before).Seconds(), l.energy.microjoules, 1e-6, "6 W for as long as it took")
	none := open(t, options{Root: root, Kubernetes: "off", Docker: "off", NodeExporter: "on"})
	require.NotContains(t, string(none.text(t.Context())), "scaph_", "no model, no figure")
}

// TestAnEngine asks a double of Docker's API, made from its documentation (version 1.41), at a real socket.
func TestAnEngine(t *testing.T) {
	t.Parallel()
	root := host(t)
	socket := filepath.Join(root, "run/docker.sock")
	require.NoError(t, os.MkdirAll(filepath.Dir(socket), 0o755))
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	var busy atomic.Int64
	mux := http.NewServeMux()
	answer := func(path string, v any) {
		mux.HandleFunc("GET /v1.41"+path, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(v) })
	}
	answer("/info", map[string]any{"ServerVersion": "28.2.2", "Labels": []string{"zone=north"}, "NCPU": 4})
	answer("/containers/json", []any{
		map[string]any{"Id": "c1", "Names": []string{"/shop_web_1"}, "State": "running", "Labels": map[string]string{
			"app.icos.eu/name": "shop", "app.icos.eu/component": "web", "app.icos.eu/instance": "i-1", "maintainer": "x",
		}},
		map[string]any{"Id": "c2", "Names": []string{"/old"}, "State": "exited"},
		map[string]any{"Id": "c3", "Names": []string{"/stuck"}, "State": "dead"},
		map[string]any{"Id": "c4", "State": "removing"},
	})
	mux.HandleFunc("GET /v1.41/containers/c1/stats", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{
			"cpu_stats":    map[string]any{"cpu_usage": map[string]any{"total_usage": busy.Load()}},
			"memory_stats": map[string]any{"usage": 5000, "stats": map[string]any{"inactive_file": 1000}},
		})
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })

	l := open(t, options{Root: root, Agent: "agent-1", Kubernetes: "off", Docker: "auto", NodeExporter: "off"})
	all := lines(l.text(t.Context()))
	has(t, all, "tlum_runtime_info", "1", `type="Docker"`, `version="28.2.2"`, `node_name="edge-1"`, `cluster_id="`+machineID+`"`)
	has(t, all, "tlum_host_labels", "1", `label_zone="north"`)
	has(t, all, "tlum_workload_info", "1", `id="c1"`, `name="shop_web_1"`, `status="running"`, `icos_app_name="shop"`,
		`icos_app_component="web"`, `icos_app_instance="i-1"`)
	has(t, all, "tlum_workload_info", "1", `id="c2"`, `status="exited"`)
	has(t, all, "tlum_workload_info", "1", `id="c3"`, `status="failed"`)
	has(t, all, "tlum_workload_info", "1", `id="c4"`, `status="unknown"`)
	has(t, all, "container_memory_working_set_bytes", "4000", `container_id="c1"`)
	require.NotContains(t, strings.Join(all, "\n"), "maintainer")

	then := l.cpus["c1"]
	then.at = then.at.Add(-time.Second)
	l.cpus["c1"] = then
	busy.Store(int64(500 * time.Millisecond))
	all = lines(l.text(t.Context()))
	ratio := regexp.MustCompile(`container_cpu_utilization_ratio\{.*\} (\S+)`).FindStringSubmatch(strings.Join(all, "\n"))
	require.NotNil(t, ratio)
	cores, err := strconv.ParseFloat(ratio[1], 64)
	require.NoError(t, err)
	require.InDelta(t, 0.5, cores, 0.1)

	require.NoError(t, server.Close())
	all = lines(l.text(t.Context()))
	has(t, all, "tlum_leaf_errors", "1")
	has(t, all, "tlum_host_info", "1")
}

// TestAnEngine_real tells of a container on a real engine what the metrics of applications are made of: whose it is, that it
// runs, its memory and its cores.
func TestAnEngine_real(t *testing.T) {
	address := os.Getenv("LITTORAL_TEST_ENGINE")
	if address == "" {
		t.Skip("LITTORAL_TEST_ENGINE names no real engine; the double was tested, and \"make e2e-docker\" tests real ones")
	}
	c, err := client.New(client.WithHost(address))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	ctx := context.WithoutCancel(t.Context())
	const name = "littoral-leaf-test"
	remove := func() { _, _ = c.ContainerRemove(ctx, name, client.ContainerRemoveOptions{Force: true}) }
	remove()
	t.Cleanup(remove)
	_, err = c.ContainerCreate(ctx, client.ContainerCreateOptions{Name: name, Config: &enginetypes.Config{
		Image: "hello:1", Labels: map[string]string{"app.icos.eu/instance": "i-1", "app.icos.eu/component": "web"},
	}})
	require.NoError(t, err)
	_, err = c.ContainerStart(ctx, name, client.ContainerStartOptions{})
	require.NoError(t, err)

	l := open(t, options{Root: host(t), Agent: "agent-1", Kubernetes: "off", Docker: address, NodeExporter: "off"})
	_ = l.text(t.Context()) // cores are counted from one look to the next
	all := lines(l.text(t.Context()))
	has(t, all, "tlum_workload_info", "1", `name="`+name+`"`, `status="running"`, `icos_app_instance="i-1"`, `icos_app_component="web"`)
	text := strings.Join(all, "\n")
	inspected, err := c.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
	require.NoError(t, err)
	id := regexp.QuoteMeta(inspected.Container.ID)
	memory := regexp.MustCompile(`container_memory_working_set_bytes\{[^}]*container_id="` + id + `"[^}]*\} (\S+)`).FindStringSubmatch(text)
	require.NotNil(t, memory, text)
	held, err := strconv.ParseFloat(memory[1], 64)
	require.NoError(t, err)
	require.Greater(t, held, 1e5)
	require.Regexp(t, `container_cpu_utilization_ratio\{[^}]*container_id="`+id, text)
}

// TestACluster asks a double of the API server; on a cluster it was not run yet.
func TestACluster(t *testing.T) {
	t.Parallel()
	root := host(t)
	token := filepath.Join(root, "token")
	require.NoError(t, os.WriteFile(token, []byte("secret\n"), 0o600))
	mux := http.NewServeMux()
	answer := func(path, body string) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer secret" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			_, _ = w.Write([]byte(body))
		})
	}
	answer("/version", `{"gitVersion": "v1.34.1"}`)
	answer("/api/v1/namespaces/kube-system", `{"metadata": {"uid": "93111014-6276-4c1f-83eb-a5f7aa8386c9"}}`)
	answer("/api/v1/nodes/edge-node-1", `{"metadata": {"labels": {"icos.eu/color": "green", "other": "x"}},
		"spec": {"unschedulable": true}, "status": {"capacity": {"cpu": "4", "memory": "8Gi"}}}`)
	mux.HandleFunc("GET /api/v1/pods", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("fieldSelector") != "spec.nodeName=edge-node-1" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = w.Write([]byte(`{"items": [{"metadata": {"name": "web-0", "namespace": "shop", "uid": "u-1",
			"annotations": {"app.icos.eu/name": "shop", "app.icos.eu/instance": "i-1"}, "labels": {"app.icos.eu/component": "web"}},
			"spec": {"containers": [{"name": "web"}]}, "status": {"phase": "Running", "podIP": "10.0.0.5", "hostIP": "192.0.2.4"}}]}`))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	// As the kubelet answers, after the types of its API.
	answer("/stats/summary", `{"node": {"nodeName": "edge-node-1", "cpu": {"usageNanoCores": 900000000}}, "pods": [{"podRef": {"name": "web-0",
		"namespace": "shop", "uid": "u-1"}, "startTime": "2026-11-26T10:00:00Z", "containers": [{"name": "web", "startTime": "2026-11-26T10:00:00Z",
		"cpu": {"time": "2026-11-26T10:01:00Z", "usageNanoCores": 250000000, "usageCoreNanoSeconds": 1}, "memory": {"usageBytes": 2000,
		"workingSetBytes": 1500}}, {"name": "new", "cpu": {"usageCoreNanoSeconds": 1}}]}]}`)
	kubelet := httptest.NewTLSServer(mux)
	t.Cleanup(kubelet.Close)
	o := options{
		Root: root, Agent: "agent-1", Kubernetes: "on", Node: "edge-node-1", KubeURL: server.URL, KubeToken: token, Docker: "off", NodeExporter: "off",
		KubeletURL: kubelet.URL, KubeletSelfSigned: true,
	}
	l := open(t, o)
	all := lines(l.text(t.Context()))
	has(t, all, "tlum_leaf_errors", "0")
	has(t, all, "tlum_runtime_info", "1", `type="Kubernetes"`, `version="v1.34.1"`, `node_name="edge-node-1"`, `icos_host_name="93111014:edge-node-1"`)
	has(t, all, "tlum_host_labels", "1", `label_color="green"`)
	has(t, all, "tlum_workload_info", "1", `id="u-1"`, `name="shop__web-0"`, `status="running"`, `icos_app_name="shop"`, `icos_app_component="web"`)
	has(t, all, "kube_node_status_capacity", "8.589934592e+09", `resource="memory"`)
	has(t, all, "kube_node_status_capacity", "4", `resource="cpu"`)
	has(t, all, "kube_node_spec_unschedulable", "1", `node="edge-node-1"`)
	has(t, all, "kube_pod_info", "1", `pod_ip="10.0.0.5"`, `uid="u-1"`)
	has(t, all, "kube_pod_status_phase", "1", `phase="Running"`)
	has(t, all, "kube_pod_container_info", "1", `container="web"`)
	used := []string{`k8s_pod_uid="u-1"`, `k8s_container_name="web"`}
	has(t, all, "container_cpu_utilization_ratio", "0.25", used...)
	has(t, all, "container_memory_working_set_bytes", "1500", used...)
	require.NotContains(t, strings.Join(all, "\n"), `k8s_container_name="new"`)

	engine := prometheustest.New(t)
	receiver := http.NewServeMux()
	receiver.Handle("/", engine.Handler())
	receiver.Handle("POST /v1/metrics", engine.OTLPHandler())
	prometheus := httptest.NewServer(receiver)
	t.Cleanup(prometheus.Close)
	o.OTLP, o.Orchestrator = prometheus.URL+"/v1/metrics", "kubernetes"
	require.NoError(t, open(t, o).push(t.Context()))
	p, err := collecting(t, prometheus.URL).Collect(t.Context(), time.Now())
	require.NoError(t, err)
	web := p.Taxonomy.Cluster["agent-1"].Node["edge-node-1"].Pod["u-1"].Container["web"]
	require.InDelta(t, 0.25, web.CPUUsage.Or(0), 1e-9)
	require.InDelta(t, 1500, web.ContainerMemory.Or(0), 1e-9)

	o.KubeletSelfSigned = false
	all = lines(open(t, o).text(t.Context()))
	has(t, all, "tlum_leaf_errors", "1")
	has(t, all, "kube_pod_container_info", "1", `container="web"`)
	require.NotContains(t, strings.Join(all, "\n"), "container_memory_working_set_bytes{")

	_, err = newLeaf(options{Kubernetes: "on", KubeToken: filepath.Join(root, "none")}, slog.Default())
	require.Error(t, err)
}

// collecting makes the taxonomy of what a Prometheus has.
func collecting(t *testing.T, address string) *collect.Collector {
	t.Helper()
	values := map[string]string{"PROMETHEUS_ADDRESS": address}
	c, err := collect.Open(func(into any) error { return settings.Read(settings.Map(values), "", into) }, http.DefaultClient)
	require.NoError(t, err)
	return c
}

func TestQuantities(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{"4": 4, "3920m": 3.92, "8Gi": 8 << 30, "16384Ki": 16384 << 10, "2G": 2e9} {
		v, err := quantity(text)
		require.NoError(t, err)
		require.InDelta(t, want, v, 1e-9*want, text)
	}
	for _, text := range []string{"", "x", "4Ei", "Gi"} {
		_, err := quantity(text)
		require.Error(t, err, text)
	}
}

// TestTheRealThing builds the program, runs it on this machine, and has the taxonomy made from what it pushes alone.
func TestTheRealThing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "leaf")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	info, err := os.Stat(program)
	require.NoError(t, err)
	require.LessOrEqual(t, info.Size(), int64(12_000_000), "12 MB")

	engine := prometheustest.New(t)
	mux := http.NewServeMux()
	mux.Handle("/", engine.Handler())
	var pushes, size atomic.Int64
	receiver := engine.OTLPHandler()
	mux.HandleFunc("POST /v1/metrics", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer abc" {
			pushes.Add(1)
			size.Store(r.ContentLength)
		}
		receiver.ServeHTTP(w, r)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)

	// Devices are made below a folder of our own; all else is this machine's.
	dev := filepath.Join(dir, "dev")
	require.NoError(t, os.MkdirAll(dev, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "token"), []byte("abc\n"), 0o600))
	free, err := loopback.Free(t.Context())
	require.NoError(t, err)
	bind := free.String()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	run := exec.CommandContext(ctx, program, "serve", "--bind", bind, "--agent-id", "agent-1", "--orchestrator", "kubernetes",
		"--docker", "off", "--kubernetes", "off", "--node-exporter", "on", "--path-dev", dev, "--cluster-id", "laptop-cluster",
		"--otlp", server.URL+"/v1/metrics", "--interval", "2s", "--devices-interval", "200ms", "--otlp-token-file", filepath.Join(dir, "token"))
	run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }
	var log bytes.Buffer
	run.Stderr = &log
	require.NoError(t, run.Start())
	t.Cleanup(func() { stop(); _ = run.Wait() })

	get := func() string {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+bind+"/metrics", nil)
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return ""
		}
		defer func() { _ = resp.Body.Close() }()
		var b bytes.Buffer
		_, _ = b.ReadFrom(resp.Body)
		return b.String()
	}
	require.Eventually(t, func() bool { return pushes.Load() >= 3 && get() != "" }, time.Minute, 50*time.Millisecond, "%s", &log)
	require.Contains(t, get(), "tlum_host_info{")

	collector := collecting(t, server.URL)
	require.Eventually(t, func() bool {
		p, err := collector.Collect(ctx, time.Now())
		if err != nil {
			return false
		}
		for _, c := range p.Taxonomy.Cluster {
			for _, n := range c.Node {
				cores, _ := n.StaticMetrics.CPUCores.Get()
				memory, _ := n.StaticMetrics.RAMMemory.Get()
				_, used := n.DynamicMetrics.CPUUsagePercent.Get()
				return cores >= 1 && memory > 1e8 && used
			}
		}
		return false
	}, time.Minute, 200*time.Millisecond, "the taxonomy from the leaf alone")

	before := pushes.Load()
	require.NoError(t, os.WriteFile(filepath.Join(dev, "video0"), nil, 0o600))
	require.Eventually(t, func() bool {
		return pushes.Load() > before && strings.Contains(get(), `device="video_0"`)
	}, 10*time.Second, 20*time.Millisecond, "within ten seconds")

	status, err := os.ReadFile("/proc/" + strconv.Itoa(run.Process.Pid) + "/status")
	require.NoError(t, err)
	rss := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	require.NotNil(t, rss)
	kB, err := strconv.Atoi(string(rss[1]))
	require.NoError(t, err)
	require.LessOrEqual(t, kB, 25<<10, "25 MiB")
	t.Logf("program %.1f MB, %.1f MiB in memory, %d bytes a push", float64(info.Size())/1e6, float64(kB)/1024, size.Load())
}
