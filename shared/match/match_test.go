package match_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/match"
	"github.com/littoral-project/littoral/shared/paging"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/topology"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var settings = match.Settings{Freshness: topology.Freshness{StaleAfter: time.Minute}}

// node is one node of a test taxonomy.
type node struct {
	name    string
	cores   float64
	sca     float64
	silent  time.Duration
	behind  float64 // seconds that its clock is
	used    float64 // percent of cpu
	devices []string
}

// taxonomy has one ocm cluster "edge" with the nodes.
func taxonomy(nodes ...node) *topology.Taxonomy {
	c := topology.Cluster{Type: "ocm", Name: "edge", Engine: "Kubernetes", AgentID: "agent-edge", Node: map[string]topology.Node{}}
	for _, n := range nodes {
		t := topology.Node{
			Name: n.name, Engine: "Kubernetes", ScaScore: topology.Known(n.sca),
			LastSeen:       topology.Known(float64(time.Now().Add(-n.silent).Unix())),
			Hearing:        topology.Hearing{ClockSkewSeconds: topology.Known(-n.behind)},
			StaticMetrics:  topology.StaticMetrics{CPUArchitecture: "x86_64", CPUCores: topology.Known(n.cores), RAMMemory: topology.Known(8 << 30)},
			DynamicMetrics: topology.DynamicMetrics{CPUUsagePercent: topology.Known(n.used), FreeRAM: topology.Known(7 << 30)},
			Devices:        map[string]topology.Device{},
		}
		for i, d := range n.devices {
			t.Devices[fmt.Sprint(i)] = topology.Device{Path: d, Status: topology.DeviceAvailable}
		}
		c.Node[n.name] = t
	}
	return &topology.Taxonomy{Cluster: map[string]topology.Cluster{"edge": c}}
}

// world is a database with nodes and applications.
type world struct{ applicationtest.World }

func newWorld(t *testing.T, nodes ...node) world {
	w := world{applicationtest.New(t)}
	if len(nodes) > 0 {
		w.see(nodes...)
	}
	return w
}

func (w world) see(nodes ...node) {
	w.Helper()
	w.picture(taxonomy(nodes...))
}

func (w world) picture(t *topology.Taxonomy) {
	w.Helper()
	require.NoError(w, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := topology.Save(ctx, tx, t, time.Now(), time.Minute)
		return err
	}))
}

// app returns a descriptor with one component per entry, "name: requirements".
func app(name string, components ...string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\ncomponents:\n", name)
	for _, c := range components {
		id, need, _ := strings.Cut(c, ":")
		fmt.Fprintf(&b, "  - name: %s\n    type: kubernetes\n    requirements: {%s}\n    manifests: [{name: %s, manifest: {apiVersion: v1, kind: Pod, metadata: {name: %s}}}]\n", id, need, id, id)
	}
	return []byte(b.String())
}

func (w world) submit(document []byte) uuid.UUID {
	w.Helper()
	return applicationtest.Submit(w, w.DB, string(document)).ID
}

func (w world) read(document []byte) *appmodel.Application {
	w.Helper()
	parsed, err := applicationtest.Parse(document)
	require.NoError(w, err)
	return parsed
}

// dryRun previews the document for the application, or for that of its name.
func (w world) dryRun(document []byte, id *uuid.UUID) (*match.Preview, error) {
	parsed, err := applicationtest.Parse(document)
	if err != nil {
		return nil, err
	}
	return match.DryRun(w.Context(), w.DB, document, parsed, id, settings, time.Minute)
}

func (w world) place(id uuid.UUID, mayMove bool) {
	w.Helper()
	require.NoError(w, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		return match.Place(ctx, tx, id, settings, mayMove, "the test wants it")
	}))
}

// where returns the node of each component, "" for none.
func (w world) where(id uuid.UUID) map[string]string {
	w.Helper()
	a, err := application.Get(context.Background(), w.DB, id)
	require.NoError(w, err)
	at := map[string]string{}
	for _, j := range a.Jobs {
		if j.Cleans == nil {
			at[j.Component] = j.Node
		}
	}
	return at
}

