package main

import (
	"fmt"
	"math/rand/v2"
	"net"
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

	"github.com/littoral-project/littoral/infra/runner/issuer"
	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/infra/runner/prometheus/prometheustest"
)

// outage is how long the uplink is away in TestAnOutage, such as 1h. It takes minutes, so nobody has it by default.
const outage = "LITTORAL_OUTAGE"

const outageSeries = 1000 // each has a value a second

// TestAnOutage cuts a real cable: the gateway is in a network namespace of its own with one to the site and one to the controller, and
// the latter goes down. The time of the outage is that of the samples, which are sent as fast as they are taken. It needs root and
// prints what waited on disk: LITTORAL_OUTAGE=1h go test -v -run TestAnOutage ./infra/telemetry.
func TestAnOutage(t *testing.T) {
	binary := collector(t)
	length, err := time.ParseDuration(os.Getenv(outage))
	if err != nil {
		t.Skip("no outage is asked for: " + outage + "=1h")
	}
	must := func(command ...string) {
		t.Helper()
		out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
		require.NoError(t, err, "%s: %s", strings.Join(command, " "), out)
	}
	space := fmt.Sprintf("ltg%d", os.Getpid())
	must("ip", "netns", "add", space)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", space).Run() })
	for i, name := range []string{"site", "wan"} { // 10.78.0 and 10.78.1, ours is .1, the gateway's .2
		ours := fmt.Sprintf("lt%s%d", name, os.Getpid()%10000)
		must("ip", "link", "add", ours, "type", "veth", "peer", "name", name, "netns", space)
		must("ip", "addr", "add", fmt.Sprintf("10.78.%d.1/24", i), "dev", ours)
		must("ip", "link", "set", ours, "up")
		must("ip", "-n", space, "addr", "add", fmt.Sprintf("10.78.%d.2/24", i), "dev", name)
		must("ip", "-n", space, "link", "set", name, "up")
	}
	must("ip", "-n", space, "link", "set", "lo", "up")

	// The controller: its Prometheus behind the cable that is cut; the issuer of the site stays.
	engine := prometheustest.With(t, prometheus.Options{Retention: 24 * time.Hour, Disorder: length + time.Hour})
	u := &uplink{Server: engine}
	serve := func(address string, h http.Handler) string {
		listener, err := net.Listen("tcp", address)
		require.NoError(t, err)
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}}
		server.Start()
		t.Cleanup(server.Close)
		return "http://" + listener.Addr().String()
	}
	u.URL = serve("10.78.1.1:0", u)
	var people http.Handler
	at := serve("10.78.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { people.ServeHTTP(w, r) }))
	of, err := issuer.New(issuer.Options{URL: at + "/oidc", Dir: t.TempDir(), Audience: "telemetry", Clients: []issuer.Client{{ID: sender}}})
	require.NoError(t, err)
	people = of.Handler()

	s := site(Host)
	s.Issuer, s.Metrics, s.Logs, s.TokenFile, s.Tetragon, s.Queue = at+"/oidc", u.URL+"/api/v1/otlp/v1/metrics", "", "", "", t.TempDir()
	s.GRPC, s.HTTP, s.Health = "10.78.0.2:4317", "10.78.0.2:4318", "10.78.0.2:13133"
	g := &gateway{site: s, config: write(t, s)[0], binary: "ip", before: []string{"netns", "exec", space, binary}}
	g.log, err = os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	g.start(t)
	t.Cleanup(func() {
		g.end(os.Interrupt)
		if t.Failed() {
			text, _ := os.ReadFile(g.log.Name())
			var errors []string
			for line := range strings.Lines(string(text)) {
				if strings.Contains(line, "\t") && !strings.Contains(line, "scrape") && !strings.Contains(line, "\tinfo\t") {
					errors = append(errors, line[:min(len(line), 600)])
				}
			}
			t.Logf("%d arrived; gateway:\n%s", len(u.arrived()), strings.Join(errors[max(0, len(errors)-5):], ""))
		}
	})
	w := &pipeline{gateway: g, uplink: u, issuer: of}
	token := w.token(t)

	random := rand.New(rand.NewPCG(3, 4))
	begin := time.Now().Add(-length - 2*time.Minute).Truncate(time.Second)
	second := func(i int) {
		all := pmetric.NewMetrics()
		to := all.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
		for m := range 20 {
			one := to.AppendEmpty()
			one.SetName(fmt.Sprintf("site_metric_%d", m))
			points := one.SetEmptyGauge().DataPoints()
			for s := range outageSeries / 20 {
				p := points.AppendEmpty()
				p.SetDoubleValue(100 * random.NormFloat64())
				p.SetTimestamp(pcommon.NewTimestampFromTime(begin.Add(time.Duration(i) * time.Second)))
				p.Attributes().PutStr("icos_host_id", "57e17cac94714bf6976f1e071d64d586")
				p.Attributes().PutStr("icos_host_name", "93111014:edge-node-1")
				p.Attributes().PutStr("device", strconv.Itoa(m)+"."+strconv.Itoa(s))
			}
		}
		step := to.AppendEmpty()
		step.SetName("step")
		p := step.SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetDoubleValue(float64(i))
		p.SetTimestamp(pcommon.NewTimestampFromTime(begin.Add(time.Duration(i) * time.Second)))
		body, err := pmetricotlp.NewExportRequestFromMetrics(all).MarshalProto()
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, w.post(t, token, body), "second %d", i)
	}
	const calm = 30
	for i := range calm {
		second(i)
	}
	require.Eventually(t, func() bool { return len(u.arrived()) >= calm }, time.Minute, 50*time.Millisecond)
	must("ip", "-n", space, "link", "set", "wan", "down")
	seconds := int(length.Seconds())
	for i := range seconds {
		second(calm + i)
	}
	require.Len(t, u.arrived(), calm, "nothing passes")
	waiting := size(t, s.Queue)
	must("ip", "-n", space, "link", "set", "wan", "up")
	healed := time.Now()
	require.Eventually(t, func() bool { return len(u.arrived()) >= calm+seconds }, 5*time.Minute, 200*time.Millisecond, "all arrive")
	took := time.Since(healed)
	next := 0.0
	for _, v := range u.arrived() {
		if v != next-1 { // what was on its way when the cable was cut may come twice
			require.InDelta(t, next, v, 0, "in order")
			next++
		}
	}
	total := u.query(t, fmt.Sprintf(`sum(count_over_time({__name__="site_metric_7"}[%ds]))`, seconds+600))
	require.Len(t, total, 1)
	require.Equal(t, strconv.Itoa((calm+seconds)*outageSeries/20), total[0].Value[1])
	t.Logf("%s without uplink, %d series a second: %.0f MB waited on disk, delivered in %s, nothing lost, in order", length, outageSeries, float64(waiting)/1e6, took.Round(time.Second))
}
