package match_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/match"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
)

func (w world) update(id uuid.UUID, document []byte) {
	w.Helper()
	require.NoError(w, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := applicationtest.Update(ctx, tx, id, document, time.Minute)
		return err
	}))
}

// displace removes the component from its place, as when its node is lost.
func (w world) displace(id uuid.UUID, components ...string) {
	w.Helper()
	require.NoError(w, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		a, err := application.Lock(ctx, tx, id)
		require.NoError(w, err)
		for _, j := range a.Jobs {
			for _, name := range components {
				if j.Component == name {
					require.NoError(w, j.Displace(ctx, tx, "its node is lost", false))
				}
			}
		}
		return nil
	}))
}

// TestPlace_givesUpNothingThatRuns: two waiting components are more than a running one, but its place is taken.
func TestPlace_givesUpNothingThatRuns(t *testing.T) {
	t.Parallel()
	small, large := node{name: "a", cores: 4}, node{name: "b", cores: 5}
	three := app("shop", "x:cpu: 3", "y:cpu: 2", "z:cpu: 2")
	alone := map[string]string{"x": "a", "y": "", "z": ""}
	t.Run("when others are displaced", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, small)
		id := w.submit(app("shop", "x:cpu: 3"))
		w.place(id, false)
		w.see(small, large)
		w.update(id, three)
		w.place(id, false)
		require.Equal(t, map[string]string{"x": "a", "y": "b", "z": "b"}, w.where(id))
		w.see(small)
		w.displace(id, "y", "z")
		w.place(id, false)
		require.Equal(t, alone, w.where(id))

		other := w.submit(app("other", "x:cpu: 2", "y:cpu: 2"))
		require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
			return match.PlaceAll(ctx, tx, []uuid.UUID{id, other}, settings, "there are two")
		}))
		require.Equal(t, alone, w.where(id))
		require.Equal(t, map[string]string{"x": "", "y": ""}, w.where(other))
	})
	t.Run("when an update adds others", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, small)
		id := w.submit(app("shop", "x:cpu: 3"))
		w.place(id, false)
		w.update(id, three)
		w.place(id, true)
		require.Equal(t, alone, w.where(id))
		answer, err := match.Explain(t.Context(), w.DB, id, settings)
		require.NoError(t, err)
		require.Equal(t, "a", answer.Plan.Assignments[0].Target.Node, "it is explained where it is")
	})
}

// TestPlace_whatStaysHasChosenTheOrchestrator: the other components wait for room there instead of going elsewhere.
func TestPlace_whatStaysHasChosenTheOrchestrator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	see := func(other bool) {
		picture := taxonomy(node{name: "a", cores: 4})
		if other {
			far := taxonomy(node{name: "n", cores: 8}).Cluster["edge"]
			far.Name, far.Type = "far", "nuvla"
			picture.Cluster["far"] = far
		}
		w.picture(picture)
	}
	see(false)
	id := w.submit(app("shop", "x:cpu: 3"))
	w.place(id, false)
	see(true)
	w.update(id, app("shop", "x:cpu: 3", "y:cpu: 2", "z:cpu: 2"))
	w.place(id, false)
	require.Equal(t, map[string]string{"x": "a", "y": "", "z": ""}, w.where(id))
}

