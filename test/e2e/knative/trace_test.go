package knative_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/test/otlp"
)

// here returns this machine's address for pods.
func (w *world) here() string {
	w.t.Helper()
	pod := w.kubectl("get", "pods", "--field-selector", "status.phase=Running", "-o", "jsonpath={.items[0].status.podIP}")
	conn, err := net.Dial("udp", net.JoinHostPort(pod, "9")) // sends nothing
	require.NoError(w.t, err)
	defer func() { _ = conn.Close() }()
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	require.NoError(w.t, err)
	return host
}

// admit lets functions connect to an address of this machine during the test, if NetworkPolicies are enforced.
func (w *world) admit(t *testing.T, to net.Addr) {
	t.Helper()
	address, err := netip.ParseAddrPort(to.String())
	require.NoError(t, err)
	name := fmt.Sprintf("e2e-port-%d", address.Port())
	file := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: %s}
spec:
  podSelector: {matchExpressions: [{key: serving.knative.dev/service, operator: Exists}]}
  policyTypes: [Egress]
  egress:
    - to: [{ipBlock: {cidr: %s/%d}}]
      ports: [{protocol: TCP, port: %d}]
`, name, address.Addr(), address.Addr().BitLen(), address.Port()), 0o600))
	w.kubectl("apply", "-f", file)
	t.Cleanup(func() { w.kubectl("delete", "networkpolicy", name) })
}

// change changes a setting during the test.
func (w *world) change(setting, value string) {
	w.t.Helper()
	before := w.setting(setting)
	require.NoError(w.t, w.Set(setting, value))
	w.t.Cleanup(func() { require.NoError(w.t, w.Set(setting, before)) })
}

// TestOneTraceShowsTheWholeChain follows a trace from the caller's own span through pods, Broker and reactions to the
// rule of a policy. The functions push their spans and metrics although they are gone soon after.
func TestOneTraceShowsTheWholeChain(t *testing.T) {
	const caller = "00f067aa0ba902b7"
	w := newWorld(t)
	seen := &otlp.Collector{}
	l, err := net.Listen("tcp", net.JoinHostPort(w.here(), "0")) // for the time of the test
	require.NoError(t, err)
	collector := &httptest.Server{Listener: l, Config: &http.Server{Handler: seen}} // pods of the test's own cluster
	collector.Start()
	t.Cleanup(collector.Close)

	w.admit(t, l.Addr())

	const everything, metrics = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
	w.change(everything, collector.URL)
	if w.setting(metrics) != "" { // metrics go elsewhere
		w.change(metrics, collector.URL+"/v1/metrics")
	}
	w.asleep() // running instances keep the settings of their start
	w.startFleet(t, fleetFile)

	trace := strings.ReplaceAll(uuid.NewString(), "-", "")
	seen.Follow(trace)
	var g api.Application
	text := application("e2e-trace", "    policies: [{security: medium}]\n")
	require.Equal(t, http.StatusCreated, w.ask(auth.Operator, http.MethodPost, "/jobmanager/groups", text, &g,
		"Idempotency-Key", trace, "Traceparent", "00-"+trace+"-"+caller+"-01"))
	t.Cleanup(func() { w.remove(g.ID) })
	chain := []string{
		"jobmanager-group-create", "matchmaker-place", "policymanager-follow",
		"policymanager-rule", "policymanager-rule", "telemetry-rule-create", "telemetry-rule-create",
	}
	w.eventually("one trace shows the whole chain", func() bool { return seen.Whole(caller) && seen.Path(caller, chain...) })
	w.eventually("the functions have pushed metrics", func() bool { return seen.Measured(chain...) })
	for _, one := range seen.Spans() {
		require.Empty(t, one.Failure, "%+v", one)
	}
}
