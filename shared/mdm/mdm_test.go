package mdm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var connector = uuid.MustParse("7c9e6679-7425-40de-944b-e07fc1f90ae7")

// entity and relation are events about things by their names, at a second.
func entity(kind, name string, at int, attributes string) string {
	return fmt.Sprintf(`{"connector_edf_id": %q, "connector_type": "test", "event_type": "upsert", "timestamp": %d,
		"payload": {"json_schema_ref": "urn:x:%s:1", "edf_id": %q, "identifier": %q %s}}`, connector, at, kind, mdm.EntityID(kind, name), name, attributes)
}

func relation(kind, from, to string, at int) string {
	return fmt.Sprintf(`{"connector_edf_id": %q, "connector_type": "test", "event_type": "upsert", "timestamp": %d,
		"payload": {"json_schema_ref": "urn:x:%s:1", "from_edf_id": %q, "to_edf_id": %q}}`, connector, at, kind, mdm.EntityID("node", from), mdm.EntityID("node", to))
}

func deletion(kind, name string, at int) string {
	return fmt.Sprintf(`{"connector_edf_id": %q, "connector_type": "test", "event_type": "delete", "timestamp": %d,
		"payload": {"json_schema_ref": "urn:x:%s:1", "edf_id": %q}}`, connector, at, kind, mdm.EntityID(kind, name))
}

func list(events ...string) string {
	text := "["
	for i, e := range events {
		if i > 0 {
			text += ","
		}
		text += e
	}
	return text + "]"
}

func publish(t *testing.T, db *store.DB, events ...string) mdm.Outcome {
	t.Helper()
	changes, err := mdm.Parse([]byte(list(events...)))
	require.NoError(t, err)
	var outcome mdm.Outcome
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		outcome, err = mdm.Publish(ctx, tx, changes)
		return err
	}))
	require.Equal(t, len(events), outcome.Events)
	return outcome
}

func state(t *testing.T, db *store.DB) *mdm.State {
	t.Helper()
	s, err := mdm.Measure(t.Context(), db)
	require.NoError(t, err)
	return s
}

func find(t *testing.T, db *store.DB, kind, filter string) []string {
	t.Helper()
	f, err := mdm.ParseFilter([]byte(filter))
	require.NoError(t, err)
	found, _, err := mdm.Find(t.Context(), db, kind, f, 0, 100)
	require.NoError(t, err)
	names := []string{}
	for _, e := range found {
		names = append(names, e.Identifier)
	}
	return names
}

func TestRepeatsAndEventsFromBeforeChangeNothing(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	require.Equal(t, 1, publish(t, db, entity("node", "a", 100, `, "cpu": 4`)).Applied)
	require.Equal(t, 0, publish(t, db, entity("node", "a", 100, `, "cpu": 4`)).Applied, "a repeat")
	require.Equal(t, 0, publish(t, db, entity("node", "a", 99, `, "cpu": 2`)).Applied, "from before")
	require.Equal(t, []string{"a"}, find(t, db, "node", `{"cpu": 4}`))
	require.Equal(t, 1, publish(t, db, entity("node", "a", 101, `, "cpu": 8`)).Applied)
	require.Equal(t, []string{"a"}, find(t, db, "node", `{"cpu": 8}`))

	require.Equal(t, 0, publish(t, db, deletion("node", "a", 100)).Applied, "a deletion from before")
	require.Equal(t, 1, publish(t, db, deletion("node", "a", 102)).Applied)
	require.Equal(t, 0, publish(t, db, deletion("node", "a", 102)).Applied)
	require.Equal(t, 0, publish(t, db, entity("node", "a", 101, "")).Applied, "what was deleted later does not come back")
	require.Equal(t, 1, publish(t, db, entity("node", "a", 103, "")).Applied)

	require.Equal(t, 0, publish(t, db, deletion("node", "b", 50)).Applied, "it comes before what it deletes")
	require.Equal(t, 0, publish(t, db, entity("node", "b", 49, "")).Applied)
	require.Equal(t, int64(1), state(t, db).Entities)
}

func TestABatchCountsInItsOrder(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	outcome := publish(t, db,
		entity("node", "a", 100, `, "step": 1`), entity("node", "a", 100, `, "step": 2`), entity("node", "b", 100, ""),
		relation("link", "a", "b", 100), deletion("node", "a", 100), entity("node", "a", 100, `, "step": 3`), relation("link", "b", "a", 100))
	require.Equal(t, 7, outcome.Applied)
	require.Equal(t, []string{"a"}, find(t, db, "node", `{"step": 3}`))
	around, err := mdm.Around(t.Context(), db, mdm.EntityID("node", "a"), 1)
	require.NoError(t, err)
	require.Len(t, around.Relations, 1, "the first went with its end")
	require.Equal(t, mdm.EntityID("node", "b"), around.Relations[0].Object.From)
}