// TestPlace_theUserFixesPlacesOfTwoOrchestrators: whether or not the targets name the orchestrators, as long as the
// places have one.
func TestPlace_theUserFixesPlacesOfTwoOrchestrators(t *testing.T) {
	t.Parallel()
	in := func(targets ...string) []byte {
		var b strings.Builder
		b.WriteString("name: shop\ncomponents:\n")
		for i, target := range targets {
			fmt.Fprintf(&b, "  - {name: x%d, type: kubernetes, targets: [{%s}], requirements: {cpu: 1}, manifests: [{name: x, manifest: {apiVersion: v1, kind: Pod, metadata: {name: x%d}}}]}\n", i, target, i)
		}
		return []byte(b.String())
	}
	for name, row := range map[string]struct {
		targets []string
		placed  int
	}{
		"by cluster":             {[]string{"cluster_name: edge", "cluster_name: far"}, 2},
		"by node":                {[]string{"node_name: a", "node_name: n"}, 2},
		"one by name":            {[]string{"cluster_name: edge, orchestrator: ocm", "cluster_name: far"}, 2},
		"both by name":           {[]string{"cluster_name: edge, orchestrator: ocm", "cluster_name: far, orchestrator: nuvla"}, 2},
		"a node that is in both": {[]string{"node_name: both", "cluster_name: edge"}, 2},
		"what is not there":      {[]string{"cluster_name: gone", "cluster_name: far"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			picture := taxonomy(node{name: "a", cores: 4}, node{name: "both", cores: 4})
			far := taxonomy(node{name: "n", cores: 4}, node{name: "both", cores: 8}).Cluster["edge"]
			far.Name, far.Type = "far", "nuvla"
			picture.Cluster["far"] = far
			w.picture(picture)
			id := w.submit(in(row.targets...))
			w.place(id, false)
			placed, orchestrators := 0, map[string]bool{}
			a, err := application.Get(t.Context(), w.DB, id)
			require.NoError(t, err)
			for _, j := range a.Jobs {
				if j.Placed() {
					placed++
					orchestrators[j.Orchestrator] = true
				}
			}
			require.Equal(t, row.placed, placed)
			require.Equal(t, name == "a node that is in both" || row.placed == 1, len(orchestrators) == 1,
				"where the user leaves a choice, they share one")
		})
	}
}

// using returns the node with a pod of the instance that uses that many cores, and the total usage.
func using(n node, instance string, cores float64) *topology.Taxonomy {
	picture := taxonomy(n)
	at := picture.Cluster["edge"].Node[n.name]
	at.Pod = map[string]topology.Pod{"p": {
		Workload:  map[string]topology.Workload{"w": {AppInstance: instance}},
		Container: map[string]topology.Container{"c": {CPUUsage: topology.Known(cores)}},
	}}
	picture.Cluster["edge"].Node[n.name] = at
	return picture
}

// TestPlace_anUpdateMovesNothingForItsOwnLoadOrAShortSilence: without an update neither would move it.
func TestPlace_anUpdateMovesNothingForItsOwnLoadOrAShortSilence(t *testing.T) {
	t.Parallel()
	document := func(text string) []byte {
		return append(app("shop", "x:cpu: 1"), "description: "+text+"\npolicies: [{name: busy, type: node-resource-usage, cpu_threshold_perc: 0.5}]\n"...)
	}
	w := newWorld(t, node{name: "a", cores: 4, sca: 90})
	id := w.submit(document("one"))
	w.place(id, false)
	require.Equal(t, map[string]string{"x": "a"}, w.where(id))
	picture := using(node{name: "a", cores: 4, sca: 90, used: 75}, id.String(), 3)
	picture.Cluster["edge"].Node["b"] = taxonomy(node{name: "b", cores: 8}).Cluster["edge"].Node["b"]
	w.picture(picture)
	w.update(id, document("two"))
	w.place(id, true)
	require.Equal(t, map[string]string{"x": "a"}, w.where(id), "three of the cores in use are its own")

	w.hush(10 * time.Minute)
	w.see(node{name: "a", cores: 4, sca: 90, silent: 30 * time.Second}, node{name: "b", cores: 8})
	w.update(id, document("three"))
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		return match.Place(ctx, tx, id, match.Settings{Freshness: topology.Freshness{StaleAfter: 10 * time.Second}}, true, "test")
	}))
	require.Equal(t, map[string]string{"x": "a"}, w.where(id), "it bears a minute of silence")

	w.see(node{name: "a", cores: 4, sca: 90, used: 75}, node{name: "b", cores: 8})
	preview, err := w.dryRun(document("three"), &id)
	require.NoError(t, err)
	require.Zero(t, preview.Changes, "the same document moves nothing, though others now use its node")
	w.update(id, document("four"))
	w.place(id, true)
	require.Equal(t, map[string]string{"x": "b"}, w.where(id))
}

