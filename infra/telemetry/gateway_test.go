package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/littoral-project/littoral/infra/runner/issuer"
	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/infra/runner/prometheus/prometheustest"
	"github.com/littoral-project/littoral/shared/loopback"
)

// collectorPath is the collector that "make e2e-collector" builds.
const collectorPath = "LITTORAL_COLLECTOR"

func collector(t testing.TB) string {
	t.Helper()
	path := os.Getenv(collectorPath)
	if path == "" {
		t.Skip("the collector is not built: make e2e-collector")
	}
	return path
}

func site(kind string) Site {
	return Site{
		Kind: kind, Agent: "agent-ocm-1", Controller: "controller-1", Issuer: "https://id.example/realms/icos", Audience: "telemetry",
		NodesIssuer: "https://kubernetes.default.svc.cluster.local",
		Metrics:     "https://controller.example/api/v1/otlp/v1/metrics", Logs: "https://controller.example/insert/opentelemetry/v1/logs",
		TokenFile: "/etc/littoral/token", Queue: "/var/lib/littoral-collector", QueueMiB: 200, GRPC: "0.0.0.0:4317", HTTP: "0.0.0.0:4318",
		Health: "127.0.0.1:13133", Own: "127.0.0.1:8888", Gateway: "http://gateway:4318", Tetragon: "/var/log/tetragon/tetragon.log",
		Containers: "/var/lib/docker/containers", ServiceAccount: "/var/run/secrets/kubernetes.io/serviceaccount",
	}
}

// write writes the files of a site and returns the path of the first.
func write(t testing.TB, s Site) (paths []string) {
	t.Helper()
	files, err := s.Files()
	require.NoError(t, err)
	dir := t.TempDir()
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		require.NoError(t, os.WriteFile(path, []byte(f.Text), 0o600))
		paths = append(paths, path)
	}
	return paths
}

func TestTheCollectorTakesEveryConfiguration(t *testing.T) {
	t.Parallel()
	binary := collector(t)
	for _, kind := range []string{Cluster, Docker, Host} {
		for name, change := range map[string]func(*Site){
			"everything": func(*Site) {},
			"the least":  func(s *Site) { s.Logs, s.TokenFile, s.Tetragon = "", "", "" },
			"no events":  func(s *Site) { s.Tetragon = "" },
			"other clusters' ways": func(s *Site) {
				s.NodesIssuer, s.KubeletSelfSigned = "https://oidc.example/id/1", true
				if s.Kind == Cluster {
					s.Issuer = "" // only its nodes send
				}
			},
			"a store": func(s *Site) { s.Store, s.Retention, s.StoreMiB = "127.0.0.1:9090", "6h", 512 },
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				s := site(kind)
				s.Queue = t.TempDir()
				s.TokenFile = filepath.Join(t.TempDir(), "token")
				require.NoError(t, os.WriteFile(s.TokenFile, []byte("secret"), 0o600))
				s.ServiceAccount = t.TempDir()
				require.NoError(t, os.WriteFile(filepath.Join(s.ServiceAccount, "token"), []byte("secret"), 0o600))
				require.NoError(t, os.WriteFile(filepath.Join(s.ServiceAccount, "ca.crt"), authority(t), 0o600))
				change(&s)
				for _, path := range write(t, s) {
					if filepath.Base(path) == "prometheus.yaml" {
						continue // not for a collector
					}
					command := exec.Command(binary, "validate", "--config", path)
					command.Env = append(os.Environ(), "NODE_NAME=edge-1")
					out, err := command.CombinedOutput()
					require.NoError(t, err, "%s: %s", filepath.Base(path), out)
				}
			})
		}
	}
}

