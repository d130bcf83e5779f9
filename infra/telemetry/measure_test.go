package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/littoral-project/littoral/shared/loopback"
)

// TestMeasured prints what the gateway takes, and holds it to order and number only: go test -v -run TestMeasured.
func TestMeasured(t *testing.T) {
	t.Parallel()
	w := newPipeline(t)
	token := w.token(t)
	const series, seconds = 1000, 60
	start := time.Now().Add(-seconds * time.Second)
	random := rand.New(rand.NewPCG(1, 2)) // no value is like the one before: real ones compress better
	second := func(i int) pmetric.Metrics {
		all := pmetric.NewMetrics()
		to := all.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
		for m := range 50 {
			one := to.AppendEmpty()
			one.SetName(fmt.Sprintf("site_metric_%d_bytes", m))
			points := one.SetEmptyGauge().DataPoints()
			for s := range series / 50 {
				p := points.AppendEmpty()
				p.SetDoubleValue(100 * random.NormFloat64())
				p.SetTimestamp(pcommon.NewTimestampFromTime(start.Add(time.Duration(i) * time.Second)))
				for _, l := range [][2]string{
					{"icos_host_id", "57e17cac94714bf6976f1e071d64d586"},
					{"icos_host_name", "93111014:edge-node-1"},
					{"icos_agent_id", "agent-ocm-1"},
					{"icos_cluster_id", "93111014-6276-4c1f-83eb-a5f7aa8386c9"},
					{"device", fmt.Sprint("eth", m, ".", s)},
				} {
					p.Attributes().PutStr(l[0], l[1])
				}
			}
		}
		return all
	}
	pid := w.command.Process.Pid
	before := processor(t, pid)
	for i := range seconds {
		require.Equal(t, http.StatusOK, w.send(t, token, second(i)))
	}
	stored := func() int {
		return len(w.query(t, `count_over_time({__name__=~"site_metric_.*"}[10m]) == `+strconv.Itoa(seconds)))
	}
	w.eventually(t, "all are there", func() bool { return stored() == series })
	spent := processor(t, pid) - before
	w.uplink.mu.Lock()
	sent := w.uplink.bytes
	w.uplink.mu.Unlock()

	w.uplink.set(true)
	for i := range seconds {
		require.Equal(t, http.StatusOK, w.send(t, token, second(seconds+i)))
	}
	waiting := size(t, w.site.Queue)
	w.uplink.set(false)
	t.Logf("%d values: %.0f a second of one processor, %.0f bytes each on the uplink (compressed), %.0f bytes each on disk: %.0f MB an hour of %d a second; %.0f MiB in memory",
		series*seconds, series*seconds/spent, float64(sent)/series/seconds, float64(waiting)/series/seconds,
		float64(waiting)/seconds*3600/1e6, series, memory(t, pid))
}

// processor is how many seconds of a processor a process has taken.
func processor(t *testing.T, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	total := 0.0
	for _, f := range fields[11:13] {
		v, err := strconv.ParseFloat(f, 64)
		require.NoError(t, err)
		total += v / 100
	}
	return total
}

// memory is how many MiB a process has.
func memory(t *testing.T, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	require.NoError(t, err)
	pages, err := strconv.ParseFloat(strings.Fields(string(text))[1], 64)
	require.NoError(t, err)
	return pages * float64(os.Getpagesize()) / (1 << 20)
}

// size is how many bytes the files of a folder have.
func size(t *testing.T, dir string) (total int64) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if info, err := d.Info(); err == nil && !d.IsDir() {
			total += info.Size()
		}
		return err
	}))
	return total
}

// TestWhatTheFilterSaves sends what the real leaf of this machine pushes, and what a collector scrapes of a real node_exporter, through
// a gateway and through one without its filter, and prints what goes over the uplink: go test -v -run TestWhatTheFilterSaves.
func TestWhatTheFilterSaves(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T, sink string){"leaf": pushingLeaf, "node_exporter": scrapedNodeExporter} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			collector(t)
			saved(t, name, captured(t, start))
		})
	}
}