// hush sets when all nodes were last seen: the stored time never goes back otherwise.
func (w world) hush(ago time.Duration) {
	w.Helper()
	_, err := w.DB.Exec(context.Background(), "update nodes set last_seen = last_seen - $1::interval", ago)
	require.NoError(w, err)
}

// TestPlace_anUpdateMovesNothingForASilenceThatMeansNothing: neither if all telemetry was missing, nor if only
// another component's policy does not tolerate it.
func TestPlace_anUpdateMovesNothingForASilenceThatMeansNothing(t *testing.T) {
	t.Parallel()
	t.Run("telemetry was away", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, node{name: "a", cores: 4, sca: 90}, node{name: "b", cores: 4, sca: 10})
		id := w.submit(app("shop", "x:cpu: 1"))
		w.place(id, false)
		picture := taxonomy(node{name: "a", cores: 4, sca: 90, silent: 10 * time.Minute}, node{name: "b", cores: 4, sca: 10})
		picture.Timestamp.SilentUntil = topology.Known(float64(time.Now().Add(-time.Second).Unix()))
		w.hush(10 * time.Minute)
		w.picture(picture)
		w.update(id, append(app("shop", "x:cpu: 1"), "description: two\n"...))
		w.place(id, true)
		require.Equal(t, map[string]string{"x": "a"}, w.where(id))
	})
	t.Run("another bears less", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, node{name: "a", cores: 4, sca: 10}, node{name: "b", cores: 1, sca: 90})
		document := func(text string) []byte {
			return append(app("shop", "x:cpu: 1", "y:cpu: 2"),
				"description: "+text+"\npolicies: [{component: x, redeployOnLostTelemetry: 20s}]\n"...)
		}
		id := w.submit(document("one"))
		w.place(id, false)
		require.Equal(t, map[string]string{"x": "b", "y": "a"}, w.where(id))
		w.hush(10 * time.Minute)
		w.see(node{name: "a", cores: 4, sca: 10, silent: 30 * time.Second}, node{name: "b", cores: 4, sca: 90})
		w.update(id, document("two"))
		w.place(id, true)
		require.Equal(t, map[string]string{"x": "b", "y": "a"}, w.where(id))
	})
}

// TestPlace_anUpdateMovesNothingFromANodeThatTelemetryShowsNoMore: the stored state of the node decides whether and
// when its components are displaced. If nothing is stored, nothing else would ever displace them, so the update does.
func TestPlace_anUpdateMovesNothingFromANodeThatTelemetryShowsNoMore(t *testing.T) {
	t.Parallel()
	document := func(text string) []byte {
		return append(app("shop", "x:cpu: 1"), "description: "+text+"\npolicies: [{redeployOnLostTelemetry: 1h}]\n"...)
	}
	for name, known := range map[string]bool{"until its time is up": true, "unless nothing is known of it": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, node{name: "a", cores: 4, sca: 90}, node{name: "b", cores: 4})
			id := w.submit(document("one"))
			w.place(id, false)
			require.Equal(t, map[string]string{"x": "a"}, w.where(id))
			_, err := w.DB.Exec(t.Context(), "update nodes set last_seen = last_seen - interval '31 minutes' where node = 'a'")
			require.NoError(t, err)
			if !known {
				_, err := w.DB.Exec(t.Context(), "delete from nodes where node = 'a'")
				require.NoError(t, err)
			}
			w.see(node{name: "b", cores: 4})
			w.update(id, document("two"))
			w.place(id, true)
			if !known {
				require.Equal(t, map[string]string{"x": "b"}, w.where(id))
				return
			}
			require.Equal(t, map[string]string{"x": "a"}, w.where(id), "it bears an hour")
			require.Equal(t, []uuid.UUID{id}, w.updatePending(), "it is looked at again when something is known")

			_, err = w.DB.Exec(t.Context(), "update nodes set last_seen = last_seen - interval '30 minutes' where node = 'a'")
			require.NoError(t, err)
			require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return application.DisplaceLost(ctx, tx, id) }))
			w.place(id, true)
			require.Equal(t, map[string]string{"x": "b"}, w.where(id))
			require.Empty(t, w.updatePending())
		})
	}
}