// authority is a certificate.
func authority(t testing.TB) []byte {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func TestFaultsOfASiteAreNamed(t *testing.T) {
	t.Parallel()
	s := site("moon")
	s.Agent, s.Issuer, s.GRPC, s.QueueMiB = `a"b`, "id.example", "4317", 0
	s.NodesIssuer, s.Store, s.Retention, s.StoreMiB = "cluster.local", "9090", "long", 0
	_, err := Site{IssuerKeys: "keys.json"}.Files()
	require.ErrorContains(t, err, "-issuer-keys: there is no -issuer")
	_, err = s.Files()
	for _, part := range []string{
		`-store: "9090"`, `-store-retention: "long"`, `-store-mib: 0`, `-kind: "moon"`, `-agent-id: "a\"b"`, `-issuer: "id.example"`, `-nodes-issuer: "cluster.local"`, `-grpc: "4317"`, `-queue-mib: 0`,
	} {
		require.ErrorContains(t, err, part)
	}
	var out bytes.Buffer
	require.NoError(t, run([]string{"-kind=host", "-agent-id=a", "-controller-id=c", "-issuer=http://i", "-metrics=http://m"}, &out, io.Discard))
	require.Contains(t, out.String(), "# gateway.yaml")
}

// uplink is the way to the controller's Prometheus, which can be cut. It notes in which order values arrived.
type uplink struct {
	*prometheus.Server
	URL string

	mu       sync.Mutex
	cut      bool
	refused  int
	arrivals []float64 // of the metric "step", in the order in which they came
	entries  []map[string]string
	bytes    int
}

func newUplink(t testing.TB) *uplink {
	t.Helper()
	u := &uplink{Server: prometheustest.New(t)}
	server := httptest.NewServer(u)
	t.Cleanup(server.Close)
	u.URL = server.URL
	return u
}

func (u *uplink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.cut {
		u.refused++
		panic(http.ErrAbortHandler) // no answer, as of a broken cable
	}
	u.bytes += len(body)
	plain := body
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err == nil {
			plain, _ = io.ReadAll(z)
		}
	}
	if strings.HasSuffix(r.URL.Path, "/logs") {
		u.note(plain)
		return
	}
	request := pmetricotlp.NewExportRequest()
	if request.UnmarshalProto(plain) == nil {
		each(request.Metrics(), func(m pmetric.Metric) {
			if m.Name() == "step" {
				for _, p := range m.Gauge().DataPoints().All() {
					u.arrivals = append(u.arrivals, p.DoubleValue())
				}
			}
		})
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	u.OTLPHandler().ServeHTTP(w, r)
}

// note keeps entries of logs: the fields of their source, and the line.
func (u *uplink) note(body []byte) {
	request := plogotlp.NewExportRequest()
	if request.UnmarshalProto(body) != nil {
		return
	}
	for _, resource := range request.Logs().ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, one := range scope.LogRecords().All() {
				fields := map[string]string{"line": one.Body().AsString(), "at": one.Timestamp().AsTime().Format(time.RFC3339Nano)}
				for _, from := range []pcommon.Map{resource.Resource().Attributes(), one.Attributes()} {
					for name, value := range from.All() {
						fields[name] = value.AsString()
					}
				}
				u.entries = append(u.entries, fields)
			}
		}
	}
}

func (u *uplink) set(cut bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.cut = cut
}

func (u *uplink) arrived() []float64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]float64(nil), u.arrivals...)
}

func each(of pmetric.Metrics, do func(pmetric.Metric)) {
	for _, resource := range of.ResourceMetrics().All() {
		for _, scope := range resource.ScopeMetrics().All() {
			for _, m := range scope.Metrics().All() {
				do(m)
			}
		}
	}
}

type series struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
	Values [][2]any          `json:"values"`
}

func (u *uplink) query(t testing.TB, query string) []series {
	t.Helper()
	w := httptest.NewRecorder()
	u.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/query?query="+url.QueryEscape(query), nil))
	var answer struct{ Data struct{ Result []series } }
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer), w.Body.String())
	return answer.Data.Result
}

// gateway is a running collector.
type gateway struct {
	site    Site
	config  string
	binary  string
	before  []string // arguments before those of the collector
	env     []string // beside that of the test
	command *exec.Cmd
	log     *os.File
}

