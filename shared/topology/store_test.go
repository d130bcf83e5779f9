package topology_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/topology"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const staleAfter = time.Minute

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// one returns a taxonomy with one node, modified by change.
func one(seen time.Time, change ...func(*topology.Node)) *topology.Taxonomy {
	n := topology.Node{
		Name: "rpi", Engine: topology.Kubernetes, LastSeen: topology.Known(float64(seen.Unix())),
		ScaScore: topology.Known(72), Labels: map[string]string{"color": "green"},
		Devices: map[string]topology.Device{"video_0": video(topology.DeviceAvailable)},
		StaticMetrics: topology.StaticMetrics{
			CPUCores: topology.Known(4), RAMMemory: topology.Known(8e9),
		},
		DynamicMetrics: topology.DynamicMetrics{CPUUsagePercent: topology.Known(20), UsedRAM: topology.Known(2e9)},
	}
	for _, c := range change {
		c(&n)
	}
	return &topology.Taxonomy{Cluster: map[string]topology.Cluster{
		"agent-1": {Type: kinds.OCM, Name: "edge", Node: map[string]topology.Node{"rpi": n}},
	}}
}

func video(status string) topology.Device {
	return topology.Device{Name: "video_0", Path: "squat.ai/video", Status: status}
}

// background names the producer that every event must have.
func background() context.Context {
	return store.WithSource(context.Background(), "/functions/aggregator-tick")
}

func save(t *testing.T, db *store.DB, taxonomy *topology.Taxonomy, at time.Time) bool {
	t.Helper()
	var changed bool
	require.NoError(t, db.Tx(background(), func(ctx context.Context, tx *store.Tx) (err error) {
		changed, err = topology.Save(ctx, tx, taxonomy, at, staleAfter)
		return err
	}))
	return changed
}

// announcements lists "node change" of every published TopologyChanged.
func announcements(t *testing.T, db *store.DB) (all []string) {
	t.Helper()
	for _, e := range storetest.Published(db) {
		if e.Type() == events.PodsChanged {
			continue
		}
		require.Equal(t, events.TopologyChanged, e.Type())
		data, err := events.Data[events.Topology](e)
		require.NoError(t, err)
		require.Equal(t, e.Subject(), data.Snapshot.String())
		for _, c := range data.Changes {
			require.NotEmpty(t, c.Detail)
			all = append(all, c.Cluster+"/"+c.Node+" "+c.Change)
		}
	}
	return all
}

func count(t *testing.T, db *store.DB, table string) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRow(context.Background(), "select count(*) from "+table).Scan(&n))
	return n
}

func TestCurrent_beforeTheFirstTickIsUnavailable(t *testing.T) {
	t.Parallel()
	_, _, err := topology.Current(context.Background(), storetest.New(t))
	require.Equal(t, problem.Unavailable, problem.KindOf(err))
}

func TestSave_firstPictureIsAnnouncedAndRead(t *testing.T) {
	t.Parallel()
	ctx, db := context.Background(), storetest.New(t)
	require.True(t, save(t, db, one(start), start))
	require.Equal(t, []string{"edge/rpi added"}, announcements(t, db))

	current, at, err := topology.Current(ctx, db)
	require.NoError(t, err)
	require.True(t, at.Equal(start))
	require.Equal(t, one(start), current)

	entries, _, err := history.Before(ctx, db, nil, math.MaxInt64, 10)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, "topology.changed", entries[0].Event)
	require.Contains(t, entries[0].Message, "edge/rpi added")
}

