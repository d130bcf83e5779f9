package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/logs"
	"github.com/littoral-project/littoral/shared/logs/victorialogs"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/topology"
	"github.com/littoral-project/littoral/shared/topology/collect"
	"github.com/littoral-project/littoral/test/logserver"
)

// TestTheTaxonomyComesThroughTheGateway: the real leaf pushes to it, as an agent that it is not; what the controller's Prometheus then
// has makes a taxonomy in which the machine is the gateway's agent's.
func TestTheTaxonomyComesThroughTheGateway(t *testing.T) {
	t.Parallel()
	w := newPipeline(t)
	dir := t.TempDir()
	program, token := filepath.Join(dir, "leaf"), filepath.Join(dir, "token")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../agents/leaf")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.WriteFile(token, []byte(w.token(t)), 0o600))
	leaf := exec.CommandContext(t.Context(), program, "serve", "--bind", "127.0.0.1:0", "--agent-id", "someone-else", "--agent-name", "ours",
		"--orchestrator", "kubernetes", "--docker", "off", "--kubernetes", "off", "--node-exporter", "on", "--interval", "1s",
		"--otlp", "http://"+w.site.HTTP+"/v1/metrics", "--otlp-token-file", token)
	require.NoError(t, leaf.Start())
	t.Cleanup(func() {
		_ = leaf.Process.Kill()
		_ = leaf.Wait() // it was killed
	})
	server := httptest.NewServer(w.uplink.Handler())
	t.Cleanup(server.Close)
	values := map[string]string{"PROMETHEUS_ADDRESS": server.URL}
	collector, err := collect.Open(func(into any) error { return settings.Read(settings.Map(values), "", into) }, http.DefaultClient)
	require.NoError(t, err)
	var cluster topology.Cluster
	w.eventually(t, "the taxonomy has the machine", func() bool {
		p, err := collector.Collect(t.Context(), time.Now())
		if err != nil {
			return false
		}
		cluster = p.Taxonomy.Cluster["ours"]
		for _, n := range cluster.Node {
			_, used := n.DynamicMetrics.CPUUsagePercent.Get()
			_, clock := n.Hearing.ClockSkewSeconds.Get()
			return used && clock
		}
		return false
	})
	require.Equal(t, "agent-ocm-1", cluster.AgentID)
	require.Equal(t, "cluster-1", cluster.UUID)
	for _, n := range cluster.Node {
		require.InDelta(t, 0, n.Hearing.ClockSkewSeconds.Or(99), 5)
	}
}

// TestLogsAreReadAgain: what a container writes reaches a real VictoriaLogs, and is read there as the application's.
func TestLogsAreReadAgain(t *testing.T) {
	t.Parallel()
	address, remote := logserver.VictoriaLogs(t)
	store := victorialogs.New(remote)

	w := newPipelineWith(t, func(s *Site) { s.Logs = address + "/insert/opentelemetry/v1/logs" })
	id := strings.Repeat("0123456789abcdef", 4)
	require.NoError(t, os.Mkdir(filepath.Join(w.site.Containers, id), 0o755))
	add := func(text string) {
		f, err := os.OpenFile(filepath.Join(w.site.Containers, id, id+"-json.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = f.WriteString(text + "\n")
		require.NoError(t, errors.Join(err, f.Close()))
	}
	at := time.Now().UTC().Truncate(time.Millisecond)
	line := func(instance, text string) string {
		return `{"log":"` + text + `\n","stream":"stderr","attrs":{"app.icos.eu/instance":"` + instance +
			`","app.icos.eu/component":"web"},"time":"` + at.Format(time.RFC3339Nano) + `"}`
	}
	var found []logs.Entry
	n := 0
	w.eventually(t, "the line is read", func() bool {
		if n++; n%20 == 1 { // a file that is there when the collector begins is read from its end
			add(line("i-1", "hello"))
			add(line("i-2", "of another"))
		}
		var err error
		found, err = store.Read(t.Context(), logs.Query{Application: "i-1", From: at.Add(-time.Minute), Limit: 10})
		return err == nil && len(found) > 0
	})
	for _, one := range found {
		require.Equal(t, logs.Entry{At: at, Application: "i-1", Component: "web", Container: id, Stream: "stderr", Line: "hello"}, one)
	}
}