func (g *gateway) start(t testing.TB) {
	t.Helper()
	g.command = exec.Command(g.binary, append(g.before, "--config", g.config)...)
	g.command.Stdout, g.command.Stderr = g.log, g.log
	g.command.Env = append(os.Environ(), g.env...)
	require.NoError(t, g.command.Start())
	require.Eventually(t, func() bool {
		resp, err := http.Get("http://" + g.site.Health)
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, time.Minute, 50*time.Millisecond, "the gateway starts")
}

// end stops the collector, or kills it.
func (g *gateway) end(sig os.Signal) {
	_ = g.command.Process.Signal(sig)
	_ = g.command.Wait()
}

type pipeline struct {
	*gateway
	*uplink
	issuer *issuer.Issuer
}

const sender = "leaf"

// Senders whose tokens say which of the site they are.
var (
	application = issuer.Client{ID: "shop", Claims: map[string]string{"icos_app_instance": "i-1", "icos_app_name": "shop"}}
	machine     = issuer.Client{ID: "edge-1", Claims: map[string]string{"icos_host_id": "h-1"}}
)

func newPipeline(t testing.TB) *pipeline { return newPipelineWith(t, func(*Site) {}) }

// newPipelineWith changes the site before its gateway starts, which has env beside the environment of the test.
func newPipelineWith(t testing.TB, change func(*Site), env ...string) *pipeline {
	t.Helper()
	binary := collector(t)
	w := &pipeline{uplink: newUplink(t)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := "http://" + listener.Addr().String() + "/oidc"
	w.issuer, err = issuer.New(issuer.Options{
		URL: address, Dir: t.TempDir(), Audience: "telemetry", Clients: []issuer.Client{{ID: sender}, application, machine},
	})
	require.NoError(t, err)
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: w.issuer.Handler(), ReadHeaderTimeout: time.Second}}
	server.Start()
	t.Cleanup(server.Close)

	s := site(Docker)
	s.Issuer, s.Metrics, s.Logs, s.TokenFile, s.Queue = address, w.URL+"/api/v1/otlp/v1/metrics", w.URL+"/v1/logs", "", t.TempDir()
	s.Containers, s.Tetragon = t.TempDir(), filepath.Join(t.TempDir(), "tetragon.log")
	s.Cluster = "cluster-1"
	for _, a := range []*string{&s.GRPC, &s.HTTP, &s.Health, &s.Own} {
		free, err := loopback.Free(t.Context())
		require.NoError(t, err)
		*a = free.String()
	}
	change(&s)
	w.gateway = &gateway{site: s, config: write(t, s)[0], binary: binary, env: env}
	w.log, err = os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	t.Cleanup(func() {
		w.end(syscall.SIGTERM)
		if t.Failed() {
			text, _ := os.ReadFile(w.log.Name())
			t.Logf("gateway:\n%s", text[max(0, len(text)-4000):])
		}
		_ = w.log.Close()
	})
	w.start(t)
	return w
}

func (w *pipeline) token(t testing.TB) string {
	t.Helper()
	return tokenOf(t, w.issuer, sender)
}

func tokenOf(t testing.TB, of *issuer.Issuer, client string) string {
	t.Helper()
	token, _, err := of.Token(t.Context(), client)
	require.NoError(t, err)
	return token
}

// gauge is one value of a metric.
func gauge(name string, value float64, at time.Time, labels ...string) pmetric.Metrics {
	all := pmetric.NewMetrics()
	m := all.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(name)
	p := m.SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetDoubleValue(value)
	p.SetTimestamp(pcommon.NewTimestampFromTime(at))
	for i := 0; i < len(labels); i += 2 {
		p.Attributes().PutStr(labels[i], labels[i+1])
	}
	return all
}

// send pushes by HTTP and returns the status.
func (w *pipeline) send(t testing.TB, token string, m pmetric.Metrics) int {
	t.Helper()
	body, err := pmetricotlp.NewExportRequestFromMetrics(m).MarshalProto()
	require.NoError(t, err)
	return w.post(t, token, body)
}

func (w *pipeline) post(t testing.TB, token string, body []byte) int {
	t.Helper()
	return w.postTo(t, "/v1/metrics", token, body)
}

func (w *pipeline) postTo(t testing.TB, path, token string, body []byte) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+w.site.HTTP+path, bytes.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-protobuf")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	_ = resp.Body.Close()
	return resp.StatusCode
}

// push sends by gRPC.
func (w *pipeline) push(t testing.TB, token string, m pmetric.Metrics) error {
	t.Helper()
	connection, err := grpc.NewClient(w.site.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { _ = connection.Close() }()
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token), 30*time.Second)
	defer cancel()
	_, err = pmetricotlp.NewGRPCClient(connection).Export(ctx, pmetricotlp.NewExportRequestFromMetrics(m))
	return err
}

func (w *pipeline) eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, time.Minute, 50*time.Millisecond, what)
}

