// Package telemetry_test runs the loop of policies with a real Prometheus and a real Alertmanager, configured by
// infra/examples, around the laptop host. Prometheus scrapes the fleet and evaluates rule files written by the
// functions, alerts arrive through the webhook, and their actions are carried out. "make e2e-telemetry" builds the two
// and runs it; otherwise it is skipped.
package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/alertmanager/template"
	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/infra/runner/host"
	"github.com/littoral-project/littoral/infra/runner/issuer"
	"github.com/littoral-project/littoral/knative"
	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/triggers"
)

// TestMain lets all kinds of policies run concurrently even with few processors: they mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "100"); err != nil {
		panic(err)
	}
	storetest.Main(m)
}

// patience covers a scrape, an evaluation, a group's wait and the fleet's own delays on a busy machine, and an
// expression that looks back two minutes.
const patience = 4 * time.Minute

const pause = 300 * time.Millisecond

// world is the laptop host with an external Prometheus and Alertmanager.
type world struct {
	t          *testing.T
	home       string
	rules      string // directory of rule files
	host       *host.Host
	prometheus string // its URL
	receiver   string // the URL that policies call
	grounds    []ground

	*journal
}

// journal records what Alertmanager has sent, the calls that arrived, and the observed violations.
type journal struct {
	mu       sync.Mutex
	messages []delivery
	received []call
	seen     sighted
}

// delivery is a message of Alertmanager and the host's answer.
type delivery struct {
	template.Data

	Version string
	status  int
}

// fleetScraped replaces the example's scrape jobs, which are for a cluster. Metrics of the fleet have their own
// timestamps.
const fleetScraped = `
global: {scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 1s}
scrape_configs:
  - job_name: fleet
    metrics_path: /fleet/metrics
    honor_labels: true
    track_timestamps_staleness: true
    authorization: {credentials_file: %q}
    static_configs: [{targets: [%q]}]
`

// newWorld starts everything. The settings are those of an installation that keeps rule files for a plain Prometheus.
func newWorld(t *testing.T) *world {
	t.Helper()
	tool(t, "prometheus")
	dir := t.TempDir()
	prometheus, alertmanager := free(t), free(t)
	w := &world{
		t: t, home: filepath.Join(dir, "home"), rules: filepath.Join(dir, "rules"), prometheus: "http://" + prometheus,
		journal: &journal{seen: sighted{map[string]bool{}, map[string]bool{}, map[string]bool{}}},
	}
	receiver := httptest.NewServer(http.HandlerFunc(w.receive))
	t.Cleanup(receiver.Close)
	w.receiver = receiver.URL
	docker := make([]bool, len(kinds)+1) // one more for the probe rule
	for i := range kinds {
		docker[i] = kinds[i].docker
	}
	var fleet string
	fleet, w.grounds = grounds(t, dir, docker)
	given := settings.Map(map[string]string{
		"RULES_DIR": w.rules, "RULES_RELOAD_URL": w.prometheus + "/-/reload", "PROMETHEUS_ADDRESS": w.prometheus,
		"WEBHOOK_ALLOW": "127.0.0.1", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": w.prometheus + "/api/v1/otlp/v1/metrics",
		"OTEL_METRIC_EXPORT_INTERVAL": "5000", // milliseconds
	})
	var err error
	w.host, err = host.Start(t.Context(), host.Options{
		Addr: "127.0.0.1:0", Home: w.home, Fleet: fleet, Database: storetest.URL(t), Registry: functions.Registry, Settings: given,
		Files: map[string]fs.FS{"/knative": knative.Files, "/triggers": triggers.Files}, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.host.Stop(context.WithoutCancel(t.Context()))) })

	relay := httptest.NewServer(http.HandlerFunc(w.relay))
	t.Cleanup(relay.Close)
	me := w.credentials("alertmanager")
	secret := write(t, filepath.Join(dir, "client-secret"), me.ClientSecret)
	serve(t, "alertmanager", alertmanager, "--cluster.listen-address=", "--storage.path="+filepath.Join(dir, "alertmanager"),
		"--config.file="+write(t, filepath.Join(dir, "alertmanager.yml"), example(t, "alertmanager.yml", map[string]string{
			"http://gateway.littoral.svc.cluster.local":           relay.URL,
			"http://issuer.littoral.svc.cluster.local/oidc/token": me.TokenURL,
			"/etc/alertmanager/secrets/littoral/client-secret":    secret,
		})))
	write(t, filepath.Join(dir, "topology-rules.yml"), example(t, "topology-rules.yml", nil))
	config, _, _ := strings.Cut(example(t, "prometheus.yml", map[string]string{
		"policies/*.yaml": w.rules + "/*.yaml",
		"alertmanager.monitoring.svc.cluster.local:9093": alertmanager,
	}), "scrape_configs:")
	config += fmt.Sprintf(fleetScraped, w.host.TokenFile("viewer"), strings.TrimPrefix(w.host.URL(), "http://"))
	serve(t, "prometheus", prometheus, "--web.enable-lifecycle", "--web.enable-otlp-receiver",
		"--storage.tsdb.path="+filepath.Join(dir, "prometheus"),
		"--config.file="+write(t, filepath.Join(dir, "prometheus.yml"), config))
	return w
}

