package fresh_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/infra/runner/prometheus/prometheustest"
	"github.com/littoral-project/littoral/shared/mdm/connect"
	"github.com/littoral-project/littoral/shared/mdm/fresh"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/telemetry"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestFreshnessOfTelemetry on the real engine: the default query tells what is heard from what is not any more.
func TestFreshnessOfTelemetry(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	engine := prometheustest.With(t, prometheus.Options{Retention: 100 * time.Hour})
	server := httptest.NewServer(engine.Handler())
	t.Cleanup(server.Close)
	client, err := telemetry.New(telemetry.Config{Address: server.URL}, http.DefaultClient)
	require.NoError(t, err)
	now := time.Now()
	sample := func(job string, old time.Duration) prometheus.Sample {
		return prometheus.Sample{Name: "up", Labels: map[string]string{"job": job, "instance": job + ":9100", "cluster": "edge", "node": job}, Value: 1, At: now.Add(-old)}
	}
	require.NoError(t, engine.Append(t.Context(), []prometheus.Sample{
		sample("silent", 3*time.Hour), sample("late", 8*time.Minute), sample("fresh", 20*time.Second),
	}))
	look := func(at time.Time) {
		t.Helper()
		require.NoError(t, fresh.Publish(t.Context(), db, client, fresh.Query, at))
	}
	freshness := func() map[string]string {
		t.Helper()
		rows, err := db.Query(t.Context(), `select properties ->> 'job', properties ->> 'freshness' from mdm_entities where type = 'telemetry'`)
		require.NoError(t, err)
		defer rows.Close()
		all := map[string]string{}
		for rows.Next() {
			var job, is string
			require.NoError(t, rows.Scan(&job, &is))
			all[job] = is
		}
		require.NoError(t, rows.Err())
		return all
	}
	look(now)
	require.Equal(t, map[string]string{"fresh": "Fresh", "late": "Late", "silent": "Silent"}, freshness())
	var leads int
	require.NoError(t, db.QueryRow(t.Context(), `select count(*) from mdm_relations where type = 'OBSERVES' and target = $1`, connect.NodeID("edge", "late")).Scan(&leads))
	require.Equal(t, 1, leads)
	look(now.Add(23 * time.Hour))
	require.Equal(t, map[string]string{"fresh": "Silent", "late": "Silent"}, freshness(), "what is not heard for a day is gone")
}