// TestNothingIsLostWhileTheUplinkIsAway: not when the gateway is killed meanwhile either; and what waited comes in order.
func TestNothingIsLostWhileTheUplinkIsAway(t *testing.T) {
	t.Parallel()
	w := newPipeline(t)
	token := w.token(t)
	start := time.Now().Add(-time.Minute).Truncate(time.Second)
	const steps = 60
	send := func(from, to int) {
		for i := from; i < to; i++ {
			m := gauge("step", float64(i), start.Add(time.Duration(i)*time.Second), "icos_host_id", "h1")
			require.Equal(t, http.StatusOK, w.send(t, token, m))
		}
	}
	send(0, 20)
	w.eventually(t, "the first arrive", func() bool { return len(w.arrived()) >= 20 })
	w.uplink.set(true)
	send(20, 35)
	w.eventually(t, "the cut is noticed", func() bool {
		w.uplink.mu.Lock()
		defer w.uplink.mu.Unlock()
		return w.refused > 0
	})
	w.end(syscall.SIGKILL)
	w.start(t)
	send(35, steps)
	require.Len(t, w.arrived(), 20)
	w.uplink.set(false)
	w.eventually(t, "all arrive", func() bool {
		seen := map[float64]bool{}
		for _, v := range w.arrived() {
			seen[v] = true
		}
		return len(seen) == steps
	})
	// The one that was on its way when the gateway was killed may come twice, and late; all others come in order.
	order := w.arrived()
	wrong := 0
	for i := 1; i < len(order); i++ {
		if order[i] < order[i-1] {
			wrong++
		}
	}
	require.LessOrEqual(t, wrong, 1, "%v", order)
	stored := w.query(t, `step{icos_host_id="h1"}[5m]`)
	require.Len(t, stored, 1)
	require.Len(t, stored[0].Values, steps)
	for i, v := range stored[0].Values {
		require.Equal(t, fmt.Sprint(i), v[1])
	}
}

// TestWhatDoesNotFitIsRefused: the sender hears of it and may try again; what was accepted arrives.
func TestWhatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	w := newPipelineWith(t, func(s *Site) { s.QueueMiB = 1 })
	token := w.token(t)
	w.uplink.set(true)
	r := rand.New(rand.NewPCG(1, 2))
	start := time.Now().Add(-time.Minute)
	accepted := 0
	for ; accepted < 1000; accepted++ {
		at := start.Add(time.Duration(accepted) * 10 * time.Millisecond)
		m := gauge("step", float64(accepted), at, "icos_host_id", "h1")
		to := m.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
		to.SetName("noise")
		points := to.SetEmptyGauge().DataPoints()
		for range 500 { // that can hardly be compressed
			p := points.AppendEmpty()
			p.SetDoubleValue(r.NormFloat64())
			p.SetTimestamp(pcommon.NewTimestampFromTime(at))
			p.Attributes().PutStr("n", strconv.FormatUint(r.Uint64(), 36))
		}
		if w.send(t, token, m) != http.StatusOK {
			break
		}
	}
	require.Less(t, accepted, 1000, "it is full some time")
	require.Greater(t, accepted, 5)
	w.uplink.set(false)
	w.eventually(t, "all that was accepted arrives", func() bool { return len(w.query(t, fmt.Sprintf(`step == %d`, accepted-1))) == 1 })
	require.Len(t, w.query(t, `step[5m]`)[0].Values, accepted)
	w.eventually(t, "it takes more again", func() bool {
		return w.send(t, token, gauge("after", 1, time.Now())) == http.StatusOK
	})
}

