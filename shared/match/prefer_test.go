package match_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/match"
	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/mdm/connect"
	"github.com/littoral-project/littoral/shared/mec"
	"github.com/littoral-project/littoral/shared/pdlc/advice"
	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/costs"
	"github.com/littoral-project/littoral/shared/topology"
)

// near is a descriptor with one component that is better close to something.
func near(name, what string) []byte {
	return []byte(strings.Replace(string(app(name, "reader: cpu: 1")), "    type: kubernetes", "    type: kubernetes\n    near: {"+what+"}", 1))
}

// data publishes a data set that is stored somewhere.
func (w world) data(name string, size float64, cluster, node string) {
	w.Helper()
	source := mdm.Source{Connector: mdm.EntityID("connector", "test"), Type: "test", At: time.Now()}
	set := mdm.EntityID("dataset", name)
	entity, err := source.Entity("dataset", name, map[string]any{"size": size})
	require.NoError(w, err)
	stored, err := source.Relation("STORED_ON", set, connect.NodeID(cluster, node))
	require.NoError(w, err)
	require.NoError(w, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := mdm.Publish(ctx, tx, []mdm.Change{entity, stored})
		return err
	}))
}

// explained asks why a new application would go where it would.
func (w world) explained(document []byte) *match.Answer {
	w.Helper()
	answer, err := match.Solve(w.Context(), w.DB, match.Request{Parsed: w.read(document)}, settings)
	require.NoError(w, err)
	return answer
}

func preferredOn(a *match.Answer, node string) []placement.PreferenceTerm {
	for _, n := range a.Explanation.Components[0].Nodes {
		if n.Target.Node == node {
			return n.Preferred
		}
	}
	return nil
}

func TestPlace_goesToTheData(t *testing.T) {
	t.Parallel()
	// n1 would win by its free cpu and its security.
	w := newWorld(t, node{name: "n1", cores: 8, sca: 90}, node{name: "n2", cores: 4, sca: 80}, node{name: "n3", cores: 4, sca: 80})
	require.NoError(t, connect.Infrastructure(t.Context(), w.DB))
	w.data("frames", 5<<30, "edge", "n2")
	w.data("labels", 1<<20, "edge", "n3")

	plain := w.submit(app("plain", "reader: cpu: 1"))
	w.place(plain, false)
	require.Equal(t, "n1", w.where(plain)["reader"])
	reader := w.submit(near("reads", "data: [frames, labels]"))
	w.place(reader, false)
	require.Equal(t, "n2", w.where(reader)["reader"], "most of what it reads is there")

	a := w.explained(near("asked", "data: [frames, nothing]"))
	require.Equal(t, map[string]string{"data": "frames (5 GiB) is on edge/n2; nothing is nowhere that is known"}, a.Explanation.Components[0].Preferences)
	require.Equal(t, []placement.PreferenceTerm{{Name: "data", Points: placement.DefaultAffinityWeight}}, preferredOn(a, "n2"))
	require.InDelta(t, 0.7*placement.DefaultAffinityWeight, preferredOn(a, "n3")[0].Points, 1e-9, "in the same cluster")

	_, err := w.DB.Exec(t.Context(), `insert into link_measurements (source, target, rtt, measured_at) values ('n1', 'n2', 60, now())`)
	require.NoError(t, err)
	a = w.explained(near("asked", "data: [frames]"))
	require.InDelta(t, 0.7/4*placement.DefaultAffinityWeight, preferredOn(a, "n1")[0].Points, 1e-9, "what is measured counts more than the cluster")
}

// TestPlace_readsTheGraph: what somebody publishes of a running component counts as if its description said it.
func TestPlace_readsTheGraph(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "n1", cores: 8, sca: 90}, node{name: "n2", cores: 4, sca: 80})
	require.NoError(t, connect.Infrastructure(t.Context(), w.DB))
	w.data("frames", 5<<30, "edge", "n2")
	id := w.submit(app("shop", "reader: cpu: 1"))
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return connect.Application(ctx, tx, id) }))
	source := mdm.Source{Connector: mdm.EntityID("connector", "test"), Type: "test", At: time.Now()}
	reads, err := source.Relation("READS", mdm.EntityID(connect.Component, id.String()+"/reader"), mdm.EntityID("dataset", "frames"))
	require.NoError(t, err)
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := mdm.Publish(ctx, tx, []mdm.Change{reads})
		return err
	}))
	w.place(id, false)
	require.Equal(t, "n2", w.where(id)["reader"])
}

