package tick_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions/aggregator/tick"
	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/infra/runner/prometheus/prometheustest"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/topology"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// world is a tick function with a Prometheus, which may be unreachable, and a Postgres.
type world struct {
	t          *testing.T
	prometheus *prometheus.Server
	address    string // of what asks it
	away       atomic.Bool
	db         *store.DB
	handler    http.Handler
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, db: storetest.New(t)}
	w.prometheus = prometheustest.New(t)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.away.Load() {
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.prometheus.Handler().ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	w.address = server.URL
	w.start()
	return w
}

// start makes the function.
func (w *world) start() {
	w.t.Helper()
	var err error
	w.handler, err = function.NewEntry("aggregator-tick", tick.Spec, tick.New).Handler(function.Platform{
		DB: w.db, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Settings: settings.Map(map[string]string{
			"PROMETHEUS_ADDRESS": w.address, "TELEMETRY_LOOKBACK": lookback.String(),
		}),
	}.Env("aggregator-tick"))
	require.NoError(w.t, err)
}

// lookback is how long a silent node is shown.
const lookback = 5 * time.Minute

// emit writes the samples of the host's exporters at that time.
func (w *world) emit(at time.Time, host string) {
	w.t.Helper()
	labels := map[string]string{
		"icos_agent_id": "agent-1", "icos_cluster_id": "c1", "icos_host_id": host, "icos_host_name": "c1:" + host,
		"type": "ocm", "agent_name": "edge", "agent_id": "agent-1", "hostname": host, "node": host,
	}
	var samples []prometheus.Sample
	for name, value := range map[string]float64{
		"tlum_orch_info": 1, "tlum_host_info": 1, "kube_node_spec_unschedulable": 0,
	} {
		samples = append(samples, prometheus.Sample{Name: name, Labels: labels, Value: value, At: at})
	}
	require.NoError(w.t, w.prometheus.Append(context.Background(), samples))
}

// tick delivers the event of a PingSource and returns the status.
func (w *world) tick() int {
	w.t.Helper()
	e := cloudevents.New()
	e.SetID(uuid.NewString())
	e.SetSource("/apis/v1/namespaces/littoral/pingsources/aggregator-tick")
	e.SetType(events.Tick)
	body, err := json.Marshal(e)
	require.NoError(w.t, err)
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	r.Header.Set("Content-Type", cloudevents.ApplicationCloudEventsJSON)
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	return answer.Code
}

// changes lists the changes in the published events, in order.
func (w *world) changes() (all []string) {
	w.t.Helper()
	for _, e := range storetest.Published(w.db) {
		require.Equal(w.t, "/functions/aggregator-tick", e.Source())
		data, err := events.Data[events.Topology](e)
		require.NoError(w.t, err)
		for _, c := range data.Changes {
			all = append(all, c.Cluster+"/"+c.Node+" "+c.Change)
		}
	}
	return all
}

func TestRun_announcesWhatChanged(t *testing.T) {
	w := newWorld(t)
	w.emit(time.Now().Add(-2*time.Minute), "old")
	w.emit(time.Now(), "rpi")
	require.Equal(t, http.StatusNoContent, w.tick())
	require.Equal(t, []string{"edge/old lost", "edge/old added", "edge/rpi added"}, w.changes())

	require.Equal(t, http.StatusNoContent, w.tick())
	require.Len(t, w.changes(), 3, "nothing new, nothing told")

	w.emit(time.Now(), "old")
	require.Equal(t, http.StatusNoContent, w.tick())
	require.Equal(t, []string{"edge/old returned"}, w.changes()[3:])
}

// TestRun_forgetsWhoIsSilentForLong: a node goes from what is stored, and others stay. What is silent is seen to be so by the clock of
// this machine, so the node is silent for nearly long enough in the beginning.
func TestRun_forgetsWhoIsSilentForLong(t *testing.T) {
	w := newWorld(t)
	w.emit(time.Now().Add(2*time.Second-lookback), "old")
	w.emit(time.Now(), "rpi")
	require.Equal(t, http.StatusNoContent, w.tick())
	require.Contains(t, w.changes(), "edge/old added")
	require.Eventually(t, func() bool {
		require.Equal(t, http.StatusNoContent, w.tick())
		return slices.Contains(w.changes(), "edge/old removed")
	}, 30*time.Second, 500*time.Millisecond)
	stored, _, err := topology.Current(t.Context(), w.db)
	require.NoError(t, err)
	require.Len(t, stored.Places(), 1)
}

func TestRun_absentTelemetryLosesNobody(t *testing.T) {
	w := newWorld(t)
	w.emit(time.Now(), "rpi")
	require.Equal(t, http.StatusNoContent, w.tick())
	before, at, err := topology.Current(context.Background(), w.db)
	require.NoError(t, err)

	w.away.Store(true)
	require.Equal(t, http.StatusServiceUnavailable, w.tick(), "the Broker may try again")
	after, still, err := topology.Current(context.Background(), w.db)
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.True(t, at.Equal(still), "the stored time tells how old the picture is")
	require.Len(t, w.changes(), 1)
}

func TestRun_storeAwayIsUnavailable(t *testing.T) {
	nobody, err := store.Open(context.Background(),
		store.Config{DatabaseURL: "postgres://127.0.0.1:1/x?connect_timeout=5"}, &storetest.Recorder{}, nil)
	require.NoError(t, err)
	t.Cleanup(nobody.Close)
	w := newWorld(t)
	w.db = nobody
	w.start()
	w.emit(time.Now(), "rpi")
	require.Equal(t, http.StatusServiceUnavailable, w.tick())
}