func TestASenderCannotSayWhoseASeriesIs(t *testing.T) {
	t.Parallel()
	w := newPipeline(t)
	token := w.token(t)
	now := time.Now()
	for i, forged := range []string{
		"icos_agent_id", "icos.agent.id", "icos.agent_id", "icos__agent__id", "icos agent id", "icos-agent-id", "icos é agent_id",
	} {
		m := gauge("forged", float64(i), now, forged, "someone-else", "icos_controller_id", "other", "icos.cluster.id", "other", "icos_host_id", fmt.Sprint("h", i))
		m.ResourceMetrics().At(0).Resource().Attributes().PutStr(forged, "someone-else")
		require.Equal(t, http.StatusOK, w.send(t, token, m))
	}
	for i, name := range []string{"tlum_orch_info", "tlum.orch.info"} {
		require.Equal(t, http.StatusOK, w.send(t, token, gauge(name, 1, now, "agent_id", "someone-else", "agent.id", "x", "icos_host_id", fmt.Sprint("o", i))))
	}
	unit := gauge("tlum_orch", 1, now, "agent_id", "someone-else", "icos_host_id", "o9")
	unit.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetUnit("info")
	require.Equal(t, http.StatusOK, w.send(t, token, unit))
	last := gauge("last", 1, now)
	require.Equal(t, http.StatusOK, w.send(t, token, last))
	w.eventually(t, "all arrive", func() bool { return len(w.query(t, "last")) == 1 })
	forged := w.query(t, "forged")
	require.Len(t, forged, 7)
	for _, s := range forged {
		require.Equal(t, "agent-ocm-1", s.Metric["icos_agent_id"], "%v", s.Metric)
		require.Equal(t, "controller-1", s.Metric["icos_controller_id"])
		require.Equal(t, "cluster-1", s.Metric["icos_cluster_id"])
		for _, value := range s.Metric {
			require.NotContains(t, value, "someone-else")
		}
	}
	orch := w.query(t, "tlum_orch_info")
	require.Len(t, orch, 2, "%v", orch)
	for _, s := range orch {
		require.Equal(t, "agent-ocm-1", s.Metric["agent_id"])
	}
}

// TestATokenSaysWhichOfTheSiteASenderIs: what it says otherwise is taken away, and an application tells nothing in the name of nodes.
func TestATokenSaysWhichOfTheSiteASenderIs(t *testing.T) {
	t.Parallel()
	w := newPipeline(t)
	shop, host, all := tokenOf(t, w.issuer, application.ID), tokenOf(t, w.issuer, machine.ID), w.token(t)
	now := time.Now()
	for i, forged := range []string{"icos_app_instance", "icos.app.instance", "icos__app-instance"} {
		m := gauge("orders", float64(i), now, forged, "i-2", "icos_app_component", "web", "n", fmt.Sprint(i))
		m.ResourceMetrics().At(0).Resource().Attributes().PutStr(forged, "i-2")
		require.Equal(t, http.StatusOK, w.send(t, shop, m))
	}
	require.NoError(t, w.push(t, shop, gauge("orders", 3, now, "icos_app_instance", "i-2", "n", "3")))
	for _, name := range []string{"node_mounted", "node.mounted", "tlum_host_info", "SCA_score", "kube_node_info", "_node_mounted", "node"} {
		require.Equal(t, http.StatusOK, w.send(t, shop, gauge(name, -1, now, "icos_host_id", "h-1")), name)
	}
	for name, unit := range map[string]string{"node": "mounted", "": "node_mounted"} {
		m := gauge(name, -1, now, "icos_host_id", "h-1")
		m.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetUnit(unit)
		w.send(t, shop, m)
	}
	require.Equal(t, http.StatusOK, w.send(t, host, gauge("node_mounted", 1, now, "icos_host_id", "h-2", "icos.host.id", "h-3")))
	require.Equal(t, http.StatusOK, w.send(t, all, gauge("node_mounted", 0, now, "icos_host_id", "h-4"))) // it may speak for all
	entries := plog.NewLogs()
	resource := entries.ResourceLogs().AppendEmpty()
	one := resource.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	one.Body().SetStr("sold")
	for _, name := range []string{"icos_app_instance", "icos.app.instance", "app.icos.eu/instance"} {
		resource.Resource().Attributes().PutStr(name, "i-2")
		one.Attributes().PutStr(name, "i-2")
	}
	body, err := plogotlp.NewExportRequestFromLogs(entries).MarshalProto()
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, w.postTo(t, "/v1/logs", shop, body))
	require.Equal(t, http.StatusOK, w.send(t, all, gauge("last", 1, now)))

	w.eventually(t, "all arrive", func() bool { return len(w.query(t, "last")) == 1 })
	orders := w.query(t, "orders")
	require.Len(t, orders, 4)
	for _, s := range orders {
		require.Equal(t, "i-1", s.Metric["icos_app_instance"], "%v", s.Metric)
		require.Equal(t, "shop", s.Metric["icos_app_name"])
		for _, value := range s.Metric {
			require.NotContains(t, value, "i-2")
		}
	}
	mounted := map[string]any{}
	for _, s := range w.query(t, `{__name__=~".*node.*|tlum.*|SCA.*|kube.*"}`) {
		mounted[s.Metric["icos_host_id"]] = s.Value[1]
	}
	require.Equal(t, map[string]any{"h-1": "1", "h-4": "0"}, mounted)
	w.eventually(t, "the line arrives", func() bool {
		w.uplink.mu.Lock()
		defer w.uplink.mu.Unlock()
		return len(w.entries) == 1
	})
	require.Equal(t, "i-1", w.entries[0]["icos_app_instance"])
	require.NotContains(t, w.entries[0], "icos.app.instance")
}

