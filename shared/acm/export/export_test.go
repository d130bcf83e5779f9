package export_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/acm"
	"github.com/littoral-project/littoral/shared/acm/export"
	"github.com/littoral-project/littoral/shared/codecoapp"
	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/mdm/connect"
	"github.com/littoral-project/littoral/shared/netma/view"
	"github.com/littoral-project/littoral/shared/otlp"
	"github.com/littoral-project/littoral/shared/paging"
	"github.com/littoral-project/littoral/shared/pdlc/awareness"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const camera = `apiVersion: codeco.he-codeco.eu/v1alpha1
kind: CodecoApp
metadata: {name: camera, namespace: plant}
spec:
  qosClass: Gold
  securityClass: Good
  complianceClass: Low
  appEnergyLimit: "20"
  appFailureTolerance: Medium
  codecoapp-msspec:
  - serviceName: front
    podspec: {containers: [{name: c, image: "example.org/front:1", resources: {requests: {cpu: 250m, memory: 64Mi}}}]}
  - serviceName: back
    podspec: {containers: [{name: c, image: "example.org/back:1", resources: {requests: {cpu: "1"}}}]}
`

// world is a site with three nodes: the first tells everything, the second nonsense, the third nothing.
func world(t *testing.T) (*store.DB, uuid.UUID) {
	t.Helper()
	db := storetest.New(t)
	exec := func(sql string, args ...any) {
		t.Helper()
		_, err := db.Exec(t.Context(), sql, args...)
		require.NoError(t, err)
	}
	node := func(name string, cores, percent, memory, watts, sca any, body string) {
		exec(`insert into topology_nodes (cluster_key, node_key, cluster, node, digest, written_at, engine, architecture, cores, cpu_percent,
			used_memory, watts, sca, labels, told, body) values ('site', $1, 'site', $1, 0, now(), 'Kubernetes', 'amd64', $2, $3, $4, $5, $6, $7, '{}', $8)`,
			name, cores, percent, memory, watts, sca, `{"topology.kubernetes.io/zone": "hall"}`, body)
	}
	node("e1", 4.0, 25.0, 1e9, 12.5, 85.0, `{"location": {"latitude": 48.1, "longitude": 11.6}}`)
	node("e2", 4.0, "NaN", -5.0, -1.0, nil, `{"location": {"latitude": 123, "longitude": "NaN"}}`)
	node("e3", nil, nil, nil, nil, nil, `{}`)
	exec(`insert into nodes (cluster, node, last_seen) values ('site', 'e1', now() - interval '7.5 seconds')`)
	exec(`insert into mec_access_points (zone_id, access_point_id, connection_type, operation_status, realm) values ('hall', 'a', 'Wifi', 'Serviceable', 'r')`)
	exec(`insert into mec_users (address, zone_id, access_point_id, at) values ('u1', 'hall', 'a', now()), ('u2', 'hall', 'a', now())`)
	exec(`insert into link_measurements (source, target, rtt, loss, bandwidth, energy, measured_at) values
		('e1', 'e2', 4, 2, 1000, 0.5, now()), ('e2', 'e1', 4, null, null, 'NaN', now()), ('e2', 'e3', 2, null, null, null, now() - interval '2 hours')`)

	var app *acm.App
	parsed, err := codecoapp.Parse([]byte(camera))
	require.NoError(t, err)
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		app, err = acm.Create(ctx, tx, acm.Document{Key: acm.Key{Namespace: "plant", Name: "camera"}, Text: []byte(camera), Parsed: parsed},
			acm.Settings{LostAfter: time.Minute, Caller: "anna"})
		return err
	}))
	id := app.Application.ID
	exec(`update jobs set cluster = 'site', node = 'e1', orchestrator = 'kubernetes' where application_id = $1`, id)
	exec(`update topology_nodes set body = jsonb_set(body::jsonb, '{pod}', $1::jsonb) where node = 'e1'`, fmt.Sprintf(
		`{"p": {"name": "plant__front", "container": {"c": {"cpuUsage": 0.5, "containerMemory": 1048576}},
		"workload": {%q: {"icos_app_instance": %q, "icos_app_component": "front"}}}}`, id, id))
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error { return connect.Application(ctx, tx, id) }))
	require.NoError(t, connect.Infrastructure(t.Context(), db))
	source := mdm.Source{Connector: uuid.New(), Type: "test", At: time.Now()}
	var changes []mdm.Change
	data := func(name, kind string, size any) {
		set, err := source.Entity("dataset", name, map[string]any{"size": size})
		require.NoError(t, err)
		uses, err := source.Relation(kind, mdm.EntityID(connect.Component, id.String()+"/front"), set.ID)
		require.NoError(t, err)
		changes = append(changes, set, uses)
	}
	data("frames", "READS", 1000)
	data("log", "WRITES", 10)
	data("rest", "WRITES", "NaN")
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := mdm.Publish(ctx, tx, changes)
		return err
	}))
	require.NoError(t, awareness.Observe(t.Context(), db, awareness.Settings{}, time.Minute, time.Now()))
	return db, id
}