func TestSave_announcesWhatMattersToPlacement(t *testing.T) {
	t.Parallel()
	no := false
	later := start.Add(10 * time.Second)
	for name, row := range map[string]struct {
		at     time.Time
		second *topology.Taxonomy
		want   []string
	}{
		"nothing new": {later, one(later), nil},
		"readings that moved a little": {later, one(later, func(n *topology.Node) {
			n.DynamicMetrics.CPUUsagePercent, n.DynamicMetrics.CPUTemperature = topology.Known(41), topology.Known(80)
		}), nil},
		"a kernel that reports a little less memory": {later, one(later, func(n *topology.Node) {
			n.StaticMetrics.RAMMemory = topology.Known(7.99e9)
		}), nil},
		"silence beyond the limit": {start.Add(61 * time.Second), one(start), []string{"lost"}},
		"silence within the limit": {start.Add(60 * time.Second), one(start), nil},
		"a drain":                  {later, one(later, func(n *topology.Node) { n.Schedulable = &no }), []string{"drained"}},
		"more cores": {later, one(later, func(n *topology.Node) {
			n.StaticMetrics.CPUCores = topology.Known(8)
		}), []string{"capacity"}},
		"cores nobody measures any more": {later, one(later, func(n *topology.Node) {
			n.StaticMetrics.CPUCores = topology.Measure{}
		}), []string{"capacity"}},
		"another engine": {later, one(later, func(n *topology.Node) { n.Engine = topology.Docker }), []string{"capacity"}},
		"a busy device": {later, one(later, func(n *topology.Node) {
			n.Devices["video_0"] = video(topology.DeviceBusy)
		}), []string{"devices"}},
		"another label": {later, one(later, func(n *topology.Node) { n.Labels["color"] = "blue" }), []string{"labels"}},
		"a lower score": {later, one(later, func(n *topology.Node) { n.ScaScore = topology.Known(30) }), []string{"score"}},
		"others that free a third of the cpu": {later, one(later, func(n *topology.Node) {
			n.DynamicMetrics.CPUUsagePercent = topology.Known(60)
		}), []string{"load"}},
		"our own pod that needs a third of the cpu": {later, one(later, func(n *topology.Node) {
			n.DynamicMetrics.CPUUsagePercent = topology.Known(60)
			n.Pod = map[string]topology.Pod{"p": {
				Container: map[string]topology.Container{"c": {CPUUsage: topology.Known(1.6)}},
				Workload:  map[string]topology.Workload{"i": {AppInstance: "i"}},
			}}
		}), nil},
		"a node that is gone": {later, &topology.Taxonomy{Cluster: map[string]topology.Cluster{}}, []string{"removed"}},
		"all at once, the most urgent first": {start.Add(2 * time.Minute), one(start, func(n *topology.Node) {
			n.Schedulable, n.ScaScore, n.Labels = &no, topology.Known(1), nil
		}), []string{"lost", "drained", "labels", "score"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.New(t)
			require.True(t, save(t, db, one(start), start))
			require.Equal(t, len(row.want) > 0, save(t, db, row.second, row.at))
			var want []string
			for _, change := range row.want {
				want = append(want, "edge/rpi "+change)
			}
			require.Equal(t, append([]string{"edge/rpi added"}, want...), announcements(t, db))
			snapshots := 1
			if len(want) > 0 {
				snapshots = 2
			}
			require.Equal(t, snapshots, count(t, db, "topology_snapshots"))
			require.Equal(t, snapshots, count(t, db, "history"))
			_, at, err := topology.Current(context.Background(), db)
			require.NoError(t, err)
			require.True(t, at.Equal(row.at), "the current picture is the newest even when nothing was announced")
		})
	}
}

func TestSave_smallStepsAddUp(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	for i, percent := range []float64{20, 30, 40, 46} {
		at := start.Add(time.Duration(i) * time.Second)
		changed := save(t, db, one(at, func(n *topology.Node) {
			n.DynamicMetrics.CPUUsagePercent = topology.Known(percent)
		}), at)
		require.Equal(t, i == 0 || i == 3, changed, "step %d", i)
	}
}

// TestSave_seesEachDevice: although messages name only a few, since a component may wait for the very last one.
func TestSave_seesEachDevice(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	cameras := func(n *topology.Node) {
		for i := range 9 {
			n.Devices[fmt.Sprint("camera_", i)] = topology.Device{Path: fmt.Sprint("/dev/video", i), Status: topology.DeviceAvailable}
		}
	}
	save(t, db, one(start, cameras), start)
	for i, row := range []struct {
		change func(*topology.Node)
		want   string
	}{
		{func(n *topology.Node) {
			n.Devices["camera_8"] = topology.Device{Path: "/dev/video8", Status: topology.DeviceBusy}
		}, "/dev/video8 available -> /dev/video8 busy"},
		{func(n *topology.Node) { delete(n.Devices, "camera_8") }, "/dev/video8 busy -> none"},
		{func(n *topology.Node) {
			n.Devices["video_1"] = video(topology.DeviceAvailable)
		}, "none -> /dev/video8 available, squat.ai/video available"},
		{func(n *topology.Node) { clear(n.Devices) }, "/dev/video0 available, /dev/video1 available, /dev/video2 available, " +
			"/dev/video3 available, /dev/video4 available and 6 more -> none"},
	} {
		at := start.Add(time.Duration(i+1) * time.Second)
		require.True(t, save(t, db, one(at, cameras, row.change), at))
		e := storetest.Published(db)
		data, err := events.Data[events.Topology](e[len(e)-1])
		require.NoError(t, err)
		require.Equal(t, row.want, data.Changes[0].Detail)
	}
}