// TestNodesOfAClusterSendWithItsOwnTokens: of a cluster's service accounts, only the collector's.
func TestNodesOfAClusterSendWithItsOwnTokens(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	const other = "system:serviceaccount:shop:default"
	cluster, err := issuer.New(issuer.Options{
		URL: "http://" + listener.Addr().String(), Dir: t.TempDir(), Audience: "telemetry", Clients: []issuer.Client{{ID: nodeSubject}, {ID: other}},
	})
	require.NoError(t, err)
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: cluster.Handler(), ReadHeaderTimeout: time.Second}}
	server.Start()
	t.Cleanup(server.Close)
	w := newPipelineWith(t, func(s *Site) { s.Kind, s.NodesIssuer = Cluster, "http://"+listener.Addr().String() })
	now := time.Now()
	for metric, token := range map[string]string{
		"of_a_node": tokenOf(t, cluster, nodeSubject), "of_a_pod": tokenOf(t, cluster, other), "of_the_site": w.token(t),
	} {
		require.Equal(t, http.StatusOK, w.send(t, token, gauge(metric, 1, now)))
	}
	require.Equal(t, http.StatusOK, w.send(t, w.token(t), gauge("last", 1, now)))
	w.eventually(t, "all arrive", func() bool { return len(w.query(t, "last")) == 1 })
	require.Len(t, w.query(t, `{__name__=~"of_.*"}`), 2)
	require.Empty(t, w.query(t, "of_a_pod"))
}

// TestAGatewayStartsWithoutItsIssuer that has the keys in a file: where the issuer is beyond the uplink, an outage keeps no gateway away.
func TestAGatewayStartsWithoutItsIssuer(t *testing.T) {
	t.Parallel()
	nowhere, err := loopback.Free(t.Context())
	require.NoError(t, err)
	at := "http://" + nowhere.String() + "/oidc"
	of := func() *issuer.Issuer {
		i, err := issuer.New(issuer.Options{URL: at, Dir: t.TempDir(), Audience: "telemetry", Clients: []issuer.Client{{ID: sender}}})
		require.NoError(t, err)
		return i
	}
	away, other := of(), of()
	file := filepath.Join(t.TempDir(), "keys.json")
	keep := func(i *issuer.Issuer) {
		keys := httptest.NewRecorder()
		i.Handler().ServeHTTP(keys, httptest.NewRequest(http.MethodGet, at+"/keys", nil))
		require.Equal(t, http.StatusOK, keys.Code)
		require.NoError(t, os.WriteFile(file, keys.Body.Bytes(), 0o600))
	}
	keep(away)
	w := newPipelineWith(t, func(s *Site) { s.Issuer, s.IssuerKeys = at, file })
	require.Equal(t, http.StatusOK, w.send(t, tokenOf(t, away, sender), gauge("accepted", 1, time.Now())))
	require.Equal(t, http.StatusUnauthorized, w.send(t, tokenOf(t, other, sender), gauge("refused", 1, time.Now())))
	w.eventually(t, "it arrives", func() bool { return len(w.query(t, "accepted")) == 1 })
	keep(other)
	w.eventually(t, "the new keys are read", func() bool {
		return w.send(t, tokenOf(t, other, sender), gauge("other", 1, time.Now())) == http.StatusOK
	})
}