// run carries out placed jobs, like an agent.
func (w world) run(id uuid.UUID) {
	w.Helper()
	a, err := application.Get(context.Background(), w.DB, id)
	require.NoError(w, err)
	for _, j := range a.Jobs {
		require.NoError(w, w.Tx(func(ctx context.Context, tx *store.Tx) error {
			if err := job.Claim(ctx, tx, j.ID, "agent-edge", time.Minute); err != nil {
				return err
			}
			_, err := job.Work(ctx, tx, job.Report{ID: j.ID, OwnerID: "agent-edge", State: job.Finished}, time.Minute)
			return err
		}))
	}
}

func TestPlace_sharesCapacityBetweenComponentsAndApplications(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "a", cores: 4}, node{name: "b", cores: 2})
	first := w.submit(app("first", "x:cpu: 3", "y:cpu: 2"))
	w.place(first, false)
	require.Equal(t, map[string]string{"x": "a", "y": "b"}, w.where(first))
	require.Equal(t, 2, w.Published(events.JobReady))
	second := w.submit(app("second", "z:cpu: 2"))
	w.place(second, false)
	require.Equal(t, map[string]string{"z": ""}, w.where(second), "what the first reserved is not free")
	require.Equal(t, 1, w.Published(events.ApplicationUnplaced))
	w.place(second, false)
	require.Equal(t, 1, w.Published(events.ApplicationUnplaced), "the same reason is told once")

	w.see(node{name: "a", cores: 4}, node{name: "b", cores: 2}, node{name: "c", cores: 2})
	waiting, err := application.Waiting(context.Background(), w.DB, uuid.Nil, 10)
	require.NoError(t, err)
	require.Equal(t, []uuid.UUID{second}, waiting)
	w.place(second, false)
	require.Equal(t, map[string]string{"z": "c"}, w.where(second))
}

func TestPlace_twoAtOnceCannotBothTakeTheLastCore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "a", cores: 4, used: 25})
	apps := make([]uuid.UUID, 6)
	for i := range apps {
		apps[i] = w.submit(app(fmt.Sprintf("app-%d", i), "x:cpu: 1"))
	}
	var wg sync.WaitGroup
	for _, id := range apps {
		wg.Go(func() { w.place(id, false) })
	}
	wg.Wait()
	placed := 0
	for _, id := range apps {
		if w.where(id)["x"] != "" {
			placed++
		}
	}
	require.Equal(t, 3, placed, "four cores, one of them used by others")
}

func TestPlace_keepsWhatMayStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "a", cores: 4, sca: 90}, node{name: "b", cores: 4, sca: 10})
	id := w.submit(app("shop", "x:cpu: 1", "y:cpu: 1"))
	w.place(id, false)
	before := w.where(id)
	w.run(id)
	a, err := application.Get(context.Background(), w.DB, id)
	require.NoError(t, err)
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		locked, err := application.Lock(ctx, tx, id)
		require.NoError(t, err)
		_, err = match.Move(ctx, tx, locked, locked.Jobs[:1], "test", settings)
		return err
	}))
	moved := a.Jobs[0].Component
	after := w.where(id)
	require.NotEqual(t, before[moved], after[moved], "the place that violated is not taken again")
	require.NotEmpty(t, after[moved])
	for c, n := range before {
		if c != moved {
			require.Equal(t, n, after[c])
		}
	}
}

// TestMove_prefersAPlaceWhereNothingWasWrong: it returns to a node on which a policy was violated only if there is no
// other place left.
func TestMove_prefersAPlaceWhereNothingWasWrong(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		nodes []node
		way   []string
	}{
		{
			[]node{{name: "a", cores: 4, sca: 90}, {name: "b", cores: 4, sca: 50}, {name: "c", cores: 4, sca: 10}},
			[]string{"a", "b", "c", "a"},
		},
		{[]node{{name: "a", cores: 4, sca: 90}, {name: "b", cores: 4, sca: 50}}, []string{"a", "b", "a", "b"}},
		{[]node{{name: "a", cores: 4, sca: 90}}, []string{"a", "a"}},
	} {
		w := newWorld(t, row.nodes...)
		id := w.submit(app("shop", "x:cpu: 1"))
		w.place(id, false)
		way := []string{w.where(id)["x"]}
		for range row.way[1:] {
			w.run(id)
			require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
				a, err := application.Lock(ctx, tx, id)
				require.NoError(t, err)
				jobs := slices.DeleteFunc(slices.Clone(a.Jobs), func(j *job.Job) bool { return j.Cleans != nil })
				_, err = match.Move(ctx, tx, a, jobs, "test", settings)
				return err
			}))
			way = append(way, w.where(id)["x"])
		}
		require.Equal(t, row.way, way)
	}
}