func TestSave_lostThenReturned(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	save(t, db, one(start), start)
	require.True(t, save(t, db, one(start), start.Add(2*time.Minute)))
	require.False(t, save(t, db, one(start), start.Add(3*time.Minute)), "a loss is told once")
	back := start.Add(4 * time.Minute)
	require.True(t, save(t, db, one(back), back))
	require.Equal(t, []string{"edge/rpi added", "edge/rpi lost", "edge/rpi returned"}, announcements(t, db))
}

func TestSave_lastSeenNeverGoesBack(t *testing.T) {
	t.Parallel()
	ctx, db := context.Background(), storetest.New(t)
	save(t, db, one(start), start)
	at := start.Add(30 * time.Second)
	save(t, db, one(start.Add(-10*time.Minute)), at)
	lastSeen := func() (seen time.Time) {
		require.NoError(t, db.QueryRow(ctx, "select last_seen from nodes").Scan(&seen))
		return seen
	}
	require.True(t, lastSeen().Equal(start))
	current, _, err := topology.Current(ctx, db)
	require.NoError(t, err)
	require.Equal(t, topology.Known(float64(start.Unix())), current.Cluster["agent-1"].Node["rpi"].LastSeen)

	at = at.Add(time.Second)
	save(t, db, one(at.Add(time.Hour)), at)
	require.True(t, lastSeen().Equal(at), "a clock ahead of ours does not make a node live into the future")

	at = at.Add(time.Second)
	save(t, db, &topology.Taxonomy{}, at)
	require.Equal(t, 1, count(t, db, "nodes"), "the node is kept after it has gone")
}

func TestSave_keepsWhenNobodyWasHeardOf(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	for i, want := range []time.Time{start.Add(-time.Minute), start} { // announced, and then as if nothing had changed
		at := start.Add(time.Duration(i) * time.Second)
		picture := one(at)
		picture.Timestamp.SilentUntil = topology.Known(float64(want.Unix()))
		require.Equal(t, i == 0, save(t, db, picture, at))
		var silent time.Time
		require.NoError(t, db.QueryRow(context.Background(), "select silent_until from topology").Scan(&silent))
		require.True(t, want.Equal(silent))
	}
}

func TestSave_aLatePictureChangesNothing(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	save(t, db, one(start), start)
	require.False(t, save(t, db, &topology.Taxonomy{}, start.Add(-time.Second)))
	require.False(t, save(t, db, &topology.Taxonomy{}, start))
	require.Len(t, announcements(t, db), 1)
}

func TestSave_afterASilenceIsNews(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	save(t, db, one(start), start)
	at := start.Add(topology.Fresh)
	require.False(t, save(t, db, one(at), at))
	at = at.Add(topology.Fresh + time.Second)
	require.True(t, save(t, db, one(at), at))
	require.False(t, save(t, db, one(at), at.Add(time.Second)))
	require.Equal(t, []string{"edge/rpi added", "/ refreshed"}, announcements(t, db))

	seen := at
	at = at.Add(topology.Fresh + time.Minute)
	require.True(t, save(t, db, one(seen), at))
	require.Equal(t, []string{"edge/rpi lost", "/ refreshed"}, announcements(t, db)[2:], "beside other news, too")
}

func TestSave_twoAtOnceAnnounceOnce(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	var group, begun sync.WaitGroup
	failed := make([]error, 4)
	begun.Add(len(failed))
	for i := range failed {
		group.Go(func() {
			at := start.Add(time.Duration(i) * time.Millisecond)
			begin := sync.OnceFunc(begun.Done)
			failed[i] = db.Tx(background(), func(ctx context.Context, tx *store.Tx) error {
				begin()
				begun.Wait()
				_, err := topology.Save(ctx, tx, one(start), at, staleAfter)
				return err
			})
		})
	}
	group.Wait()
	require.NoError(t, errors.Join(failed...))
	require.Len(t, announcements(t, db), 1)
	require.Equal(t, 1, count(t, db, "topology"))
}