func TestOnlyThoseWithATokenSend(t *testing.T) {
	t.Parallel()
	w := newPipeline(t)
	token := w.token(t)
	other, err := issuer.New(issuer.Options{URL: w.site.Issuer, Dir: t.TempDir(), Audience: "telemetry", Clients: []issuer.Client{{ID: sender}}})
	require.NoError(t, err)
	forged, _, err := other.Token(t.Context(), sender)
	require.NoError(t, err)
	expired, err := issuer.New(issuer.Options{
		URL: w.site.Issuer, Dir: t.TempDir(), Audience: "telemetry", Clients: []issuer.Client{{ID: sender}},
		Now: func() time.Time { return time.Now().Add(-48 * time.Hour) },
	})
	require.NoError(t, err)
	old, _, err := expired.Token(t.Context(), sender)
	require.NoError(t, err)
	for name, bad := range map[string]string{"none": "", "nonsense": "nonsense", "another key": forged, "expired": old, "altered": token[:len(token)-4] + "AAAA"} {
		require.Equal(t, http.StatusUnauthorized, w.send(t, bad, gauge("refused", 1, time.Now())), name)
	}

	require.ErrorContains(t, w.push(t, forged, gauge("refused", 1, time.Now())), "Unauthenticated")
	require.NoError(t, w.push(t, token, gauge("accepted", 1, time.Now())))
	w.eventually(t, "it arrives", func() bool { return len(w.query(t, "accepted")) == 1 })
	require.Empty(t, w.query(t, "refused"))
}

// TestWhatTheControllerDoesNotNeedStays: of what node exporters tell, only what somebody reads goes over the uplink.
func TestWhatTheControllerDoesNotNeedStays(t *testing.T) {
	t.Parallel()
	w := newPipeline(t)
	token := w.token(t)
	now := time.Now()
	for name, labels := range map[string][]string{
		"go_goroutines": nil, "node_netstat_Tcp_InSegs": nil, "node_memory_MemAvailable_bytes": nil, "ours": nil,
		"node_network_up": {"device", "veth12"},
	} {
		require.Equal(t, http.StatusOK, w.send(t, token, gauge(name, 1, now, labels...)))
	}
	require.Equal(t, http.StatusOK, w.send(t, token, gauge("last", 1, now)))
	w.eventually(t, "all arrive", func() bool { return len(w.query(t, "last")) == 1 })
	require.Len(t, w.query(t, `{__name__=~"ours|node_memory_MemAvailable_bytes"}`), 2)
	require.Empty(t, w.query(t, `{__name__=~"go_.*|node_netstat.*|node_network.*"}`))
	w.eventually(t, "how much waits is told", func() bool { return len(w.query(t, "otelcol_exporter_queue_size")) > 0 })
}

// TestLogsAreCollected: what containers write, and Tetragon's events, each with the application that it is of.
func TestLogsAreCollected(t *testing.T) {
	t.Parallel()
	w := newPipeline(t)
	id := strings.Repeat("0123456789abcdef", 4)
	require.NoError(t, os.Mkdir(filepath.Join(w.site.Containers, id), 0o755))
	file := filepath.Join(w.site.Containers, id, id+"-json.log")
	add := func(file, text string) {
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = f.WriteString(text + "\n")
		require.NoError(t, errors.Join(err, f.Close()))
	}
	add(file, "{}")
	add(w.site.Tetragon, "{}")
	found := func(line string) map[string]string {
		w.uplink.mu.Lock()
		defer w.uplink.mu.Unlock()
		for _, e := range w.entries {
			if strings.Contains(e["line"], line) {
				return e
			}
		}
		return nil
	}
	// A file that is there when the collector begins is read from its end; these lines come until one is seen.
	n := 0
	w.eventually(t, "lines arrive", func() bool {
		if n++; n%20 == 1 {
			add(file, `{"log":"hello\n","stream":"stderr","attrs":{"app.icos.eu/instance":"i-1","app.icos.eu/component":"web"},"time":"2026-11-26T10:00:00.123456789Z"}`)
			add(file, `{"log":"of nobody\n","stream":"stdout","time":"2026-11-26T10:00:01Z"}`)
			add(w.site.Tetragon, `{"process_kprobe":{"process":{"binary":"/bin/cat","pod":{"namespace":"shop","name":"web-0","container":{"name":"web"},`+
				`"pod_labels":{"app.icos.eu/instance":"i-1","app.icos.eu/component":"web"}}},"action":"KPROBE_ACTION_SIGKILL"},"node_name":"edge-1","time":"2026-11-26T10:00:00.5Z"}`)
			add(w.site.Tetragon, `{"process_exec":{"process":{"binary":"/bin/host"}},"time":"2026-11-26T10:00:00.5Z"}`)
		}
		return found("hello") != nil && found("of nobody") != nil && found("/bin/cat") != nil && found("/bin/host") != nil
	})
	for line, want := range map[string]map[string]string{
		"hello": {
			"icos_app_instance": "i-1", "icos_app_component": "web", "log_iostream": "stderr", "k8s_container_name": id,
			"at": "2026-11-26T10:00:00.123456789Z", "icos_agent_id": "agent-ocm-1",
		},
		"of nobody": {"icos_app_instance": "", "log_iostream": "stdout"},
		"/bin/cat": {
			"icos_app_instance": "i-1", "icos_app_component": "web", "k8s_pod_name": "web-0", "k8s_node_name": "edge-1", "k8s_container_name": "web",
			"at": "2026-11-26T10:00:00.5Z", "event": "",
		},
		"/bin/host": {"icos_app_instance": "", "icos_agent_id": "agent-ocm-1"},
	} {
		for field, value := range want {
			require.Equal(t, value, found(line)[field], "%s of %v", field, found(line))
		}
	}
}