func TestPlace_anUpdateMovesOnlyWhatNoLongerFits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "a", cores: 2, sca: 90}, node{name: "b", cores: 8, sca: 10})
	id := w.submit(app("shop", "x:cpu: 1, architecture: amd64", "y:cpu: 1"))
	w.place(id, false)
	w.run(id)
	before := w.where(id)
	update := func(document []byte) {
		w.update(id, document)
		w.place(id, true)
	}
	update(app("shop", "x:cpu: 1100m, architecture: amd64", "y:cpu: 1"))
	require.Equal(t, before["y"], w.where(id)["y"])
	update(app("shop", "x:cpu: 6, architecture: amd64", "y:cpu: 1"))
	require.Equal(t, "b", w.where(id)["x"])
}

func TestPlace_ignoresWhatIsStaleOrUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.submit(app("shop", "x:cpu: 1"))
	w.place(id, false)
	require.Equal(t, map[string]string{"x": ""}, w.where(id), "there is no telemetry yet")
	w.see(node{name: "a", cores: 4, silent: 2 * time.Minute, behind: 110})
	w.place(id, false)
	require.Equal(t, map[string]string{"x": ""}, w.where(id))
	a, err := application.Get(context.Background(), w.DB, id)
	require.NoError(t, err)
	require.Contains(t, a.Jobs[0].Conditions[0].Message, "1 node", "the reason is kept with the job")
	why, err := match.Explain(t.Context(), w.DB, id, settings)
	require.NoError(t, err)
	text, err := json.Marshal(why)
	require.NoError(t, err)
	require.Regexp(t, `its telemetry is [0-9ms.]+ old, stale after 1m0s; its clock is 1m50s behind"`, string(text), "it says from when on as well, and why")
	w.place(uuid.New(), false) // a deleted application is no fault
}

func TestPlace_tellsOnceWhatHoldsForAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.see()
	w.place(w.submit(app("shop", "x:cpu: 1", "y:cpu: 1")), false)
	var told string
	require.NoError(t, w.DB.QueryRow(t.Context(), `select message from history where event = 'application.unplaced'`).Scan(&told))
	require.Equal(t, "there are no nodes", told)
}

func TestPlace_doesNotDecideByAnOldPicture(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "a", cores: 4})
	_, err := w.DB.Exec(context.Background(), "update topology set at = at - $1::interval", topology.Fresh+time.Minute)
	require.NoError(t, err)
	one, two := w.submit(app("one", "x:cpu: 1")), w.submit(app("two", "x:cpu: 1"))
	w.place(one, false)
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		return match.PlaceAll(ctx, tx, []uuid.UUID{two}, settings, "it was displaced")
	}))
	for _, id := range []uuid.UUID{one, two} {
		require.Equal(t, map[string]string{"x": ""}, w.where(id))
		a, err := application.Get(context.Background(), w.DB, id)
		require.NoError(t, err)
		require.Contains(t, a.Jobs[0].Conditions[0].Message, "the last telemetry is of ")
	}
	require.Equal(t, 2, w.Published(events.ApplicationUnplaced), "the aggregator is asked to look")
	w.place(one, false)
	require.Equal(t, 2, w.Published(events.ApplicationUnplaced), "once is enough")

	w.see(node{name: "a", cores: 4})
	require.Equal(t, 2, w.Published(events.TopologyChanged), "who waits hears of the look, though nothing has changed")
	w.place(one, false)
	require.Equal(t, map[string]string{"x": "a"}, w.where(one))
}

func TestPlace_goesToNoNodeAsSilentAsTheOneItLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "a", cores: 4, silent: 30 * time.Second})
	id := w.submit([]byte(string(app("shop", "x:cpu: 1")) + "policies: [{redeployOnLostTelemetry: 15s}]\n"))
	w.place(id, false)
	require.Equal(t, map[string]string{"x": ""}, w.where(id), "half a minute is more than it bears")
	patient := w.submit(app("patient", "x:cpu: 1"))
	w.place(patient, false)
	require.Equal(t, map[string]string{"x": "a"}, w.where(patient))
}