// TestPlace_saysWhatAnUpdateAsksForInVain: the component stays, degraded, until a node has what it needs.
func TestPlace_saysWhatAnUpdateAsksForInVain(t *testing.T) {
	t.Parallel()
	document := func(level string) []byte {
		return append(app("shop", "x:cpu: 1"), "policies: [{security: "+level+"}]\n"...)
	}
	start := func(t *testing.T) (world, uuid.UUID) {
		t.Helper()
		w := newWorld(t, node{name: "a", cores: 4, sca: 60})
		id := w.submit(document("medium"))
		w.place(id, false)
		w.run(id)
		w.update(id, document("high"))
		w.place(id, true)
		a, err := application.Get(t.Context(), w.DB, id)
		require.NoError(t, err)
		require.Equal(t, job.Degraded, a.Jobs[0].State)
		require.Contains(t, a.Jobs[0].Conditions[0].Message, "security")
		require.Equal(t, 1, w.Published(events.ApplicationUnplaced))
		answer, err := match.Explain(t.Context(), w.DB, id, settings)
		require.NoError(t, err)
		require.Contains(t, answer.Explanation.Components[0].Summary, "none of 1 node")
		require.Contains(t, answer.Explanation.Components[0].Summary, "it stays on")
		again, err := application.Misplaced(t.Context(), w.DB, uuid.Nil, 10)
		require.NoError(t, err)
		require.Equal(t, []uuid.UUID{id}, again)
		return w, id
	}
	retry := func(w world, id uuid.UUID) {
		require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return match.RetryMisplaced(ctx, tx, id, settings) }))
	}
	t.Run("and goes where it is", func(t *testing.T) {
		t.Parallel()
		w, id := start(t)
		retry(w, id)
		require.Equal(t, 1, w.Published(events.ApplicationUnplaced), "that is no news")
		w.see(node{name: "a", cores: 4, sca: 60}, node{name: "b", cores: 4, sca: 95})
		retry(w, id)
		require.Equal(t, map[string]string{"x": "b"}, w.where(id))
	})
	t.Run("and is well when it is taken back", func(t *testing.T) {
		t.Parallel()
		w, id := start(t)
		w.update(id, document("medium"))
		w.place(id, true)
		a, err := application.Get(t.Context(), w.DB, id)
		require.NoError(t, err)
		require.Equal(t, job.Finished, a.Jobs[0].State)
		again, err := application.Misplaced(t.Context(), w.DB, uuid.Nil, 10)
		require.NoError(t, err)
		require.Empty(t, again)
	})
}

// TestMove_doesNotDecideByAnOldPicture: a component that should leave stays until the infrastructure has been read
// again.
func TestMove_doesNotDecideByAnOldPicture(t *testing.T) {
	t.Parallel()
	nodes := []node{{name: "a", cores: 4, sca: 90}, {name: "b", cores: 4, sca: 10}}
	w := newWorld(t, nodes...)
	id := w.submit(app("shop", "x:cpu: 1"))
	w.place(id, false)
	w.run(id)
	_, err := w.DB.Exec(t.Context(), "update topology set at = at - $1::interval", topology.Fresh+time.Minute)
	require.NoError(t, err)
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		a, err := application.Lock(ctx, tx, id)
		require.NoError(t, err)
		_, err = match.Move(ctx, tx, a, a.Jobs, "policy hot is violated", settings)
		return err
	}))
	retry := func() {
		require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return match.RetryMisplaced(ctx, tx, id, settings) }))
	}
	retry()
	require.Equal(t, map[string]string{"x": "a"}, w.where(id))
	a, err := application.Get(t.Context(), w.DB, id)
	require.NoError(t, err)
	require.Equal(t, job.Degraded, a.Jobs[0].State)
	require.Contains(t, a.Jobs[0].Conditions[0].Message, "policy hot is violated: the last telemetry is of ")
	require.Equal(t, 1, w.Published(events.ApplicationUnplaced), "the aggregator is asked to look")

	w.see(nodes...)
	retry()
	require.Equal(t, map[string]string{"x": "b"}, w.where(id))
}