// TestTheJournalIsCollected by a double of journalctl, which prints what a real one does: each line with who wrote it.
func TestTheJournalIsCollected(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	entry := func(message string, fields ...string) string {
		all := append([]string{
			`"__CURSOR":"s=1;i=1"`, `"__REALTIME_TIMESTAMP":"1764237600123456"`, `"__MONOTONIC_TIMESTAMP":"1"`, `"_BOOT_ID":"b"`,
			`"_TRANSPORT":"journal"`, `"_HOSTNAME":"edge-1"`, `"PRIORITY":"6"`,
		}, fields...)
		if message != "" {
			all = append(all, `"MESSAGE":`+message)
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	marks := []string{`"APP_ICOS_EU_INSTANCE":"i-1"`, `"APP_ICOS_EU_COMPONENT":"web"`}
	container := append([]string{`"_SYSTEMD_UNIT":"docker.service"`, `"CONTAINER_ID_FULL":"c0ffee"`, `"CONTAINER_NAME":"shop-web-1"`}, marks...)
	journal := strings.Join([]string{
		entry(`"started"`, `"_SYSTEMD_UNIT":"ssh.service"`, `"SYSLOG_IDENTIFIER":"sshd"`),
		entry(`"sold"`, container...),
		entry(`"failed"`, append(container, `"PRIORITY":"3"`)...),
		entry(`"pretended"`, append(marks, `"_SYSTEMD_UNIT":"other.service"`)...),
		entry(`[104,105,255]`, `"_SYSTEMD_UNIT":"bytes.service"`),
		entry("", `"_SYSTEMD_UNIT":"mute.service"`),
		entry(`"of the kernel"`, `"_TRANSPORT":"kernel"`),
	}, "\n")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "journal"), []byte(journal+"\n"), 0o600))
	script := fmt.Sprintf("#!/bin/sh\ncat '%s/journal'\nexec tail -f /dev/null\n", dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "journalctl"), []byte(script), 0o700))
	w := newPipelineWith(t, func(s *Site) { s.Kind, s.Tetragon = Host, "" }, "PATH="+dir+":"+os.Getenv("PATH"))
	found := map[string]map[string]string{}
	w.eventually(t, "lines arrive", func() bool {
		w.uplink.mu.Lock()
		defer w.uplink.mu.Unlock()
		for _, e := range w.entries {
			found[e["line"]] = e
		}
		return found["of the kernel"] != nil
	})
	require.Len(t, found, 6, "%v", found)
	for line, want := range map[string]map[string]string{
		"started": {"systemd_unit": "ssh.service", "k8s_node_name": "edge-1", "icos_app_instance": "", "icos_agent_id": "agent-ocm-1", "at": "2025-11-27T10:00:00.123456Z"},
		"sold": {
			"icos_app_instance": "i-1", "icos_app_component": "web", "k8s_container_name": "c0ffee", "log_iostream": "stdout", "k8s_node_name": "edge-1",
		},
		"failed":        {"icos_app_instance": "i-1", "log_iostream": "stderr"},
		"pretended":     {"icos_app_instance": "", "systemd_unit": "other.service", "k8s_container_name": "", "log_iostream": ""},
		"of the kernel": {"systemd_unit": "", "k8s_node_name": "edge-1"},
	} {
		for field, value := range want {
			require.Equal(t, value, found[line][field], "%s of %v", field, found[line])
		}
		require.NotContains(t, found[line], "entry")
	}
}