// captured are the bodies of some pushes of whatever start starts.
func captured(t *testing.T, start func(t *testing.T, sink string)) [][]byte {
	t.Helper()
	const pushes = 20
	bodies := make(chan []byte, pushes)
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && r.Header.Get("Content-Encoding") == "gzip" {
			var z *gzip.Reader
			if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
				body, err = io.ReadAll(z)
			}
		}
		if request := pmetricotlp.NewExportRequest(); err == nil && request.UnmarshalJSON(body) == nil {
			body, err = request.MarshalProto()
		}
		if err != nil {
			return
		}
		select {
		case bodies <- body:
		default: // enough
		}
	}))
	t.Cleanup(sink.Close)
	start(t, sink.URL)
	var all [][]byte
	for len(all) < pushes {
		select {
		case body := <-bodies:
			all = append(all, body)
		case <-time.After(2 * time.Minute):
			require.FailNow(t, "it pushes nothing")
		}
	}
	return all
}

// pushingLeaf is the leaf of this machine.
func pushingLeaf(t *testing.T, sink string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "leaf")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../agents/leaf")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	running(t, program, "serve", "--bind", "127.0.0.1:0", "--agent-id", "agent-ocm-1", "--agent-name", "ours",
		"--orchestrator", "kubernetes", "--docker", "off", "--kubernetes", "off", "--node-exporter", "on", "--interval", "1s", "--otlp", sink)
}

// nodeExporterPath is the node_exporter that "make e2e-collector" builds.
const nodeExporterPath = "LITTORAL_NODE_EXPORTER"

// scrapedNodeExporter is that of this machine, as a collector reads it.
func scrapedNodeExporter(t *testing.T, sink string) {
	t.Helper()
	program := os.Getenv(nodeExporterPath)
	if program == "" {
		t.Skip("node_exporter is not built: make e2e-collector")
	}
	address, err := loopback.Free(t.Context())
	require.NoError(t, err)
	running(t, program, "--web.listen-address="+address.String())
	config := filepath.Join(t.TempDir(), "scrape.yaml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `receivers:
  prometheus:
    config:
      scrape_configs:
        - {job_name: node, scrape_interval: 1s, static_configs: [{targets: [%q], labels: {icos_host_id: h1}}]}
exporters:
  otlp_http: {endpoint: %q}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    metrics: {receivers: [prometheus], exporters: [otlp_http]}
`, address.String(), sink), 0o600))
	running(t, collector(t), "--config", config)
}

// running starts a program that runs until the test ends.
func running(t *testing.T, program string, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, arguments...)
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // it was killed
	})
}

// saved sends the pushes through both gateways.
func saved(t *testing.T, of string, pushes [][]byte) {
	t.Helper()
	with := newPipeline(t)
	without := newPipelineWith(t, func(*Site) {})
	without.end(os.Interrupt)
	config, err := os.ReadFile(without.config)
	require.NoError(t, err)
	require.Contains(t, string(config), "filter/needed, ")
	require.NoError(t, os.WriteFile(without.config, []byte(strings.ReplaceAll(string(config), "filter/needed, ", "")), 0o600))
	without.start(t)

	values, kept := 0, 0
	for _, body := range pushes {
		request := pmetricotlp.NewExportRequest()
		require.NoError(t, request.UnmarshalProto(body))
		values += request.Metrics().DataPointCount()
	}
	bytesOf := func(w *pipeline) int {
		token := w.token(t)
		w.uplink.mu.Lock()
		before := w.uplink.bytes // what the gateway tells of itself
		w.uplink.mu.Unlock()
		for _, body := range pushes {
			require.Equal(t, http.StatusOK, w.post(t, token, body))
		}
		require.Equal(t, http.StatusOK, w.send(t, token, gauge("step", 1, time.Now())))
		w.eventually(t, "all arrive", func() bool { return len(w.arrived()) > 0 })
		w.uplink.mu.Lock()
		defer w.uplink.mu.Unlock()
		return w.uplink.bytes - before
	}
	less, more := bytesOf(with), bytesOf(without)
	for _, s := range with.query(t, `{__name__!="step", icos_host_id!=""}[10m]`) {
		kept += len(s.Values)
	}
	require.Less(t, less, more)
	t.Logf("%d pushes of %s with %d values, of which %d go over the uplink: %d bytes there (compressed) instead of %d, %.0f %% less",
		len(pushes), of, values, kept, less, more, 100*(1-float64(less)/float64(more)))
}