// TestPlace_isDrawnToWhatStaysOnASilentNode: a component on a silent node still counts for affinities.
func TestPlace_isDrawnToWhatStaysOnASilentNode(t *testing.T) {
	t.Parallel()
	document := func(components ...string) []byte {
		return []byte("name: shop\npolicies: [{redeployOnLostTelemetry: 1h}]\ncomponents:\n" + strings.Join(components, ""))
	}
	component := func(name, way string) string {
		return fmt.Sprintf("  - {name: %[1]s, type: kubernetes, communication: [{%[2]s: s}], requirements: {cpu: 1}, manifests: [{name: %[1]s, manifest: {apiVersion: v1, kind: Pod, metadata: {name: %[1]s}}}]}\n", name, way)
	}
	x, y := component("x", "outgoing"), component("y", "incoming")
	w := newWorld(t)
	see := func(silent time.Duration) {
		picture := taxonomy(node{name: "a", cores: 4, sca: 90, silent: silent}, node{name: "b", cores: 4, sca: 40})
		far := taxonomy(node{name: "n", cores: 4, sca: 50}).Cluster["edge"]
		far.Name = "far"
		picture.Cluster["far"] = far
		w.picture(picture)
	}
	see(0)
	id := w.submit(document(x))
	w.place(id, false)
	require.Equal(t, map[string]string{"x": "a"}, w.where(id))
	w.hush(10 * time.Minute)
	see(2 * time.Minute)
	w.update(id, document(x, y))
	w.place(id, true)
	require.Equal(t, map[string]string{"x": "a", "y": "b"}, w.where(id))
}

// TestPlace_anUpdateMovesNothingOnTheEdgeOfSilence: a silence of exactly the tolerated length is not too long.
func TestPlace_anUpdateMovesNothingOnTheEdgeOfSilence(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "a", cores: 4, sca: 90}, node{name: "b", cores: 4, sca: 40})
	id := w.submit(app("shop", "x:cpu: 1"))
	w.place(id, false)
	require.Equal(t, map[string]string{"x": "a"}, w.where(id))
	w.hush(10 * time.Minute)
	picture := taxonomy(node{name: "a", cores: 4, sca: 90}, node{name: "b", cores: 4, sca: 40})
	b := picture.Cluster["edge"].Node["b"]
	seen, _ := b.SeenAt()
	at := seen.Add(settings.StaleAfter)
	b.LastSeen = topology.Known(float64(at.Unix()))
	picture.Cluster["edge"].Node["b"] = b
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := topology.Save(ctx, tx, picture, at, settings.StaleAfter)
		return err
	}))
	w.update(id, append(app("shop", "x:cpu: 1"), "description: two\n"...))
	w.place(id, true)
	require.Equal(t, map[string]string{"x": "a"}, w.where(id))
}

// TestExplain_ofWhatIsOnASilentNode says that it stays there for now, and where it could go.
func TestExplain_ofWhatIsOnASilentNode(t *testing.T) {
	t.Parallel()
	nodes := map[string][]node{
		"silent":  {{name: "a", cores: 4, silent: 2 * time.Minute}, {name: "b", cores: 4}},
		"unknown": {{name: "b", cores: 4}},
	}
	for name, seen := range nodes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, node{name: "a", cores: 4, sca: 90}, node{name: "b", cores: 4})
			id := w.submit(append(app("shop", "x:cpu: 1"), "policies: [{redeployOnLostTelemetry: 1h}]\n"...))
			w.place(id, false)
			require.Equal(t, map[string]string{"x": "a"}, w.where(id))
			w.hush(10 * time.Minute)
			w.see(seen...)
			answer, err := match.Explain(t.Context(), w.DB, id, settings)
			require.NoError(t, err)
			c := answer.Explanation.Components[0]
			require.True(t, c.Placed)
			require.Equal(t, "a", c.Target.Node)
			require.Nil(t, c.Relaxation, "nothing was asked for that keeps it from a place")
			for _, n := range c.Nodes {
				require.Equal(t, n.Target == c.Target, n.Chosen, n.Target)
			}
			require.Regexp(t, "^ocm/edge/b is the only .*it stays on edge/a until its node counts as lost", c.Summary)
		})
	}
}