// credentials returns the client's credentials at the host's issuer.
func (w *world) credentials(id string) *clientcredentials.Config {
	w.t.Helper()
	provider, err := issuer.New(issuer.Options{
		URL: w.host.URL() + "/oidc", Dir: filepath.Join(w.home, "oidc"), Audience: "littoral", Clients: issuer.People(),
	})
	require.NoError(w.t, err)
	return provider.Credentials(id)
}

// relay forwards Alertmanager's requests unchanged to the host, including the token, and records them.
func (w *world) relay(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		out.WriteHeader(http.StatusBadRequest)
		return
	}
	on, err := http.NewRequestWithContext(r.Context(), r.Method, w.host.URL()+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		out.WriteHeader(http.StatusInternalServerError)
		return
	}
	on.Header = r.Header.Clone()
	resp, err := http.DefaultClient.Do(on)
	if err != nil {
		out.WriteHeader(http.StatusBadGateway)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	d := delivery{status: resp.StatusCode}
	if err := json.Unmarshal(body, &d); err == nil {
		w.mu.Lock()
		w.messages = append(w.messages, d)
		w.mu.Unlock()
	}
	out.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(out, resp.Body)
}

// messageOf returns a message about the alert with that status, nil if there is none yet.
func (w *world) messageOf(alert, status string) *delivery {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.messages {
		if w.messages[i].GroupLabels["alertname"] == alert && w.messages[i].Status == status {
			return &w.messages[i]
		}
	}
	return nil
}

// refused returns the messages that the host did not accept.
func (w *world) refused() []delivery {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.messages), func(d delivery) bool { return d.status == http.StatusOK })
}

// in returns the world for a subtest.
func (w *world) in(t *testing.T) *world {
	within := *w
	within.t = t
	return &within
}

// eventually waits until the condition holds.
func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			require.Fail(w.t, "it took too long until "+what)
		case <-tick.C:
		}
	}
}

// query asks the real Prometheus for one value.
func (w *world) query(expr string) (value float64, found bool) {
	w.t.Helper()
	resp, err := http.Get(w.prometheus + "/api/v1/query?query=" + url.QueryEscape(expr))
	require.NoError(w.t, err)
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Data struct{ Result []struct{ Value []any } }
	}
	require.NoError(w.t, json.NewDecoder(resp.Body).Decode(&answer))
	if len(answer.Data.Result) == 0 {
		return 0, false
	}
	value, err = strconv.ParseFloat(answer.Data.Result[0].Value[1].(string), 64)
	require.NoError(w.t, err)
	return value, true
}

// ask sends a request as the role and decodes the answer into into unless it is nil.
func (w *world) ask(role, method, path, body string, into any) int {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.host.URL()+path, strings.NewReader(body))
	require.NoError(w.t, err)
	token, err := api.TokenFile(w.host.TokenFile(role))()
	require.NoError(w.t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(w.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	if into != nil {
		require.NoError(w.t, json.Unmarshal(text, into), "%s", text)
	}
	return resp.StatusCode
}

// set changes properties of a node in the fleet.
func (w *world) set(node string, settings fleetCommand) {
	w.t.Helper()
	body, err := json.Marshal(map[string]any{"node": node, "set": settings})
	require.NoError(w.t, err)
	require.Equal(w.t, http.StatusOK, w.ask("operator", http.MethodPost, "/fleet/set", string(body), nil))
}