// scraped is what a Prometheus reads.
func scraped(t *testing.T, db *store.DB) map[string]float64 {
	t.Helper()
	all, err := export.Samples(t.Context(), db, &view.Cache{})
	require.NoError(t, err)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(otlp.Text(all))))
	require.NoError(t, err)
	out := map[string]float64{}
	for name, f := range families {
		require.NotEmpty(t, f.GetHelp(), name)
		for _, m := range f.Metric {
			key := strings.TrimPrefix(name, "codeco_")
			for _, l := range m.Label {
				key += " " + l.GetValue()
			}
			out[key] = m.GetGauge().GetValue()
		}
	}
	return out
}

func TestTheMetricsOfCODECO(t *testing.T) {
	t.Parallel()
	db, _ := world(t)
	got := scraped(t, db)
	age := got["node_freshness_seconds site e1"]
	require.InDelta(t, 8, age, 60)
	delete(got, "node_freshness_seconds site e1")
	require.Equal(t, map[string]float64{
		"app_qos_level camera plant": 5, "app_security_level camera plant": 4, "app_compliance_level camera plant": 1,
		"app_failure_tolerance_percent camera plant": 50, "app_energy_limit_percent camera plant": 20,
		"app_requested_cpu_cores camera plant": 1.25, "app_requested_memory_bytes camera plant": 64 << 20,
		"app_cpu_cores camera plant": 0.5, "app_memory_bytes camera plant": 1 << 20, "app_portability_percent camera plant": 100,
		"app_input_data_bytes camera plant": 1000, // what is written is not known: a data set has no size
		"node_input_data_bytes site e1":     1000,
		"node_cpu_cores site e1":            1, "node_memory_bytes site e1": 1e9, "node_energy_watts site e1": 12.5,
		"node_latitude_degrees site e1": 48.1, "node_longitude_degrees site e1": 11.6,
		"node_compliance_level site e1": 5,
		"node_zone site e1 hall":        1, "node_zone site e2 hall": 1, "node_zone site e3 hall": 1,
		"node_users site e1": 2, "node_users site e2": 2, "node_users site e3": 2,
		"node_portability_percent site e1": 100, "node_portability_percent site e2": 100, "node_portability_percent site e3": 100,
		"node_failure_ratio site e1": 0, "node_failure_ratio site e2": 0, "node_failure_ratio site e3": 0,
		"link_failure_ratio e1 e2": 0.02, "link_failure_ratio e2 e3": 1, "link_energy_watts e1 e2": 0.5,
		"node_net_failure site e1": 0.02, "node_net_failure site e2": 1,
		"node_egress_bandwidth_bits_per_second site e1": 1e6, "node_ingress_bandwidth_bits_per_second site e2": 1e6,
		"node_degree site e1": 1, "node_degree site e2": 2, "node_latency_seconds site e1": 0.004, "node_latency_seconds site e2": 0.003,
		"node_path_length site e1": 1, "node_path_length site e2": 1,
		"refused_values node_cpu_cores": 1, "refused_values node_memory_bytes": 1, "refused_values node_energy_watts": 1,
		"refused_values node_latitude_degrees": 1, "refused_values node_longitude_degrees": 1, "refused_values link_energy_watts": 1,
	}, renamed(got))
}

// TestFailuresAndEnergyOfLinksAreAverages: as PDLC observes them; of a link that it has not observed yet they are what was measured last.
func TestFailuresAndEnergyOfLinksAreAverages(t *testing.T) {
	t.Parallel()
	db, _ := world(t)
	_, err := db.Exec(t.Context(), `update link_measurements set loss = 52, energy = 1.5, measured_at = now() where target = 'e2'`)
	require.NoError(t, err)
	_, err = db.Exec(t.Context(), `insert into link_measurements (source, target, rtt, loss, energy, measured_at) values ('e1', 'e3', 4, 10, 2, now())`)
	require.NoError(t, err)
	told := func() []float64 {
		got := scraped(t, db)
		var all []float64
		for _, name := range []string{"link_failure_ratio", "link_energy_watts"} {
			all = append(all, got[name+" e1 e2"], got[name+" e1 e3"])
		}
		return all
	}
	require.InDeltaSlice(t, []float64{0.02, 0.1, 0.5, 2}, told(), 1e-9)
	require.NoError(t, awareness.Observe(t.Context(), db, awareness.Settings{}, time.Minute, time.Now().Add(time.Minute)))
	require.InDeltaSlice(t, []float64{0.07, 0.1, 0.6, 2}, told(), 1e-9)
}