// TestExplain_ofWhatWaits gives the reason: no running component makes room for it.
func TestExplain_ofWhatWaits(t *testing.T) {
	t.Parallel()
	large, small := node{name: "a", cores: 4}, node{name: "b", cores: 2}
	w := newWorld(t, large)
	id := w.submit(app("shop", "x:cpu: 2"))
	w.place(id, false)
	w.update(id, app("shop", "x:cpu: 2", "y:cpu: 4"))
	w.see(large, small)
	w.place(id, false)
	require.Equal(t, map[string]string{"x": "a", "y": ""}, w.where(id))
	answer, err := match.Explain(t.Context(), w.DB, id, settings)
	require.NoError(t, err)
	x, y := answer.Explanation.Components[0], answer.Explanation.Components[1]
	require.Equal(t, "a", x.Target.Node)
	require.Contains(t, x.Summary, "it stays where it is")
	require.False(t, y.Placed)
	require.Equal(t, "needs 4 cores, 2 free of 4, 2 reserved by shop/x", y.Nodes[0].Failures[0].Detail)
}

// TestExplain_ofWhatCannotLeave says what excludes it from the other nodes. An unsuccessful attempt to move it does not
// change its reason.
func TestExplain_ofWhatCannotLeave(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "a", cores: 4, sca: 60}, node{name: "b", cores: 0.5, sca: 60})
	id := w.submit(app("shop", "x:cpu: 1"))
	w.place(id, false)
	w.run(id)
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		locked, err := application.Lock(ctx, tx, id)
		require.NoError(t, err)
		_, err = match.Move(ctx, tx, locked, locked.Jobs, "policy hot is violated (value 95)", settings)
		return err
	}))
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return match.RetryMisplaced(ctx, tx, id, settings) }))
	a, err := application.Get(t.Context(), w.DB, id)
	require.NoError(t, err)
	require.Contains(t, a.Jobs[0].Conditions[0].Message, "policy hot is violated (value 95)")
	answer, err := match.Explain(t.Context(), w.DB, id, settings)
	require.NoError(t, err)
	require.Contains(t, answer.Explanation.Components[0].Summary, "none of 2 nodes")
	require.Contains(t, answer.Explanation.Components[0].Summary, "it stays on edge/a")
}

// TestRetry_namesThePlaceItLeavesOnce: although two rules exclude it, the violation and the move itself.
func TestRetry_namesThePlaceItLeavesOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "a", cores: 4, sca: 60})
	id := w.submit(app("shop", "x:cpu: 1"))
	w.place(id, false)
	w.run(id)
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		a, err := application.Lock(ctx, tx, id)
		require.NoError(t, err)
		_, err = match.Move(ctx, tx, a, a.Jobs, "policy hot is violated (value 95)", settings)
		return err
	}))
	w.see(node{name: "a", cores: 4, sca: 60}, node{name: "b", cores: 4, sca: 60})
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error { return match.RetryMisplaced(ctx, tx, id, settings) }))
	require.Equal(t, map[string]string{"x": "b"}, w.where(id))
	decisions := w.decisions(id)
	left := decisions[len(decisions)-1].Why[0].Nodes[1]
	require.Equal(t, "a", left.Target.Node)
	require.Equal(t, "excluded as ocm/edge/a", left.Failures[0].Detail)
}

func (w world) status(id uuid.UUID) application.Status {
	w.Helper()
	a, err := application.Get(w.Context(), w.DB, id)
	require.NoError(w, err)
	status, message := a.Status()
	require.Equal(w, status == application.Deploying, message == "the update is yet to be looked at", message)
	return status
}

