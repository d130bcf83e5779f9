package observe_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/trace"
)

// TestPrometheusAcceptsTheMetrics: its own OTLP receiver, storage and query engine.
func TestPrometheusAcceptsTheMetrics(t *testing.T) {
	t.Parallel()
	db, err := tsdb.Open(t.TempDir(), nil, nil, tsdb.DefaultOptions(), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	settings := config.DefaultConfig
	settings.OTLPConfig = config.DefaultOTLPConfig
	receiver := remote.NewOTLPWriteHandler(slog.New(slog.DiscardHandler), prometheus.NewRegistry(), db,
		func() config.Config { return settings }, remote.OTLPOptions{LookbackDelta: 5 * time.Minute})
	server := httptest.NewServer(receiver)
	defer server.Close()

	x := newExporter(t, "", map[string]string{
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": server.URL + "/api/v1/otlp/v1/metrics",
	})
	r := x.Recorder("jobmanager-group-get")
	ctx := trace.Start(t.Context(), "")
	early := time.Now().Add(-10 * time.Second)
	for range 3 {
		c := call(http.StatusOK)
		c.Start = early
		r.Note(ctx, c)
	}
	for status, duplicate := range map[int]bool{204: false, 200: true, 503: false, 403: false} {
		r.Note(ctx, delivery(status, duplicate))
	}
	woken := x.Recorder("jobmanager-group-list")
	first := call(http.StatusOK)
	first.Start = time.Now()
	woken.Note(ctx, first)
	woken.Note(ctx, first)
	r.Gauge("littoral.outbox.lag", "s", "Age of the oldest event that waits", 12.5)
	shutdown(t, x)
	shutdown(t, x) // nothing changed: nothing is pushed

	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1000, Timeout: 10 * time.Second, LookbackDelta: 5 * time.Minute,
		Parser: parser.NewParser(parser.Options{}),
	})
	query := func(text string) promql.Vector {
		q, err := engine.NewInstantQuery(t.Context(), db, nil, text, time.Now().Add(time.Second))
		require.NoError(t, err)
		defer q.Close()
		result := q.Exec(t.Context())
		require.NoError(t, result.Err)
		v, err := result.Vector()
		require.NoError(t, err)
		require.Len(t, v, 1, text)
		return v
	}
	starts := query(`littoral_start_duration_seconds_count`)[0]
	require.InDelta(t, 1, starts.F, 0, "one start, whatever number of calls; the other function was awake")
	require.Equal(t, "littoral/jobmanager-group-list", starts.Metric.Get(model.JobLabel))
	require.Positive(t, query(`littoral_start_duration_seconds_sum`)[0].F)
	calls := query(`http_server_request_duration_seconds_count{job="littoral/jobmanager-group-get"}`)[0]
	require.InDelta(t, 3, calls.F, 0)
	require.Equal(t, "littoral/jobmanager-group-get", calls.Metric.Get(model.JobLabel))
	require.NotEmpty(t, calls.Metric.Get(model.InstanceLabel))
	require.Equal(t, "/things/{id}", calls.Metric.Get("http_route"))
	require.Equal(t, "200", calls.Metric.Get("http_response_status_code"))
	require.InDelta(t, 0.06, query(`http_server_request_duration_seconds_sum{job="littoral/jobmanager-group-get"}`)[0].F, 1e-9)
	require.InDelta(t, 3, query(`http_server_request_duration_seconds_bucket{le="0.025",job="littoral/jobmanager-group-get"}`)[0].F, 0)
	require.InDelta(t, 0, query(`http_server_request_duration_seconds_bucket{le="0.01",job="littoral/jobmanager-group-get"}`)[0].F, 0)
	require.Positive(t, query(`sum(increase(http_server_request_duration_seconds_count[5m]))`)[0].F,
		"an instance that lives for one push is seen to count")
	for _, outcome := range []string{"done", "duplicate", "retry", "refused"} {
		require.InDelta(t, 1, query(`littoral_reaction_duration_seconds_count{littoral_outcome="` + outcome + `"}`)[0].F, 0)
	}
	require.InDelta(t, 12.5, query(`littoral_outbox_lag_seconds`)[0].F, 0)
}