// renamed drops the prefix from the names that refused values have.
func renamed(got map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for k, v := range got {
		out[strings.Replace(k, "refused_values codeco_", "refused_values ", 1)] = v
	}
	return out
}

// counted counts statements.
type counted struct {
	store.Querier
	n int
}

func (c *counted) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	c.n++
	return c.Querier.Query(ctx, sql, args...)
}

// TestMoreApplicationsTakeNoMoreStatements: and each has its own place and pods.
func TestMoreApplicationsTakeNoMoreStatements(t *testing.T) {
	t.Parallel()
	db, _ := world(t)
	statements := func() int {
		c := &counted{Querier: db}
		_, err := export.Samples(t.Context(), c, &view.Cache{})
		require.NoError(t, err)
		return c.n
	}
	statements() // what the network keeps is read once
	before := statements()
	for i := range 3 {
		name := fmt.Sprintf("camera%d", i)
		text := strings.Replace(camera, "name: camera", "name: "+name, 1)
		parsed, err := codecoapp.Parse([]byte(text))
		require.NoError(t, err)
		var app *acm.App
		require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			created, err := acm.Create(ctx, tx, acm.Document{Key: acm.Key{Namespace: "plant", Name: name}, Text: []byte(text), Parsed: parsed},
				acm.Settings{LostAfter: time.Minute, Caller: "anna"})
			app = created
			return err
		}))
		_, err = db.Exec(t.Context(), `update jobs set cluster = 'site', node = $2, orchestrator = 'kubernetes' where application_id = $1`,
			app.Application.ID, fmt.Sprintf("e%d", 1+i%2))
		require.NoError(t, err)
	}
	require.Equal(t, before, statements())
	apps, err := acm.List(t.Context(), db, acm.Key{}, paging.Page{Limit: 10})
	require.NoError(t, err)
	require.Len(t, apps, 4)
	all, err := acm.StatusesOf(t.Context(), db, apps)
	require.NoError(t, err)
	for i, a := range apps {
		alone, err := acm.StatusOf(t.Context(), db, a.Application)
		require.NoError(t, err)
		require.Equal(t, alone, all[i])
		require.Len(t, all[i].NodeMetrics, 1)
	}
	require.Equal(t, "0.5", all[0].AppMetrics.AvgAppCPU)
	require.Empty(t, all[1].AppMetrics.AvgAppCPU, "it shares a node, not a pod")
}

// TestFailuresOfNodesAreInTheStatus: as far as PDLC has observed them lately.
func TestFailuresOfNodesAreInTheStatus(t *testing.T) {
	t.Parallel()
	db, _ := world(t)
	failures := func() []string {
		app, err := acm.Get(t.Context(), db, acm.Key{Namespace: "plant", Name: "camera"})
		require.NoError(t, err)
		s, err := acm.StatusOf(t.Context(), db, app.Application)
		require.NoError(t, err)
		var out []string
		for _, n := range s.NodeMetrics {
			out = append(out, n.AvgNodeFailure)
		}
		return out
	}
	require.Equal(t, []string{"0"}, failures(), "it was observed, and never silent")
	_, err := db.Exec(t.Context(), `update nodes set last_seen = now() - interval '1 hour'`)
	require.NoError(t, err)
	require.NoError(t, awareness.Observe(t.Context(), db, awareness.Settings{}, time.Minute, time.Now().Add(time.Minute)))
	require.Equal(t, []string{"10"}, failures(), "a tenth of the average is what was seen last")
	_, err = db.Exec(t.Context(), `update pdlc_nodes set at = now() - interval '1 hour'`)
	require.NoError(t, err)
	require.Equal(t, []string{""}, failures(), "nobody has looked since")
}

// TestThePageHasTheMetrics: as many lines as there are metrics, each with what the code says of it.
func TestThePageHasTheMetrics(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/codeco-metrics.md")
	require.NoError(t, err)
	for _, m := range export.Metrics {
		require.Contains(t, string(text), fmt.Sprintf("| %d | %s | `%s` | %s | %s | %s |\n", m.Table, m.Attribute, m.Name, m.Unit,
			strings.Join(m.Labels, ", "), m.Help))
	}
	require.Len(t, regexp.MustCompile(`(?m)^\| 1[3-6] \|`).FindAll(text, -1), len(export.Metrics))
}