func (w world) updatePending() []uuid.UUID {
	w.Helper()
	found, err := application.UpdatePending(w.Context(), w.DB, uuid.Nil, 10)
	require.NoError(w, err)
	return found
}

// TestPlace_judgesAnUpdate: a component that ran before the update counts as available only after the matchmaker has
// checked whether it may stay.
func TestPlace_judgesAnUpdate(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) (world, uuid.UUID) {
		t.Helper()
		w := newWorld(t, node{name: "a", cores: 4})
		id := w.submit(app("shop", "x:cpu: 1"))
		w.place(id, false)
		w.run(id)
		require.Equal(t, application.Available, w.status(id))
		require.Empty(t, w.updatePending())
		w.update(id, app("shop", "x:cpu: 2"))
		require.Equal(t, application.Deploying, w.status(id))
		require.Equal(t, []uuid.UUID{id}, w.updatePending())
		return w, id
	}
	t.Run("that moves nothing", func(t *testing.T) {
		t.Parallel()
		w, id := start(t)
		w.place(id, true)
		require.Equal(t, application.Available, w.status(id))
		require.Empty(t, w.updatePending())
	})
	t.Run("with those after it", func(t *testing.T) {
		t.Parallel()
		w, id := start(t)
		w.update(id, app("shop", "x:cpu: 8"))
		w.place(id, true) // for the first of the two
		require.Equal(t, application.Degraded, w.status(id), "the second was looked at")
		w.update(id, app("shop", "x:cpu: 1"))
		w.place(id, true) // for the second
		require.Equal(t, application.Available, w.status(id))
	})
	t.Run("not where nothing may move", func(t *testing.T) {
		t.Parallel()
		w, id := start(t)
		w.place(id, false)
		require.Equal(t, application.Deploying, w.status(id))
	})
	t.Run("not while nothing is known of the infrastructure", func(t *testing.T) {
		t.Parallel()
		w, id := start(t)
		_, err := w.DB.Exec(t.Context(), "update topology set at = at - $1::interval", topology.Fresh+time.Minute)
		require.NoError(t, err)
		w.place(id, true)
		require.Equal(t, application.Deploying, w.status(id))
		require.Equal(t, []uuid.UUID{id}, w.updatePending(), "it is looked at again when something is")
	})
	t.Run("not while nobody knows how it is where it runs", func(t *testing.T) {
		t.Parallel()
		w, id := start(t)
		w.update(id, app("shop", "x:cpu: 8"))
		look := func(silent time.Duration) {
			w.hush(time.Hour)
			w.see(node{name: "a", cores: 4, silent: silent}, node{name: "b", cores: 8})
			require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
				return match.Place(ctx, tx, id, match.Settings{Freshness: topology.Freshness{StaleAfter: 10 * time.Second}}, true, "test")
			}))
		}
		look(30 * time.Second)
		require.Equal(t, map[string]string{"x": "a"}, w.where(id))
		require.Equal(t, application.Deploying, w.status(id))
		require.Equal(t, []uuid.UUID{id}, w.updatePending(), "it is looked at again when it is heard of")
		look(0)
		require.Equal(t, map[string]string{"x": "b"}, w.where(id))
		require.Empty(t, w.updatePending())
	})
	t.Run("at the latest when its node is lost", func(t *testing.T) {
		t.Parallel()
		w, id := start(t)
		w.update(id, app("shop", "x:cpu: 8"))
		w.hush(time.Hour)
		w.see(node{name: "a", cores: 4, silent: 10 * time.Minute}, node{name: "b", cores: 4})
		w.displace(id, "x")
		w.place(id, false)
		require.Equal(t, []uuid.UUID{id}, w.updatePending())
		w.place(id, true)
		require.Empty(t, w.updatePending())
		require.Equal(t, application.Pending, w.status(id), "no other node has what it asks for")
	})
	t.Run("unless it is stopped meanwhile", func(t *testing.T) {
		t.Parallel()
		w, id := start(t)
		change := func(to func(context.Context, *store.Tx) error) { require.NoError(t, w.Tx(to)) }
		change(func(ctx context.Context, tx *store.Tx) error { _, err := application.Stop(ctx, tx, id); return err })
		w.update(id, app("shop", "x:cpu: 3"))
		w.place(id, true)
		require.Empty(t, w.updatePending())
		change(func(ctx context.Context, tx *store.Tx) error {
			_, err := application.Start(ctx, tx, id, time.Minute)
			return err
		})
		require.Empty(t, w.updatePending(), "all of it gets a place by what is wanted now")
		require.Equal(t, application.Pending, w.status(id))
	})
}