func TestARelationWaitsForItsEndsAndGoesWithThem(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	publish(t, db, relation("link", "a", "b", 100))
	require.Equal(t, int64(1), state(t, db).Waiting)
	publish(t, db, entity("node", "a", 100, ""))
	around := func(hops int) *mdm.Surroundings {
		s, err := mdm.Around(t.Context(), db, mdm.EntityID("node", "a"), hops)
		require.NoError(t, err)
		return s
	}
	require.Empty(t, around(1).Relations)
	publish(t, db, entity("node", "b", 100, ""), entity("node", "c", 100, ""), relation("link", "c", "b", 100))
	require.Zero(t, state(t, db).Waiting)
	require.Len(t, around(1).Relations, 1)
	require.Len(t, around(1).Nodes, 2)
	require.Len(t, around(2).Nodes, 3, "against the direction of a relation")
	require.Len(t, around(0).Nodes, 1)

	publish(t, db, deletion("node", "b", 101))
	require.Zero(t, state(t, db).Relations)
	publish(t, db, relation("link", "a", "b", 100))
	require.Zero(t, state(t, db).Relations, "from before its end was deleted")
	publish(t, db, relation("link", "a", "b", 102))
	require.Equal(t, int64(1), state(t, db).Waiting)

	_, err := mdm.Around(t.Context(), db, uuid.New(), 1)
	require.Equal(t, problem.NotFound, problem.KindOf(err))
}

func TestAllFaultsOfABatchAreReported(t *testing.T) {
	t.Parallel()
	_, err := mdm.Parse([]byte(`[
		{"connector_edf_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7", "connector_type": "k8s", "event_type": "merge", "timestamp": 1,
			"payload": {"json_schema_ref": "urn:x:y", "edf_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7"}},
		{"connector_type": "k8s", "event_type": "delete", "timestamp": -1, "payload": {"json_schema_ref": "urn:x:y:1"}},
		{"connector_edf_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7", "connector_type": "", "event_type": "insert", "timestamp": 1e12,
			"payload": {"json_schema_ref": "urn:x:y:1", "from_edf_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7"}},
		{"connector_edf_id": "7c9e6679-7425-40de-944b-e07fc1f90ae7", "connector_type": "x", "event_type": "upsert", "timestamp": 1, "payload": 1}]`))
	var e *problem.Error
	require.ErrorAs(t, err, &e)
	var paths []string
	for _, f := range e.Fields {
		paths = append(paths, f.Path)
	}
	require.Equal(t, []string{
		"[0].event_type", "[0].payload.json_schema_ref", "[1].connector_edf_id", "[1].timestamp", "[1].payload.edf_id",
		"[2].connector_type", "[2].payload.to_edf_id", "[3].payload",
	}, paths)
}

func TestAnEntityKeepsItsType(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	publish(t, db, entity("node", "a", 100, ""))
	other, err := mdm.Parse(fmt.Appendf(nil, `{"connector_edf_id": %q, "connector_type": "test", "event_type": "upsert", "timestamp": 200,
		"payload": {"json_schema_ref": "urn:x:pod:1", "edf_id": %q}}`, connector, mdm.EntityID("node", "a")))
	require.NoError(t, err)
	err = db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := mdm.Publish(ctx, tx, other)
		return err
	})
	require.Equal(t, problem.Invalid, problem.KindOf(err))
	require.Equal(t, map[string]int64{"node": 1}, state(t, db).Types)
}

func TestFilters(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	publish(t, db, entity("node", "a", 1, `, "cpu": 4, "zone": "x", "tags": ["gpu"], "os": {"name": "linux"}`),
		entity("node", "b", 1, `, "cpu": 8, "zone": "y"`), entity("node", "c", 1, `, "cpu": "many"`), entity("pod", "p", 1, `, "cpu": 4`))
	for filter, want := range map[string][]string{
		`{}`:                            {"a", "b", "c"},
		`{"cpu": 4}`:                    {"a"},
		`{"cpu": "4"}`:                  {},
		`{"cpu": {"$gt": 4}}`:           {"b"},
		`{"cpu": {"$gte": 4}}`:          {"a", "b"},
		`{"cpu": {"$lt": 8, "$ne": 5}}`: {"a"},
		`{"zone": {"$ne": "x"}}`:        {"b", "c"},
		`{"zone": {"$in": ["x", "z"]}}`: {"a"},
		`{"zone": {"$exists": false}}`:  {"c"},
		`{"zone": {"$exists": true}}`:   {"a", "b"},
		`{"zone": {"$eq": "y"}}`:        {"b"},
		`{"tags": ["gpu"]}`:             {"a"},
		`{"os": {"name": "linux"}}`:     {"a"},
		`{"os": {"nam": "linux"}}`:      {},
		`{"identifier": "b"}`:           {"b"},
		`{"edf_id": "` + mdm.EntityID("node", "c").String() + `"}`: {"c"},
		`{"x' or '1'='1": 1}`: {},
	} {
		require.Equal(t, want, find(t, db, "node", filter), filter)
	}
	for _, bad := range []string{`[]`, `1`, `{"a": {"$where": 1}}`, `{"a": {"$in": 1}}`, `{"a": {"$exists": 1}}`} {
		_, err := mdm.ParseFilter([]byte(bad))
		require.Equal(t, problem.Invalid, problem.KindOf(err), bad)
	}
	attributes, err := mdm.Attributes(t.Context(), db, "node")
	require.NoError(t, err)
	require.Equal(t, mdm.Attribute{Name: "cpu", Types: []string{"number", "string"}, Count: 3}, attributes[0])
}

