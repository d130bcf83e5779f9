package match_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/match"
	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
)

func (w world) placeAll(s match.Settings, ids ...uuid.UUID) {
	w.Helper()
	require.NoError(w, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		return match.PlaceAll(ctx, tx, ids, s, "the test wants them")
	}))
}

// decisions returns the stored decisions about the application, oldest first.
func (w world) decisions(id uuid.UUID) []placement.Decision {
	w.Helper()
	entries, _, err := history.Before(context.Background(), w.DB, &id, math.MaxInt64, 100)
	require.NoError(w, err)
	var list []placement.Decision
	for _, e := range entries {
		if e.Data == nil {
			continue
		}
		var d placement.Decision
		require.NoError(w, json.Unmarshal(e.Data, &d))
		list = append(list, d)
	}
	return list
}

func TestPlaceAll_sharesWhatIsLeftBetweenApplications(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "large", cores: 4, sca: 90}, node{name: "small", cores: 2, sca: 10})
	little := w.submit(app("little", "x:cpu: 2")) // alone it would take the large node, and leave none for big
	big := w.submit(app("big", "x:cpu: 4"))
	gone := uuid.New()
	w.placeAll(settings, little, gone, big)
	require.Equal(t, map[string]string{"x": "small"}, w.where(little))
	require.Equal(t, map[string]string{"x": "large"}, w.where(big))
	require.Equal(t, 2, w.Published(events.ApplicationPlaced))
	w.placeAll(settings, little, big)
	require.Equal(t, 2, w.Published(events.ApplicationPlaced), "nothing is left to place")
}

// TestPlaceAll_leavesOutOwnUsage: if an application's limits refer to the usage of others, it is placed as if it were
// alone.
func TestPlaceAll_leavesOutOwnUsage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "a", cores: 8, sca: 90})
	document := func(components ...string) []byte {
		return append(app("shop", components...), "policies: [{name: busy, type: node-resource-usage, cpu_threshold_perc: 0.5}]\n"...)
	}
	id := w.submit(document("x:cpu: 1"))
	w.place(id, false)
	w.picture(using(node{name: "a", cores: 8, sca: 90, used: 60}, id.String(), 4.5))
	w.update(id, document("x:cpu: 1", "y:cpu: 1"))
	w.placeAll(settings, id, w.submit(app("other", "z:cpu: 100")))
	require.Equal(t, map[string]string{"x": "a", "y": "a"}, w.where(id))
}

func TestPlaceAll_saysWhatFitsNowhereToEachApplication(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.submit(app("one", "x:cpu: 2")), w.submit(app("two", "x:cpu: 2"))
	w.placeAll(settings, one, two)
	require.Equal(t, 2, w.Published(events.ApplicationUnplaced), "there is no telemetry yet")
	w.see(node{name: "a", cores: 3})
	w.placeAll(settings, one, two)
	placed := []string{w.where(one)["x"], w.where(two)["x"]}
	require.ElementsMatch(t, []string{"a", ""}, placed)
	require.Equal(t, 3, w.Published(events.ApplicationUnplaced))
}

func TestPlace_keepsItsReasonsWithTheDecision(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "a", cores: 4}, node{name: "b", cores: 4, sca: 50}, node{name: "c", cores: 1})
	id := w.submit(app("shop", "x:cpu: 2"))
	w.place(id, false)
	d := w.decisions(id)[0]
	require.Equal(t, "the test wants it", d.Because)
	require.True(t, d.Exact)
	require.Equal(t, d.Objective, d.Bound)
	require.Equal(t, "b", d.Assignments[0].Target.Node)
	require.Len(t, d.Why, 1)
	require.Contains(t, d.Why[0].Summary, "wins with")
	require.Equal(t, "b", d.Why[0].Nodes[0].Target.Node)
	require.Equal(t, "needs 2 cores, 1 free of 1", d.Why[0].Nodes[2].Failures[0].Detail)
	require.Equal(t, []int{2, 3}, []int{d.Why[0].Fit, d.Why[0].Of})
	require.Equal(t, "a", d.Why[0].RunnerUp.Node)

	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		a, err := application.Lock(ctx, tx, id)
		require.NoError(t, err)
		_, err = match.Move(ctx, tx, a, a.Jobs, "its score fell", settings)
		return err
	}))
	require.Equal(t, map[string]string{"x": "a"}, w.where(id))
	moved := w.decisions(id)[1]
	require.Equal(t, "its score fell", moved.Because)
	require.Equal(t, "a", moved.Why[0].Nodes[0].Target.Node, "a move keeps its reasons, too")

	big := w.submit(app("big", "x:cpu: 9"))
	w.place(big, false)
	refused := w.decisions(big)[0]
	require.False(t, refused.Why[0].Placed)
	require.Equal(t, map[placement.Rule]int{placement.RuleCPU: 3}, refused.Why[0].Rejections)
	require.NotNil(t, refused.Why[0].Relaxation, "what was refused is kept with what would make it fit")
}

