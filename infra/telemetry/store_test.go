package main

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/prometheus/prometheustest"
	"github.com/littoral-project/littoral/shared/loopback"
)

// TestTheSiteIsAskedWhileTheUplinkIsAway: a component of the site asks its Prometheus, which has what the uplink does not get, and says
// whose it is.
func TestTheSiteIsAskedWhileTheUplinkIsAway(t *testing.T) {
	t.Parallel()
	engine := prometheustest.New(t)
	mux := http.NewServeMux()
	mux.Handle("/", engine.Handler())
	mux.Handle("POST /api/v1/otlp/v1/metrics", engine.OTLPHandler())
	free, err := loopback.Free(t.Context())
	require.NoError(t, err)
	w := newPipelineWith(t, func(s *Site) { s.Store, s.Retention, s.StoreMiB = free.String(), "6h", 100 })
	ask := func(query string) []series {
		resp, err := http.Get("http://" + w.site.Store + "/api/v1/query?query=" + url.QueryEscape(query))
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		var answer struct{ Data struct{ Result []series } }
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&answer))
		return answer.Data.Result
	}
	token := w.token(t)
	// Without it the uplink goes on.
	require.Equal(t, http.StatusOK, w.send(t, token, gauge("step", 0, time.Now())))
	w.eventually(t, "the uplink has it", func() bool { return len(w.query(t, "step")) == 1 })

	listener, err := net.Listen("tcp", w.site.Store)
	require.NoError(t, err)
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}}
	server.Start()
	t.Cleanup(server.Close)
	w.uplink.set(true)
	require.Equal(t, http.StatusOK, w.send(t, token, gauge("step", 1, time.Now(), "icos_agent_id", "someone-else")))
	require.Equal(t, http.StatusOK, w.send(t, token, gauge("go_goroutines", 7, time.Now())))
	w.eventually(t, "the site has it", func() bool { return len(ask("step == 1")) == 1 && len(ask("go_goroutines")) == 1 })
	require.Equal(t, "agent-ocm-1", ask("step")[0].Metric["icos_agent_id"])
	require.Equal(t, []float64{0}, w.arrived(), "the uplink has not")
	w.uplink.set(false)
	w.eventually(t, "the uplink gets it later", func() bool { return len(w.query(t, "step == 1")) == 1 })
	require.Empty(t, w.query(t, "go_goroutines"))
}

// TestPrometheusTakesItsConfiguration: as Prometheus reads it, and its arguments as its program does, where that is built.
func TestPrometheusTakesItsConfiguration(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{Cluster, Docker, Host} {
		s := site(kind)
		s.Store, s.Retention, s.StoreMiB = "127.0.0.1:9090", "6h", 100
		files := write(t, s)
		path := files[len(files)-1]
		require.Equal(t, "prometheus.yaml", filepath.Base(path))
		c, err := config.LoadFile(path, false, promslog.NewNopLogger())
		require.NoError(t, err)
		require.Equal(t, 10*time.Minute, time.Duration(c.StorageConfig.TSDBConfig.OutOfOrderTimeWindow)*time.Millisecond)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Contains(t, string(text), strings.Join(s.StoreArguments(), " "))
	}
	tools := os.Getenv("LITTORAL_TELEMETRY_TOOLS")
	if tools == "" {
		t.Skip("its program is not built: make e2e-telemetry")
	}
	s := site(Host)
	free, err := loopback.Free(t.Context())
	require.NoError(t, err)
	s.Store, s.Retention, s.StoreMiB = free.String(), "6h", 100
	files := write(t, s)
	command := exec.CommandContext(t.Context(), filepath.Join(tools, "prometheus"), append(s.StoreArguments(),
		"--config.file="+files[len(files)-1], "--storage.tsdb.path="+t.TempDir())...)
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // it was killed
	})
	require.Eventually(t, func() bool {
		resp, err := http.Get("http://" + s.Store + "/-/ready")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, time.Minute, 50*time.Millisecond)
}