// TestPlace_spreadsWhatAsksForNothing: a burst of applications without requests does not land on one node.
func TestPlace_spreadsWhatAsksForNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "a", cores: 4}, node{name: "b", cores: 4}, node{name: "c", cores: 4})
	at := map[string]int{}
	for i := range 6 {
		id := w.submit(app(fmt.Sprintf("app-%d", i), "x:"))
		w.place(id, false)
		at[w.where(id)["x"]]++
	}
	require.Equal(t, map[string]int{"a": 2, "b": 2, "c": 2}, at)
}

func TestPlace_countsDevices(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "a", cores: 4, devices: []string{"squat.ai/video"}}, node{name: "b", cores: 4})
	id := w.submit(app("cams", "x:devices: squat.ai/video", "y:devices: squat.ai/video"))
	w.place(id, false)
	placed := w.where(id)
	require.ElementsMatch(t, []string{"a", ""}, []string{placed["x"], placed["y"]}, "one camera serves one component")
}

// TestPlace_givesNoDeviceAwayThatOthersKeepBusy: a busy device is attributed to a job only if telemetry can know about
// the job.
func TestPlace_givesNoDeviceAwayThatOthersKeepBusy(t *testing.T) {
	t.Parallel()
	const path = "squat.ai/video"
	w := newWorld(t)
	see := func(busy ...bool) {
		picture := taxonomy(node{name: "a", cores: 8, devices: slices.Repeat([]string{path}, len(busy))})
		for i, b := range busy {
			if b {
				picture.Cluster["edge"].Node["a"].Devices[fmt.Sprint(i)] = topology.Device{Path: path, Status: topology.DeviceBusy}
			}
		}
		w.picture(picture)
	}
	cam := func(name string) uuid.UUID {
		id := w.submit(app(name, "x:devices: "+path))
		w.place(id, false)
		return id
	}
	at := func(id uuid.UUID) string { return w.where(id)["x"] }

	see(true, false)
	first := cam("first")
	require.Equal(t, "a", at(first))
	second := cam("second")
	require.Empty(t, at(second), "one is a stranger's, the other the first's")
	w.run(first)
	w.place(second, false)
	require.Empty(t, at(second), "telemetry has not looked since the first was taken")

	pass := func() {
		_, err := w.DB.Exec(t.Context(), "update jobs set taken_at = taken_at - interval '10 seconds'")
		require.NoError(t, err)
	}
	pass()
	see(true, true)
	w.place(second, false)
	require.Empty(t, at(second), "one is a stranger's, the other the first's")
	w.update(first, bytes.Replace(app("first", "x:devices: "+path), []byte("{name: x}"), []byte("{name: x, labels: {v: two}}"), 1))
	w.place(first, true)
	require.Equal(t, "a", at(first), "the device that it keeps busy is free to it")
	see(true, true, false)
	w.run(first)
	w.place(second, false)
	require.Equal(t, "a", at(second), "an update changes nothing about what is busy")

	w.run(second)
	pass()
	w.displace(first, "x")
	see(true, true, true, false)
	require.Equal(t, "a", at(cam("third")), "one is a stranger's, one the second's, and one of what the first left behind")
	require.Empty(t, at(cam("fourth")))
}

func TestDryRun_changesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "a", cores: 4})
	ctx := context.Background()
	preview, err := w.dryRun(app("shop", "x:cpu: 1"), nil)
	require.NoError(t, err)
	require.Nil(t, preview.Application)
	require.Equal(t, 1, preview.Changes)
	require.Equal(t, "create", preview.Steps[0].Action)
	require.Equal(t, "a", preview.Steps[0].To.Node)
	apps, _, err := application.List(ctx, w.DB, application.Filter{}, paging.Page{Limit: 10})
	require.NoError(t, err)
	require.Empty(t, apps)
	require.Empty(t, storetest.Published(w.DB)[1:], "only the topology was announced")

	id := w.submit(app("shop", "x:cpu: 1"))
	w.place(id, false)
	w.run(id)
	for name, row := range map[string]struct {
		document []byte
		action   string
	}{
		"the same document does nothing":    {app("shop", "x:cpu: 1"), "none"},
		"more cpu where it fits":            {app("shop", "x:cpu: 2"), "change"},
		"a component that is not there":     {app("shop", "z:cpu: 1"), "create"},
		"a component that is there no more": {app("shop", "z:cpu: 1"), "remove"},
	} {
		preview, err := w.dryRun(row.document, nil)
		require.NoError(t, err, name)
		require.Equal(t, id, *preview.Application, name)
		var actions []string
		for _, s := range preview.Steps {
			actions = append(actions, s.Action)
		}
		require.Contains(t, actions, row.action, name)
	}
}

