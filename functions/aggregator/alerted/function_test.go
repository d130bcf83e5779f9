package alerted_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/littoral-project/littoral/functions/aggregator/alerted"
	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/infra/runner/prometheus/prometheustest"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func newPrometheus(t *testing.T) *prometheus.Server {
	t.Helper()
	server := prometheustest.New(t)
	return server
}

func emit(t *testing.T, server *prometheus.Server, host string, at time.Time) {
	t.Helper()
	labels := map[string]string{
		"icos_agent_id": "agent-1", "icos_cluster_id": "c1", "icos_host_id": host, "icos_host_name": "c1:" + host,
		"type": "ocm", "agent_name": "edge", "agent_id": "agent-1", "hostname": host, "node": host,
	}
	for _, name := range []string{"tlum_orch_info", "tlum_host_info"} {
		require.NoError(t, server.Append(t.Context(), []prometheus.Sample{{Name: name, Labels: labels, Value: 1, At: at}}))
	}
}

func TestAnAlertRefreshesTheTopology(t *testing.T) {
	server := newPrometheus(t)
	ways := httptest.NewServer(server.Handler())
	t.Cleanup(ways.Close)
	db := storetest.New(t)
	handler, err := function.NewEntry("aggregator-alerted", alerted.Spec, alerted.New).Handler(function.Platform{
		DB: db, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Settings: settings.Map(map[string]string{"PROMETHEUS_ADDRESS": ways.URL, "ALERTMANAGER_SECRET": "open sesame"}),
	}.Env("aggregator-alerted"))
	require.NoError(t, err)
	post := func(secret string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "/aggregator/webhooks/alertmanager", strings.NewReader(`{"version": "4"}`))
		r.SetBasicAuth("alertmanager", secret)
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, r)
		return answer
	}
	emit(t, server, "rpi", time.Now())
	require.Equal(t, http.StatusUnauthorized, post("guessed").Code)
	require.Empty(t, storetest.Published(db))
	for _, want := range []string{`{"changed":true}`, `{"changed":false}`} {
		answer := post("open sesame")
		require.Equal(t, http.StatusOK, answer.Code, answer.Body.String())
		require.JSONEq(t, want, answer.Body.String())
	}
	require.Len(t, storetest.Published(db), 1)
	ways.Close()
	require.Equal(t, http.StatusServiceUnavailable, post("open sesame").Code)
	require.Len(t, storetest.Published(db), 1)
}

// TestTheRulesOfTheExample: the rules of infra/examples fire for the right hosts.
func TestTheRulesOfTheExample(t *testing.T) {
	t.Parallel()
	server, now := newPrometheus(t), time.Now()
	for age := 10 * time.Minute; age >= 0; age -= 15 * time.Second {
		emit(t, server, "steady", now.Add(-age))
		if age >= 2*time.Minute {
			emit(t, server, "silent", now.Add(-age))
		}
		if age <= 90*time.Second {
			emit(t, server, "new", now.Add(-age))
		}
	}
	text, err := os.ReadFile("../../../infra/examples/topology-rules.yml")
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	require.Len(t, file.Groups[0].Rules, 2)
	for i, want := range []string{"silent", "new"} {
		rule := file.Groups[0].Rules[i]
		query := url.Values{"query": {rule.Expr}, "time": {now.Format(time.RFC3339)}}
		answer := httptest.NewRecorder()
		server.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/api/v1/query?"+query.Encode(), http.NoBody))
		var found struct {
			Data struct {
				Result []struct {
					Metric map[string]string
				}
			}
		}
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &found), answer.Body.String())
		require.Len(t, found.Data.Result, 1, "%s: %s", rule.Alert, answer.Body)
		require.Equal(t, want, found.Data.Result[0].Metric["icos_host_id"], rule.Alert)
	}
}