func TestPlace_goesToTheUsers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	world := taxonomy(node{name: "paris", cores: 8, sca: 90}, node{name: "berlin", cores: 8, sca: 80}, node{name: "nowhere", cores: 8, sca: 90})
	at := func(name string, latitude, longitude float64) {
		n := world.Cluster["edge"].Node[name]
		n.Location = topology.Location{Latitude: topology.Known(latitude), Longitude: topology.Known(longitude)}
		world.Cluster["edge"].Node[name] = n
	}
	at("paris", 48.85, 2.35)
	at("berlin", 52.52, 13.4)
	w.picture(world)
	latitude, longitude := 52.5, 13.5
	point := mec.AccessPoint{ID: "cell"}
	point.Latitude, point.Longitude = &latitude, &longitude
	points := []mec.AccessPoint{point}
	require.NoError(t, mec.CheckAccessPoints(points))
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return mec.SetZone(ctx, tx, "east", points) }))

	a := w.explained(near("shop", "users: [east]"))
	require.Equal(t, "berlin", a.Plan.Assignments[0].Target.Node, "nobody is there, but there the access point is")
	require.Equal(t, map[string]string{"users": "users: 1 in zone east"}, a.Explanation.Components[0].Preferences)
	require.Zero(t, preferredOn(a, "nowhere")[0].Points)

	user := func(name string, latitude, longitude float64) {
		p := mec.Position{Address: name, ZoneID: "east", AccessPointID: "cell", At: time.Now()}
		p.Latitude, p.Longitude = &latitude, &longitude
		require.NoError(t, w.DB.Tx(store.WithSource(t.Context(), "/functions/test"), func(ctx context.Context, tx *store.Tx) error {
			return mec.Ingest(ctx, tx, []mec.Position{p})
		}))
	}
	user("sip:ann", 48.9, 2.3)
	user("sip:bob", 48.8, 2.4)
	a = w.explained(near("shop", "users: [east, west]"))
	require.Equal(t, "paris", a.Plan.Assignments[0].Target.Node, "the users of the zone have gone there")
	require.Contains(t, a.Explanation.Components[0].Preferences["users"], "zone west has no place that is known")
	id := w.submit(near("shop", "users: [east]"))
	w.place(id, false)
	require.Equal(t, "paris", w.where(id)["reader"])
}

// TestPlace_weighsCostsAndRecommendations: what is said of nodes counts by the difference of recommendation and cost, and from the
// worst node to the best, whatever its unit.
func TestPlace_weighsCostsAndRecommendations(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "n1", cores: 8, sca: 90}, node{name: "n2", cores: 4, sca: 80}, node{name: "n3", cores: 4, sca: 80})
	say := func(name string, all ...costs.Cost) string {
		id := w.submit(app(name, "reader: cpu: 1"))
		require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return costs.Replace(ctx, tx, id, "application", all) }))
		w.place(id, false)
		return w.where(id)["reader"]
	}
	require.Equal(t, "n1", say("nothing"))
	require.Equal(t, "n1", say("others", costs.Cost{Component: "writer", Node: "n3", Recommendation: 1}), "said of another component")
	require.Equal(t, "n1", say("equal", costs.Cost{Component: "reader", Node: "n1", Cost: 2}, costs.Cost{Component: "reader", Node: "n2", Cost: 2},
		costs.Cost{Component: "reader", Node: "n3", Cost: 2}), "all cost the same")
	require.Equal(t, "n2", say("dear", costs.Cost{Component: "reader", Node: "n1", Cost: 9}, costs.Cost{Component: "reader", Node: "n3", Cost: 9}))
	require.Equal(t, "n3", say("recommended", costs.Cost{Component: "reader", Node: "n3", Recommendation: 1e-6}), "the unit is nobody's business")
	require.Equal(t, "n3", say("both", costs.Cost{Component: "reader", Node: "n2", Recommendation: 5, Cost: 5},
		costs.Cost{Component: "reader", Node: "n3", Recommendation: 3, Cost: 1}), "what counts is the difference")
}

func TestPlace_followsTheAgentThatRecommends(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "n1", cores: 8, sca: 90}, node{name: "n2", cores: 4, sca: 80})
	id := w.submit(app("shop", "reader: cpu: 1"))
	_, err := w.DB.Exec(t.Context(), `insert into pdlc_recommendations (application, component, agent, nodes)
values ($1, 'reader', 'ppo', '{"edge/n1": 0.2, "edge/n2": 0.9}')`, id)
	require.NoError(t, err)
	stored, err := advice.Recommendations(t.Context(), w.DB, id)
	require.NoError(t, err)
	require.Len(t, stored, 1)
	w.place(id, false)
	require.Equal(t, "n2", w.where(id)["reader"])
}