// TestDryRun_showsChangesOutsideOfComponents: a change by an update outside the components is reported too.
func TestDryRun_showsChangesOutsideOfComponents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "a", cores: 4})
	document := app("shop", "x:cpu: 1", "y:cpu: 1")
	id := w.submit(document)
	w.place(id, false)
	w.run(id)
	more := func(text string) []byte { return append(slices.Clone(document), text...) }
	inX := func(text string) []byte {
		return bytes.Replace(document, []byte("requirements"), []byte(text+"\n    requirements"), 1)
	}
	told := func(document []byte) (why []string) {
		preview, err := w.dryRun(document, &id)
		require.NoError(t, err)
		changes := 0
		for _, s := range preview.Steps {
			if s.Action != "none" {
				changes++
			}
			if s.Component == "" {
				require.Equal(t, "change", s.Action)
				why = append(why, s.Why)
			}
		}
		require.Equal(t, changes, preview.Changes)
		return why
	}
	for name, row := range map[string]struct {
		document []byte
		want     []string
	}{
		"a comment":              {more("# a comment\n"), nil},
		"without its name":       {bytes.Replace(document, []byte("name: shop\n"), nil, 1), nil},
		"a description":          {more("description: a shop\n"), []string{"other description"}},
		"weights":                {more("policies: [{type: scheduler, performance: 1}]\n"), []string{"other policies"}},
		"policies":               {inX("policies: [{security: low}]"), []string{"other policies"}},
		"scaling":                {inX("scaling: {minReplicas: 1, maxReplicas: 3}"), []string{"other scaling"}},
		"a target":               {inX("targets: [{cluster_name: edge, node_name: a}]"), []string{"other targets"}},
		"what a component tells": {bytes.Replace(document, []byte("cpu: 1"), []byte("cpu: 2"), 1), nil},
		"and more than that": {
			append(bytes.Replace(document, []byte("cpu: 1"), []byte("cpu: 2"), 1), "description: a shop\n"...),
			[]string{"other description"},
		},
	} {
		require.Equal(t, row.want, told(row.document), name)
	}
	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := application.Stop(ctx, tx, id)
		return err
	}))
	require.Equal(t, []string{"other components"}, told(bytes.Replace(document, []byte("cpu: 1"), []byte("cpu: 2"), 1)),
		"none of them runs")
}

// TestDryRun_showsAnUpdateThatFitsNowhere: a component that would have to stay where it does not fit is reported before
// and after the update.
func TestDryRun_showsAnUpdateThatFitsNowhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "a", cores: 4})
	id := w.submit(app("shop", "x:cpu: 1"))
	w.place(id, false)
	w.run(id)
	step := func() match.Step {
		preview, err := w.dryRun(app("shop", "x:cpu: 64"), &id)
		require.NoError(t, err)
		require.Len(t, preview.Steps, 1)
		return preview.Steps[0]
	}
	before := step()
	require.Equal(t, "change", before.Action)
	require.Contains(t, before.Why, "it stays on")
	w.update(id, app("shop", "x:cpu: 64"))
	w.place(id, true)
	after := step()
	require.Equal(t, "none", after.Action)
	require.Equal(t, before.Why, after.Why)
}

func TestDryRun_showsWhatIsRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "a", cores: 4})
	id := w.submit(app("shop", "placed:cpu: 1", "stays:cpu: 1", "waits:cpu: 64"))
	w.place(id, false)
	steps := func() (actions map[string]string, changes int) {
		preview, err := w.dryRun(app("shop", "stays:cpu: 1"), &id)
		require.NoError(t, err)
		actions = map[string]string{}
		for _, s := range preview.Steps {
			actions[s.Component] = s.Action
		}
		return actions, preview.Changes
	}
	actions, changes := steps()
	require.Equal(t, map[string]string{"placed": "remove", "stays": "none", "waits": "remove"}, actions)
	require.Equal(t, 2, changes)
	a, err := application.Get(t.Context(), w.DB, id)
	require.NoError(t, err)
	for _, j := range a.Jobs {
		if j.Placed() {
			require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
				return job.Claim(ctx, tx, j.ID, "agent-1", time.Minute)
			}))
		}
	}
	w.update(id, app("shop", "stays:cpu: 1"))
	actions, changes = steps()
	require.Equal(t, map[string]string{"stays": "none"}, actions, "what is gone, or about to be, is told no more")
	require.Zero(t, changes)
}

