package connect_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/mdm/connect"
	"github.com/littoral-project/littoral/shared/mdm/cypher"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func exec(t *testing.T, db *store.DB, sql string, args ...any) {
	t.Helper()
	_, err := db.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

func node(t *testing.T, db *store.DB, cluster, name, architecture string, sca any) {
	t.Helper()
	exec(t, db, `insert into topology_nodes (cluster_key, node_key, cluster, node, digest, written_at, engine, architecture, cores, sca, labels, told, body)
		values ($1, $2, $1, $2, 0, now(), 'Kubernetes', $3, 4, $4, '{"zone": "a"}', '{}', '{}')`, cluster, name, architecture, sca)
	exec(t, db, `insert into nodes (cluster, node, last_seen) values ($1, $2, now() - interval '7.5 seconds')`, cluster, name)
}

func place(t *testing.T, db *store.DB, app uuid.UUID, component, cluster, name string) {
	t.Helper()
	exec(t, db, `insert into jobs (id, application_id, component, type, state, orchestrator, cluster, node, instruction, lost_after, resource_name)
		values ($1, $2, $3, 'CreateDeployment', 'Created', 'ocm', $4, $5, '{}', '1m', $3)`, uuid.New(), app, component, cluster, name)
}

func follow(t *testing.T, db *store.DB, app uuid.UUID) {
	t.Helper()
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error { return connect.Application(ctx, tx, app) }))
}

func rows(t *testing.T, db *store.DB, query string) (all []string) {
	t.Helper()
	answer, err := cypher.Run(t.Context(), db, query, nil, cypher.Bounds{})
	require.NoError(t, err)
	for _, r := range answer.Rows {
		all = append(all, string(r))
	}
	return all
}

func TestApplicationsAndTheirPlacesAreInTheGraph(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	node(t, db, "edge", "e1", "amd64", 85)
	node(t, db, "edge", "e2", "amd64", 60)
	app := uuid.New()
	exec(t, db, `insert into applications (id, name, namespace, descriptor) values ($1, 'shop', 'n', 'd')`, app)
	place(t, db, app, "web", "edge", "e1")
	place(t, db, app, "db", "", "")
	follow(t, db, app)
	require.Equal(t, int64(1), waiting(t, db), "the node is not there yet")
	require.NoError(t, connect.Infrastructure(t.Context(), db))
	require.Zero(t, waiting(t, db))

	where := `MATCH (a:app {name: 'shop'})<-[:PART_OF]-(c:component)-[:RUNS_ON]->(n:compute)-[:IN]->(k:cluster) RETURN c.name AS c, n.name AS n, k.name AS k`
	require.Equal(t, []string{`{"c":"web","n":"e1","k":"edge"}`}, rows(t, db, where))
	exec(t, db, `update jobs set node = 'e2' where component = 'web'`)
	follow(t, db, app)
	require.Equal(t, []string{`{"c":"web","n":"e2","k":"edge"}`}, rows(t, db, where), "its former place is not its place any more")

	exec(t, db, `delete from jobs where component = 'db'`)
	follow(t, db, app)
	require.Equal(t, []string{`{"c":"web"}`}, rows(t, db, `MATCH (c:component) RETURN c.name AS c`))

	before := published(t, db)
	follow(t, db, app)
	require.NoError(t, connect.Infrastructure(t.Context(), db))
	require.Equal(t, before, published(t, db), "what is known is not said again")

	connectors, err := mdm.Connectors(t.Context(), db)
	require.NoError(t, err)
	require.Len(t, connectors, 2)
	for _, c := range connectors {
		require.NotEmpty(t, c.Name)
		require.Equal(t, mdm.Healthy, c.Health)
	}

	exec(t, db, `update applications set desired = 'deleted', deleted_at = now()`)
	follow(t, db, app)
	require.Empty(t, rows(t, db, `MATCH (n) WHERE n:app OR n:component RETURN n`))
	exec(t, db, `delete from topology_nodes where node = 'e1'`)
	require.NoError(t, connect.Infrastructure(t.Context(), db))
	require.Equal(t, []string{`{"n":"e2","c":"Medium"}`}, rows(t, db, `MATCH (n:compute) RETURN n.name AS n, n.compliance AS c`))
}

func waiting(t *testing.T, db *store.DB) int64 {
	t.Helper()
	s, err := mdm.Measure(t.Context(), db)
	require.NoError(t, err)
	return s.Waiting
}

func published(t *testing.T, db *store.DB) (number int64) {
	t.Helper()
	require.NoError(t, db.QueryRow(t.Context(), `select max(number) from bus_values`).Scan(&number))
	return number
}

func TestTheTableOfNodes(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	node(t, db, "edge", "e1", "amd64", 85)
	node(t, db, "edge", "e2", "amd64", nil)
	node(t, db, "edge", "e3", "arm64", 20)
	app := uuid.New()
	exec(t, db, `insert into applications (id, name, namespace, descriptor) values ($1, 'shop', 'n', 'd')`, app)
	place(t, db, app, "web", "edge", "e1")
	follow(t, db, app)
	require.NoError(t, connect.Infrastructure(t.Context(), db))
	source := mdm.Source{Connector: uuid.New(), Type: "test"}
	require.NoError(t, db.QueryRow(t.Context(), `select now()`).Scan(&source.At))
	var changes []mdm.Change
	frames, err := source.Entity("dataset", "frames", map[string]any{"size": 1000})
	require.NoError(t, err)
	reads, err := source.Relation("READS", mdm.EntityID(connect.Component, app.String()+"/web"), frames.ID)
	require.NoError(t, err)
	stored, err := source.Relation("STORED_ON", frames.ID, connect.NodeID("edge", "e2"))
	require.NoError(t, err)
	changes = append(changes, frames, reads, stored)
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := mdm.Publish(ctx, tx, changes)
		return err
	}))
	nodes, err := connect.Nodes(t.Context(), db)
	require.NoError(t, err)
	for i := range nodes {
		require.Regexp(t, `^\d+s$`, nodes[i].Freshness)
		nodes[i].Freshness = ""
	}
	require.Equal(t, []connect.Node{
		{Name: "e1", Cluster: "edge", Compliance: "High", Portability: "50", Input: "1000", Output: "0", DataSets: []string{}},
		{Name: "e2", Cluster: "edge", Portability: "50", Input: "0", Output: "0", DataSets: []string{"frames"}},
		{Name: "e3", Cluster: "edge", Compliance: "Low", Portability: "0", Input: "0", Output: "0", DataSets: []string{}},
	}, nodes)
	exec(t, db, `delete from topology_nodes`)
	nodes, err = connect.Nodes(t.Context(), db)
	require.NoError(t, err)
	require.Empty(t, nodes)
	require.NotErrorIs(t, err, pgx.ErrNoRows)
}