func TestPlaceAll_keepsForEachApplicationWhatConcernsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "a", cores: 4}, node{name: "b", cores: 4})
	one, two := w.submit(app("one", "x:cpu: 2")), w.submit(app("two", "y:cpu: 9", "z:cpu: 2"))
	w.placeAll(settings, one, two)
	d := w.decisions(two)
	require.Len(t, d, 1, "what is placed and what waits is one decision")
	require.Equal(t, "the test wants them", d[0].Because)
	require.Equal(t, "y", d[0].Why[0].Component)
	require.Equal(t, "z", d[0].Why[1].Component)
	require.Equal(t, "z", d[0].Assignments[1].Component)
	raw, err := json.Marshal(d)
	require.NoError(t, err)
	require.NotContains(t, string(raw), two.String(), "names are those that the application gives")
	require.NotContains(t, string(raw), one.String())
}

func TestUntried_isWhatNobodyHasTriedToPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "a", cores: 4})
	unjudged := func(first uuid.UUID) []uuid.UUID {
		ids, err := match.Untried(context.Background(), w.DB, first)
		require.NoError(t, err)
		return ids
	}
	one, two, big := w.submit(app("one", "x:cpu: 1")), w.submit(app("two", "x:cpu: 1")), w.submit(app("big", "x:cpu: 9"))
	require.ElementsMatch(t, []uuid.UUID{one, two, big}, unjudged(two))
	require.Equal(t, two, unjudged(two)[0])
	w.place(one, false)
	w.place(big, false)
	require.Equal(t, []uuid.UUID{two}, unjudged(two), "one has a place, the other a reason to wait")
	require.Empty(t, unjudged(big))
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		a, err := application.Lock(ctx, tx, one)
		require.NoError(t, err)
		return a.Jobs[0].Displace(ctx, tx, "for the test", false)
	}))
	require.ElementsMatch(t, []uuid.UUID{one, two}, unjudged(one), "what was displaced waits anew")
}

func TestPlace_usesTheForecastWhereItIsToldTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	picture := taxonomy(node{name: "a", cores: 4, sca: 90}, node{name: "b", cores: 4})
	soonBusy := picture.Cluster["edge"].Node["a"]
	soonBusy.ForecastedMetrics.CPUUtilizationPrediction = topology.Known(90.0)
	picture.Cluster["edge"].Node["a"] = soonBusy
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := topology.Save(ctx, tx, picture, time.Now(), time.Minute)
		return err
	}))
	now, soon := w.submit(app("now", "x:cpu: 1")), w.submit(app("soon", "x:cpu: 1"))
	w.place(now, false)
	require.Equal(t, map[string]string{"x": "a"}, w.where(now))
	w.placeAll(match.Settings{Freshness: topology.Freshness{StaleAfter: time.Minute}, UseForecast: true}, soon)
	require.Equal(t, map[string]string{"x": "b"}, w.where(soon), "a tenth of four cores will be left on the other")
}

// TestPlaceAll_sharesWhatFitsIntoOneProblem: a problem must fit into the memory of a function.
func TestPlaceAll_sharesWhatFitsIntoOneProblem(t *testing.T) {
	t.Parallel()
	w := newWorld(t, many(1500)...)
	components := make([]string, 50)
	for i := range components {
		components[i] = fmt.Sprintf("x%d:cpu: 1", i)
	}
	var ids []uuid.UUID
	for i := range 4 {
		ids = append(ids, w.submit(app(fmt.Sprintf("app-%d", i), components...)))
	}
	w.placeAll(settings, ids...)
	for _, id := range ids {
		require.NotContains(t, slices.Collect(maps.Values(w.where(id))), "")
		d := w.decisions(id)
		require.Len(t, d, 1)
		require.Equal(t, 100, d[0].Placed, "two of them share one problem")
		require.Equal(t, 1500, d[0].Why[0].Of)
	}
}

// many returns that many nodes.
func many(n int) []node {
	nodes := make([]node, n)
	for i := range nodes {
		nodes[i] = node{name: fmt.Sprintf("n%04d", i), cores: 4}
	}
	return nodes
}

// TestPlaceAll_oneThatIsTooLargeKeepsNoOtherFromItsPlace: it waits with the reason, as it does when it is placed alone.
func TestPlaceAll_oneThatIsTooLargeKeepsNoOtherFromItsPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, many(2500)...)
	devices := make([]string, 4096) // times the nodes: beyond the limit of the engine
	for i := range devices {
		devices[i] = fmt.Sprintf("d/%d", i)
	}
	huge := w.submit(app("huge", "x:devices: ["+strings.Join(devices, ", ")+"]"))
	one, two := w.submit(app("one", "x:cpu: 1")), w.submit(app("two", "x:cpu: 1"))
	w.placeAll(settings, one, huge, two)
	for _, id := range []uuid.UUID{one, two} {
		require.NotEmpty(t, w.where(id)["x"])
	}
	waits := func() {
		a, err := application.Get(t.Context(), w.DB, huge)
		require.NoError(t, err)
		require.False(t, a.Jobs[0].Placed())
		require.Contains(t, a.Jobs[0].Conditions[0].Message, "the placement problem is too large")
		require.Equal(t, 1, w.Published(events.ApplicationUnplaced))
	}
	waits()
	w.placeAll(settings, huge)
	waits()
}