// TestPlace_aListOfNodesMovesNoneThatStaysInIt: a replica is identified by the node that it asks for, wherever that is
// in the list. Each row lists the nodes again, and the jobs say where the replicas are then.
func TestPlace_aListOfNodesMovesNoneThatStaysInIt(t *testing.T) {
	t.Parallel()
	on := func(values string) []byte {
		if values == "" {
			return app("shop", "x:cpu: 1")
		}
		return app("shop", "x:cpu: 1, nodelabel: {key: robot, values: ["+values+"]}")
	}
	for name, row := range map[string]struct {
		lists   []string
		changes []int          // in a preview of each list, and of one where only the list differs
		cleans  int            // copies that all replicas leave behind
		at      map[int]string // replica -> node
	}{
		"the first is taken out":  {[]string{"r2, r3"}, []int{1}, 0, map[int]string{1: "r2", 2: "r3"}},
		"one in the middle":       {[]string{"r1, r3"}, []int{1}, 0, map[int]string{0: "r1", 2: "r3"}},
		"all but the last":        {[]string{"r3"}, []int{2}, 0, map[int]string{2: "r3"}},
		"they change places":      {[]string{"r3, r1, r2"}, []int{1}, 0, map[int]string{0: "r1", 1: "r2", 2: "r3"}},
		"one more, at the front":  {[]string{"r4, r1, r2, r3"}, []int{1}, 0, map[int]string{0: "r1", 1: "r2", 2: "r3", 3: "r4"}},
		"one for another":         {[]string{"r4, r2, r3"}, []int{1}, 1, map[int]string{0: "r4", 1: "r2", 2: "r3"}},
		"out and in again":        {[]string{"r2, r3", "r2, r3, r1"}, []int{1, 1}, 1, map[int]string{0: "r1", 1: "r2", 2: "r3"}},
		"out, and another in":     {[]string{"r2, r3", "r4, r2, r3"}, []int{1, 1}, 1, map[int]string{0: "r4", 1: "r2", 2: "r3"}},
		"out twice":               {[]string{"r2, r3", "r3"}, []int{1, 1}, 0, map[int]string{2: "r3"}},
		"anywhere, then anywhere": {[]string{"r2", "", ""}, []int{2, 1, 0}, 0, map[int]string{1: "r2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			picture := taxonomy(node{name: "r1", cores: 4}, node{name: "r2", cores: 4}, node{name: "r3", cores: 4}, node{name: "r4", cores: 4})
			for name, n := range picture.Cluster["edge"].Node {
				n.Labels = map[string]string{"robot": name}
				picture.Cluster["edge"].Node[name] = n
			}
			w.picture(picture)
			id := w.submit(on("r1, r2, r3"))
			w.place(id, false)
			w.run(id)
			for i, list := range row.lists {
				preview, err := w.dryRun(on(list), &id)
				require.NoError(t, err)
				require.Equal(t, row.changes[i], preview.Changes, "%s: %+v", list, preview.Steps)
				for range 2 { // the second time it is the same list in another format
					w.update(id, append(on(list), '\n'))
					w.place(id, true)
				}
			}
			a, err := application.Get(t.Context(), w.DB, id)
			require.NoError(t, err)
			at, cleans := map[int]string{}, 0
			for _, j := range a.Jobs {
				switch {
				case j.Cleans != nil:
					cleans++
				case j.Live():
					at[j.Replica] = j.Node
				}
			}
			require.Equal(t, row.at, at)
			require.Equal(t, row.cleans, cleans)
		})
	}
}
