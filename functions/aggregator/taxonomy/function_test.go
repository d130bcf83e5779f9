package taxonomy_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions/aggregator/taxonomy"
	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/topology"
	"github.com/littoral-project/littoral/test/inprocess"
)

// telemetry is a Prometheus with one node.
func telemetry(t *testing.T) http.Handler {
	t.Helper()
	p, err := prometheus.Open(prometheus.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	host := map[string]string{
		"icos_agent_id": "agent-1", "icos_cluster_id": "c1", "icos_host_id": "h1", "icos_host_name": "c1:rpi",
		"type": "ocm", "agent_name": "edge", "agent_id": "agent-1", "hostname": "rpi", "cpu": "0", "mode": "idle",
	}
	var samples []prometheus.Sample
	for _, name := range []string{"tlum_orch_info", "tlum_host_info", "node_cpu_seconds_total"} {
		samples = append(samples, prometheus.Sample{Name: name, Labels: host, Value: 1, At: time.Now()})
	}
	require.NoError(t, p.Append(context.Background(), samples))
	return p.Handler()
}

// serve returns the function's handler over the telemetry and an issuer of tokens for it.
func serve(t *testing.T, telemetry http.Handler) (http.Handler, *inprocess.Issuer) {
	t.Helper()
	server := httptest.NewServer(telemetry)
	t.Cleanup(server.Close)
	issuer := inprocess.NewIssuer(t)
	h, err := function.NewEntry("aggregator-taxonomy", taxonomy.Spec, taxonomy.New).Handler(function.Platform{
		Auth: issuer.Verifier(), Transport: server.Client().Transport, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Settings: settings.Map(map[string]string{"AGGREGATOR_TAXONOMY_PROMETHEUS_ADDRESS": server.URL}),
	}.Env("aggregator-taxonomy"))
	require.NoError(t, err)
	return h, issuer
}

func get(h http.Handler, path, token string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestHandle(t *testing.T) {
	h, issuer := serve(t, telemetry(t))
	viewer, others := issuer.Token(t, auth.Viewer), issuer.TokenWith(t, inprocess.Claims{"aud": "x"})
	for name, row := range map[string]struct {
		path, token string
		status      int
		contains    string
	}{
		"the newest shape":                {"/aggregator/", viewer, 200, `"icosAgentID":"agent-1"`},
		"without the slash":               {"/aggregator", viewer, 200, `"icosAgentID":"agent-1"`},
		"the older shape has no agent":    {"/aggregator/?shape=v1", viewer, 200, `"edge":{"type":"ocm","uuid":"c1"`},
		"an unknown shape":                {"/aggregator/?shape=v9", viewer, 400, "is not one of v1"},
		"an unknown parameter":            {"/aggregator/?form=v1", viewer, 400, "is not known here"},
		"no token":                        {"/aggregator/", "", 401, "access token"},
		"a token without a role":          {"/aggregator/", issuer.TokenWith(t, inprocess.Claims{}), 403, "viewer"},
		"a token that has expired":        {"/aggregator/", issuer.TokenWith(t, inprocess.Claims{"exp": 1}), 401, "expired"},
		"a token for others":              {"/aggregator/", others, 401, "audience"},
		"a path that is not there":        {"/aggregator/x", viewer, 404, "nothing at"},
		"an agent, who may read as well ": {"/aggregator/", issuer.Token(t, auth.Agent), 200, `"cpuCores":1`},
	} {
		t.Run(name, func(t *testing.T) {
			w := get(h, row.path, row.token)
			require.Equal(t, row.status, w.Code, w.Body.String())
			require.Contains(t, w.Body.String(), row.contains)
			if row.status == http.StatusOK {
				_, err := topology.Parse(w.Body.Bytes())
				require.NoError(t, err)
			}
		})
	}
}

func TestHandle_aFailingQueryIsNamedInBothShapes(t *testing.T) {
	inner := telemetry(t)
	h, issuer := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.FormValue("query"), "kube_pod_info") {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	for _, path := range []string{"/aggregator/", "/aggregator/?shape=v1"} {
		w := get(h, path, issuer.Token(t, auth.Viewer))
		require.Equal(t, http.StatusOK, w.Code)
		var got struct {
			Warnings []string `json:"warnings"`
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
		require.Equal(t, []string{
			"the query for kube_pod_info failed: the telemetry store answered 500 Internal Server Error",
		}, got.Warnings)
	}
}

func TestHandle_withoutTelemetryIsUnavailable(t *testing.T) {
	h, issuer := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	w := get(h, "/aggregator/", issuer.Token(t, auth.Viewer))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, problem.ContentType, w.Header().Get("Content-Type"))
	require.NotEmpty(t, w.Header().Get("Retry-After"))
	require.Contains(t, w.Body.String(), "tlum_orch_info")
	require.NotContains(t, w.Body.String(), "127.0.0.1", "the address of the store is nobody's business")
}