func TestSolve(t *testing.T) {
	t.Parallel()
	w := newWorld(t, node{name: "a", cores: 4, sca: 90}, node{name: "b", cores: 4, sca: 60})
	ctx := context.Background()
	ask := func(r match.Request) map[string]any {
		answer, err := match.Solve(ctx, w.DB, r, settings)
		require.NoError(t, err)
		body, err := json.Marshal(answer.Components())
		require.NoError(t, err)
		var list []map[string]any
		require.NoError(t, json.Unmarshal(body, &list))
		return list[0]
	}
	document := w.read(app("shop", "x:cpu: 1"))
	require.Equal(t, map[string]any{"cluster_name": "edge", "node_name": "a", "orchestrator": "ocm"}, ask(match.Request{Parsed: document})["targets"])
	here := match.Placement{Component: "x", Cluster: "edge", Node: "b", Orchestrator: "ocm"}
	require.Equal(t, "b", ask(match.Request{Parsed: document, Current: []match.Placement{here}})["targets"].(map[string]any)["node_name"],
		"what may stay stays")
	there := match.Placement{Component: "x", Cluster: "edge", Node: "a", Orchestrator: "ocm"}
	require.Equal(t, "b", ask(match.Request{
		Parsed: document, Current: []match.Placement{there}, Violations: []match.Placement{there},
	})["targets"].(map[string]any)["node_name"], "what violated is left")
	require.Equal(t, []any{}, ask(match.Request{Parsed: w.read(app("shop", "x:cpu: 64"))})["targets"])

	_, err := match.Solve(ctx, w.DB, match.Request{Parsed: document, Current: []match.Placement{{Component: "q"}}}, settings)
	require.Equal(t, problem.Invalid, problem.KindOf(err))
	_, err = match.Solve(ctx, w.DB, match.Request{Parsed: document, Violations: []match.Placement{{Component: "x"}}}, settings)
	require.ErrorContains(t, err, "names no place", "or x had to leave every place there is")
	empty := newWorld(t)
	_, err = match.Solve(ctx, empty.DB, match.Request{Parsed: document}, settings)
	require.Equal(t, problem.Unavailable, problem.KindOf(err))
}

// TestSolve_ofWhatRuns: the resources that an instance holds and uses in the requested place are no reason to move it.
func TestSolve_ofWhatRuns(t *testing.T) {
	t.Parallel()
	document := append(app("shop", "x:cpu: 3, devices: /dev/cam"),
		"policies: [{name: busy, type: node-resource-usage, cpu_threshold_perc: 0.5}]\n"...)
	a, b := node{name: "a", cores: 4, devices: []string{"/dev/cam"}}, node{name: "b", cores: 4, devices: []string{"/dev/cam"}}
	w := newWorld(t, a)
	id := w.submit(document)
	w.place(id, false)
	require.Equal(t, map[string]string{"x": "a"}, w.where(id))
	a.used = 75
	picture := using(a, id.String(), 3)
	picture.Cluster["edge"].Node["b"] = taxonomy(b).Cluster["edge"].Node["b"]
	w.picture(picture)
	here := []match.Placement{{Component: "x", Cluster: "edge", Node: "a", Orchestrator: "ocm"}}
	ask := func(r match.Request) string {
		r.Parsed = w.read(document)
		answer, err := match.Solve(t.Context(), w.DB, r, settings)
		require.NoError(t, err)
		return answer.Plan.Assignments[0].Target.Node
	}
	require.Equal(t, "a", ask(match.Request{Current: here}), "it may stay")
	require.Equal(t, "b", ask(match.Request{}), "another instance has no room beside it")
	require.Equal(t, "b", ask(match.Request{Current: here, Violations: here}))
}
