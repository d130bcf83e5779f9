package awareness_test

import (
	"context"
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/pdlc/awareness"
	"github.com/littoral-project/littoral/shared/pdlc/profile"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func exec(t *testing.T, db *store.DB, sql string, args ...any) {
	t.Helper()
	_, err := db.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

func node(t *testing.T, db *store.DB, name string, cpu, watts any, seen time.Duration) {
	t.Helper()
	exec(t, db, `insert into topology_nodes (cluster_key, node_key, cluster, node, digest, written_at, engine, architecture, cores, cpu_percent, memory_percent, watts, sca, told, body)
		values ('edge', $1, 'edge', $1, 0, now(), 'Kubernetes', 'amd64', 4, $2, 30, $3, 80, '{}', '{}')`, name, cpu, watts)
	exec(t, db, `insert into nodes (cluster, node, last_seen) values ('edge', $1, $2)`, name, time.Now().Add(-seen))
}

func measured(t *testing.T, db *store.DB, from, to string, loss float64) {
	t.Helper()
	exec(t, db, `insert into link_measurements (source, target, rtt, loss, bandwidth, measured_at) values ($1, $2, 10, $3, 1000, now())`, from, to, loss)
}

func scores(t *testing.T, db *store.DB, name string) map[string]awareness.Score {
	t.Helper()
	all, err := awareness.Scores(t.Context(), db, name)
	require.NoError(t, err)
	by := map[string]awareness.Score{}
	for _, s := range all {
		by[s.Node] = s
	}
	return by
}

func TestObserve(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	node(t, db, "a", 20.0, 50.0, 0)
	node(t, db, "b", 80.0, 10.0, 0)
	node(t, db, "c", 10.0, nil, time.Hour)
	measured(t, db, "a", "b", 0)
	measured(t, db, "b", "a", 0)
	measured(t, db, "b", "c", 50)
	now := time.Now().UTC()
	observe := func(at time.Time) {
		require.NoError(t, awareness.Observe(t.Context(), db, awareness.Settings{}, time.Minute, at))
	}
	observe(now)
	fast := scores(t, db, "performance")
	require.InDelta(t, 0.7, *fast["a"].Score, 1e-9, "memory is the scarcer")
	require.InDelta(t, 0.2, *fast["b"].Score, 1e-9)
	require.InDelta(t, 2.0/7, fast["b"].Share, 1e-9)
	green := scores(t, db, "greenness")
	require.InDelta(t, 0.8, *green["b"].Score, 1e-9, "a fifth of the greatest draw, and most bandwidth")
	require.Nil(t, green["c"].Score)
	require.Equal(t, "energy is not known", green["c"].Why)
	resilient := scores(t, db, "resilience")
	require.InDelta(t, 1, *resilient["a"].Score, 1e-9)
	require.InDelta(t, 0.8, *resilient["b"].Score, 1e-9)
	require.Equal(t, "degree is not known", resilient["c"].Why, "nobody has measured from there")

	// Failures are moving averages, and a second look at once is the same look.
	exec(t, db, `update link_measurements set loss = 0`)
	exec(t, db, `update nodes set last_seen = now() + interval '1 hour' where node <> 'c'`) // they go on reporting
	observe(now.Add(time.Second))
	require.InDelta(t, 0.8, *scores(t, db, "resilience")["b"].Score, 1e-9)
	observe(now.Add(2 * time.Minute))
	require.InDelta(t, 1/(1+0.45/2), *scores(t, db, "resilience")["b"].Score, 1e-9)
	nodes, err := awareness.Nodes(t.Context(), db)
	require.NoError(t, err)
	for i, want := range []map[string]float64{{"b": 0}, {"a": 0, "c": 0.45}, {}} { // a, b and c
		got := map[string]float64{}
		for to, l := range nodes[i].Links {
			require.Nil(t, l.Energy, "nobody has measured it")
			got[to] = *l.Failure
		}
		require.InDeltaMapValues(t, want, got, 1e-9, nodes[i].Name)
		for name := range nodes[i].Metrics {
			require.NotContains(t, name, " ", "averages of links are no metrics of a node")
		}
	}

	exec(t, db, `delete from topology_nodes where node = 'c'`)
	observe(now.Add(3 * time.Minute))
	require.NotContains(t, scores(t, db, "performance"), "c")

	nodes, err = awareness.Nodes(t.Context(), db)
	require.NoError(t, err)
	all, err := awareness.Scores(t.Context(), db, "")
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, awareness.WriteCSV(&text, nodes, all))
	lines, err := csv.NewReader(strings.NewReader(text.String())).ReadAll()
	require.NoError(t, err)
	require.Equal(t, []string{"time", "node", "cluster", "foresight", "greenness", "performance", "resilience", "cpu"}, lines[0][:8])
	text.Reset()
	require.NoError(t, awareness.WriteObjects(&text, nodes, all))
	require.Contains(t, text.String(), "name: \"a-object\"")
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	node(t, db, "a", 20.0, 50.0, 0)
	save := func(p profile.Profile) error {
		return db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error { return awareness.SaveProfile(ctx, tx, p, "anna") })
	}
	require.Equal(t, problem.Invalid, problem.KindOf(save(profile.Profile{Name: "Big", Formula: "cores"})))
	require.NoError(t, save(profile.Profile{Name: "big", Formula: "share(cores)"}))
	require.NoError(t, save(profile.Profile{Name: "performance", Formula: "1 - cpu"}))
	list, err := awareness.Profiles(t.Context(), db, false)
	require.NoError(t, err)
	require.Len(t, list, 5)
	require.NoError(t, awareness.Observe(t.Context(), db, awareness.Settings{}, time.Minute, time.Now()))
	require.InDelta(t, 1, *scores(t, db, "big")["a"].Score, 1e-9)
	require.InDelta(t, 0.8, *scores(t, db, "performance")["a"].Score, 1e-9)
	gone := func(name string) error {
		return db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error { return awareness.DeleteProfile(ctx, tx, name) })
	}
	require.NoError(t, gone("big"))
	require.Empty(t, scores(t, db, "big"))
	require.Equal(t, problem.NotFound, problem.KindOf(gone("greenness")))
}
