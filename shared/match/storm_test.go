package match_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/match"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
)

func (w world) placeAll(s match.Settings, ids ...uuid.UUID) {
	w.Helper()
	require.NoError(w, w.tx(func(ctx context.Context, tx *store.Tx) error { return match.PlaceAll(ctx, tx, ids, s) }))
}

func TestPlaceAll_sharesWhatIsLeftBetweenApplications(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "large", cores: 4, sca: 90}, node{name: "small", cores: 2, sca: 10})
	little := w.submit(app("little", "x:cpu: 2")) // alone it would take the large node, and big would have none
	big := w.submit(app("big", "x:cpu: 4"))
	gone := uuid.New()
	w.placeAll(settings, little, gone, big)
	require.Equal(t, map[string]string{"x": "small"}, w.where(little))
	require.Equal(t, map[string]string{"x": "large"}, w.where(big))
	require.Equal(t, 2, w.count(events.ApplicationPlaced))
	w.placeAll(settings, little, big)
	require.Equal(t, 2, w.count(events.ApplicationPlaced), "nothing is left to place")
}

func TestPlaceAll_saysWhatFitsNowhereToEachApplication(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.submit(app("one", "x:cpu: 2")), w.submit(app("two", "x:cpu: 2"))
	w.placeAll(settings, one, two)
	require.Equal(t, 2, w.count(events.ApplicationUnplaced), "there is no telemetry yet")
	w.see(node{name: "a", cores: 3})
	w.placeAll(settings, one, two)
	placed := []string{w.where(one)["x"], w.where(two)["x"]}
	require.ElementsMatch(t, []string{"a", ""}, placed)
	require.Equal(t, 3, w.count(events.ApplicationUnplaced))
}

func TestPlace_keepsItsReasonsWithTheDecision(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "a", cores: 4}, node{name: "b", cores: 4, sca: 50}, node{name: "c", cores: 1})
	id := w.submit(app("shop", "x:cpu: 2"))
	w.place(id, false)
	entries, err := history.Tail(context.Background(), w.db, &id, 100)
	require.NoError(t, err)
	var d match.Decision
	for _, e := range entries {
		if e.Event == "application.placed" {
			require.NoError(t, json.Unmarshal(e.Data, &d))
		}
	}
	require.True(t, d.Exact)
	require.Equal(t, d.Objective, d.Bound)
	require.Equal(t, "b", d.Assignments[0].Target.Node)
	require.Len(t, d.Why, 1)
	require.Contains(t, d.Why[0].Summary, "wins with")
	require.Equal(t, "b", d.Why[0].Nodes[0].Target.Node)
	require.Equal(t, "needs 2 cores, 1 free of 1", d.Why[0].Nodes[2].Failures[0].Detail)
}

func TestPlace_usesTheForecastWhereItIsToldTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	picture := taxonomy(node{name: "a", cores: 4, sca: 90}, node{name: "b", cores: 4})
	soonBusy := picture.Cluster["edge"].Node["a"]
	soonBusy.ForecastedMetrics.CPUUtilizationPrediction = topology.Known(90.0)
	picture.Cluster["edge"].Node["a"] = soonBusy
	require.NoError(t, w.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := topology.Save(ctx, tx, picture, time.Now(), time.Minute)
		return err
	}))
	now, soon := w.submit(app("now", "x:cpu: 1")), w.submit(app("soon", "x:cpu: 1"))
	w.place(now, false)
	require.Equal(t, map[string]string{"x": "a"}, w.where(now))
	w.placeAll(match.Settings{StaleAfter: time.Minute, UseForecast: true}, soon)
	require.Equal(t, map[string]string{"x": "b"}, w.where(soon), "a tenth of four cores will be left on the other")
}