// TestSave_leavesOldSnapshotsToTheArchive: it runs once a day; saving deletes some only far beyond the limit.
func TestSave_leavesOldSnapshotsToTheArchive(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ before, after int }{
		"a flapping node's day":        {700, 701},
		"as many as there may be":      {topology.MaxSnapshots - 1, topology.MaxSnapshots},
		"when nobody has archived any": {topology.MaxSnapshots + 50, topology.MaxSnapshots},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.New(t)
			_, err := db.Exec(context.Background(), `insert into topology_snapshots (id, changes, taxonomy)
select ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, '[]', '{}' from generate_series(1, $1) n`, row.before)
			require.NoError(t, err)
			require.True(t, save(t, db, one(start), start))
			require.Equal(t, row.after, count(t, db, "topology_snapshots"))
			require.Equal(t, 1, count(t, db, "topology join topology_snapshots on id = snapshot"), "the newest is kept")
		})
	}
}

func TestSave_anEventStaysSmallHoweverManyNodesChange(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	c := topology.Cluster{Type: kinds.OCM, Node: map[string]topology.Node{}}
	for i := range 5000 {
		c.Node[fmt.Sprintf("node-%04d", i)] = topology.Node{}
	}
	require.True(t, save(t, db, &topology.Taxonomy{Cluster: map[string]topology.Cluster{"big": c}}, start))
	body, err := json.Marshal(storetest.Published(db)[0])
	require.NoError(t, err)
	require.Less(t, len(body), events.MaxBytes)
	var all int
	row := db.QueryRow(context.Background(), "select jsonb_array_length(changes) from topology_snapshots")
	require.NoError(t, row.Scan(&all))
	require.Equal(t, 5000, all)
}

// TestSave_tellsNoMoreThanALineOfHistoryHolds: the snapshot has the rest.
func TestSave_tellsNoMoreThanALineOfHistoryHolds(t *testing.T) {
	t.Parallel()
	db, taxonomy := storetest.New(t), one(start)
	nodes := taxonomy.Cluster["agent-1"].Node
	for i := range 2099 {
		n := nodes["rpi"]
		n.Name = fmt.Sprintf("rpi-%d", i)
		nodes[n.Name] = n
	}
	require.True(t, save(t, db, taxonomy, start))
	entries, _, err := history.Before(t.Context(), db, nil, math.MaxInt64, 10)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	var told []events.TopologyChange
	require.NoError(t, json.Unmarshal(entries[0].Data, &told))
	require.Len(t, told, 2000)
	require.Contains(t, entries[0].Message, "and 2090 more")
	require.Len(t, announcements(t, db), 2000)
	var all int
	require.NoError(t, db.QueryRow(t.Context(), `select jsonb_array_length(changes) from topology_snapshots`).Scan(&all))
	require.Equal(t, 2100, all)
}

// TestSave_keepsWhatWasCountedWithItsPictureOnly: a version that counts nothing leaves nothing to compare with.
func TestSave_keepsWhatWasCountedWithItsPictureOnly(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	counted := func() string {
		t.Helper()
		o, err := topology.ReadOutline(t.Context(), db)
		require.NoError(t, err)
		return string(o.Counts)
	}
	at := start
	for i, first := range []bool{true, false} { // announced, and then as if nothing had changed
		at = at.Add(time.Second)
		counts := fmt.Sprintf(`{"look": %d}`, i)
		part := &topology.Part{Nodes: map[[2]string]bool{{"agent-1", "rpi"}: true}, Counts: []byte(counts)}
		require.NoError(t, db.Tx(background(), func(ctx context.Context, tx *store.Tx) error {
			changed, err := topology.SavePart(ctx, tx, one(at), at, staleAfter, part)
			require.Equal(t, first, changed)
			return err
		}))
		require.Equal(t, counts, counted())
	}
	touch := func(news topology.News) {
		t.Helper()
		require.NoError(t, db.Tx(background(), func(ctx context.Context, tx *store.Tx) error { return topology.Touch(ctx, tx, &news) }))
	}
	touch(topology.News{At: at.Add(time.Second), Since: at, Counts: []byte(`{"look": 2}`)})
	require.Equal(t, `{"look": 2}`, counted())
	touch(topology.News{At: at.Add(2 * time.Second), Since: at, Counts: []byte(`{"look": 3}`)})
	require.Equal(t, `{"look": 2}`, counted(), "another picture was stored since")
	touch(topology.News{At: at.Add(3 * time.Second)})
	require.Empty(t, counted())
}