func TestConnectorsAreKnownByWhatTheySend(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	publish(t, db, entity("node", "a", 1, ""), entity("node", "b", 1, ""))
	one := func() mdm.Connector {
		all, err := mdm.Connectors(t.Context(), db)
		require.NoError(t, err)
		require.Len(t, all, 1)
		return all[0]
	}
	require.Equal(t, mdm.Healthy, one().Health)
	require.Equal(t, int64(2), one().Events)
	bad := fmt.Appendf(nil, `[{"connector_edf_id": %q, "connector_type": "test", "event_type": "upsert", "timestamp": 1, "payload": {}}]`, connector)
	_, err := mdm.Parse(bad)
	require.NoError(t, mdm.Refused(t.Context(), db, bad, err))
	require.Equal(t, mdm.Failing, one().Health)
	require.Contains(t, one().Refusal, "json_schema_ref")
	publish(t, db, entity("node", "a", 2, ""))
	require.Equal(t, mdm.Healthy, one().Health)
	_, err = db.Exec(t.Context(), `update mdm_connectors set heard_at = now() - interval '1 hour', refused_at = now() - interval '2 hours'`)
	require.NoError(t, err)
	require.Equal(t, mdm.Silent, one().Health)
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		c, err := mdm.Register(ctx, tx, mdm.Connector{ID: connector, Type: "test", Name: "The test", Interval: 3600})
		require.Equal(t, mdm.Healthy, c.Health)
		return err
	}))
}

func TestTheBusFollowsTheGraph(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	read := func(w mdm.Wish) (all []string) {
		require.NoError(t, bus.Changes(t.Context(), db, mdm.All, 0, 1<<40, func(v bus.Value) error {
			if said, wanted := w.Read(v); wanted {
				all = append(all, said.Type+" "+string(v.Key)[:len("mdm/xxxxxx")])
			}
			return nil
		}))
		return all
	}
	publish(t, db, entity("node", "a", 1, ""), entity("node", "b", 1, ""), entity("pod", "p", 1, ""), relation("link", "a", "b", 1))
	require.Len(t, read(mdm.Wish{}), 4)
	require.Len(t, read(mdm.Wish{Kind: "relation"}), 1)
	require.Len(t, read(mdm.Wish{Types: []string{"pod", "link"}}), 2)
	require.Len(t, read(mdm.Wish{ConnectorType: "other"}), 0)
	require.Len(t, read(mdm.Wish{Connector: &connector}), 4)
	a := mdm.EntityID("node", "a")
	require.Len(t, read(mdm.Wish{About: &a}), 2)
	publish(t, db, deletion("node", "a", 2))
	require.Equal(t, []string{"delete mdm/relati", "delete mdm/entity"}, read(mdm.Wish{EventType: mdm.Delete}))

	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		cleaned, err := mdm.Clean(ctx, tx)
		require.Equal(t, mdm.Cleaned{Entities: 2}, cleaned)
		return err
	}))
	require.Len(t, read(mdm.Wish{EventType: mdm.Delete}), 4)
	require.Empty(t, read(mdm.Wish{EventType: mdm.Upsert}))
}

func TestAnAttributeHidesNothing(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	publish(t, db, entity("node", "a", 1, `, "entity_type": "pod", "_id": "x", "cpu": 1e400`))
	f, err := mdm.ParseFilter([]byte(`{}`))
	require.NoError(t, err)
	found, _, err := mdm.Find(t.Context(), db, "node", f, 0, 1)
	require.NoError(t, err)
	text, err := json.Marshal(found[0])
	require.NoError(t, err)
	require.Contains(t, string(text), `"entity_type":"node"`)
	require.NotContains(t, string(text), `"_id":"x"`)
}
