package replan_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/history/recorded"
	"github.com/littoral-project/littoral/shared/match"
	"github.com/littoral-project/littoral/shared/netma/links"
	"github.com/littoral-project/littoral/shared/netma/state"
	"github.com/littoral-project/littoral/shared/placement"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/swm/plan"
	"github.com/littoral-project/littoral/shared/swm/replan"
	"github.com/littoral-project/littoral/shared/swm/topologies"
	"github.com/littoral-project/littoral/shared/topology"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// camera sends 20 Mbit/s from one half of a node to another node.
const camera = `apiVersion: codeco.he-codeco.eu/v1alpha1
kind: CodecoApp
metadata: {name: camera}
spec:
  codecoapp-msspec:
  - serviceName: front
    podspec: {containers: [{name: c, image: "example.org/front:1", resources: {requests: {cpu: "3"}}}]}
    serviceChannels:
    - {channelName: frames, otherService: {serviceName: back}, advancedChannelSettings: {minBandwidth: 20M, maxDelay: 10e-3}}
  - serviceName: back
    podspec: {containers: [{name: c, image: "example.org/back:1", resources: {requests: {cpu: "3"}}}]}
`

type world struct {
	applicationtest.World
	settings replan.Settings
}

// newWorld has a cluster of nodes with four cores, each joined to each other by links of 100 Mbit/s.
func newWorld(t *testing.T, nodes ...string) world {
	w := world{applicationtest.New(t), replan.Settings{Pause: time.Hour, Most: 3}}
	w.settings.StaleAfter = time.Minute
	w.see(nil, nodes...)
	w.describe(nodes, nil)
	return w
}

// see lets the nodes be heard of, with forecasts for some.
func (w world) see(forecasts map[string]topology.ForecastedMetrics, nodes ...string) {
	w.Helper()
	c := topology.Cluster{Type: "kubernetes", Name: "site", Engine: "Kubernetes", Node: map[string]topology.Node{}}
	for _, n := range nodes {
		c.Node[n] = topology.Node{
			Name: n, Engine: "Kubernetes", LastSeen: topology.Known(float64(time.Now().Unix())),
			StaticMetrics:  topology.StaticMetrics{CPUCores: topology.Known(4), RAMMemory: topology.Known(8 << 30)},
			DynamicMetrics: topology.DynamicMetrics{FreeRAM: topology.Known(7 << 30)}, ForecastedMetrics: forecasts[n],
		}
	}
	w.Must(func(ctx context.Context, tx *store.Tx) error {
		_, err := topology.Save(ctx, tx, &topology.Taxonomy{Cluster: map[string]topology.Cluster{"site": c}}, time.Now(), time.Minute)
		return err
	})
}

// describe describes the network; links that are named carry less.
func (w world) describe(nodes []string, slow map[[2]string]string) {
	w.Helper()
	text := "networkImplementation: LAN\nnodes: ["
	for _, n := range nodes {
		text += "{name: " + n + "}, "
	}
	text += "]\nlinks: ["
	for _, a := range nodes {
		for _, b := range nodes {
			bits := "100M"
			if less := slow[[2]string{a, b}]; less != "" {
				bits = less
			}
			if a != b {
				text += fmt.Sprintf("{source: %s, target: %s, capabilities: {bandWidthBits: %s, latencyNanos: \"1e6\"}}, ", a, b, bits)
			}
		}
	}
	w.network(text + "]\n")
}

// network describes the network as a document.
func (w world) network(text string) {
	w.Helper()
	d, err := topologies.Parse([]byte(text))
	require.NoError(w, err)
	w.Must(func(ctx context.Context, tx *store.Tx) error { return topologies.Save(ctx, tx, "lan", d) })
}

// place submits the camera and places it.
func (w world) place() uuid.UUID {
	w.Helper()
	id := applicationtest.Submit(w, w.DB, camera).ID
	w.Must(func(ctx context.Context, tx *store.Tx) error {
		return match.Place(ctx, tx, id, w.settings.Settings, false, "")
	})
	return id
}

// run lets all parts run that do not yet.
func (w world) run(id uuid.UUID) {
	w.Helper()
	for _, j := range w.Get(id).Jobs {
		if j.State == "Finished" {
			continue
		}
		owner := j.OwnerID
		if owner == "" {
			owner = "agent"
		}
		require.NoError(w, w.Claim(j.ID, owner))
		require.NoError(w, w.Finish(w.Job(j.ID)))
	}
}

func (w world) replan() {
	w.Helper()
	require.NoError(w, replan.All(store.WithSource(w.Context(), "/test"), w.DB, w.settings))
}

func (w world) planned(id uuid.UUID) *plan.Planned {
	w.Helper()
	p, err := plan.Of(w.Context(), w.DB, id)
	require.NoError(w, err)
	return p
}

// channel returns the only channel, and where its ends are.
func (w world) channel(id uuid.UUID) (c plan.Channel, from, to string) {
	w.Helper()
	p := w.planned(id)
	require.Len(w, p.Channels, 1)
	at := map[string]string{}
	for _, j := range p.Application.Jobs {
		if j.Live() {
			at[j.Component] = j.Node
		}
	}
	return p.Channels[0], at["front"], at["back"]
}

// TestALinkThatDegradesMovesItsChannelOnce: the channel is out of QoS, its application is planned anew, one end moves, and nothing
// more happens though the link stays bad.
func TestALinkThatDegradesMovesItsChannelOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "n1", "n2", "n3")
	id := w.place()
	c, from, to := w.channel(id)
	require.Equal(t, plan.Reviewed, c.Status)
	require.NotEqual(t, from, to, "the two do not fit on one node")
	require.Equal(t, plan.Scheduling, w.planned(id).Plan.Status.Phase)
	w.run(id)
	c, _, _ = w.channel(id)
	require.Equal(t, plan.Running, c.Status)
	require.Equal(t, plan.Idle, w.planned(id).Plan.Status.Phase)
	before := w.planned(id).Plan.Status

	w.Must(func(ctx context.Context, tx *store.Tx) error {
		return state.Save(ctx, tx, []links.Measurement{{
			Source: from, Target: to, Figures: links.Figures{Bandwidth: links.Known(10_000), RTT: links.Known(2)}, MeasuredAt: time.Now(),
		}})
	})
	c, _, _ = w.channel(id)
	require.Equal(t, plan.OutOfQoS, c.Status)
	require.Contains(t, c.Reason, "carries 10000 kbit/s, of which its channels need 20000")

	w.replan()
	c, from2, to2 := w.channel(id)
	require.NotEqual(t, [2]string{from, to}, [2]string{from2, to2})
	require.True(t, from == from2 || to == to2, "only one end had to move")
	require.NotEqual(t, plan.OutOfQoS, c.Status)
	after := w.planned(id).Plan.Status
	require.Equal(t, before.ModelHash, after.ModelHash, "the same was asked for")
	require.NotEqual(t, before.SolveHash, after.SolveHash, "and answered otherwise")
	w.run(id)
	w.replan()
	c, from3, to3 := w.channel(id)
	require.Equal(t, plan.Running, c.Status)
	require.Equal(t, [2]string{from2, to2}, [2]string{from3, to3})
}

// twoWays joins two nodes by a link, and by a switch.
const twoWays = `networkImplementation: LAN
nodes: [{name: n1}, {name: n2}, {name: s, type: NETWORK}]
links:
- {source: n1, target: n2, capabilities: {bandWidthBits: %[1]s, latencyNanos: "1e6"}}
- {source: n2, target: n1, capabilities: {bandWidthBits: %[1]s, latencyNanos: "1e6"}}
- {source: n1, target: s, capabilities: {bandWidthBits: 100M, latencyNanos: "1e6"}}
- {source: s, target: n1, capabilities: {bandWidthBits: 100M, latencyNanos: "1e6"}}
- {source: n2, target: s, capabilities: {bandWidthBits: 100M, latencyNanos: "1e6"}}
- {source: s, target: n2, capabilities: {bandWidthBits: 100M, latencyNanos: "1e6"}}
`

// TestAChannelThatGoesAnotherWayIsSaid: no component moves, so that nothing else would tell of it.
func TestAChannelThatGoesAnotherWayIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "n1", "n2")
	w.network(fmt.Sprintf(twoWays, "100M"))
	id := w.place()
	w.run(id)
	first, from, to := w.channel(id)
	require.Equal(t, from+"-"+to, first.Path)
	placed := func() (all []history.Entry) {
		all, err := history.After(t.Context(), w.DB, &id, 0, 10, recorded.ApplicationPlaced)
		require.NoError(t, err)
		return all
	}
	require.Len(t, placed(), 1)

	w.network(fmt.Sprintf(twoWays, "5M"))
	w.replan()
	c, from2, to2 := w.channel(id)
	require.Equal(t, [2]string{from, to}, [2]string{from2, to2})
	require.Equal(t, plan.Running, c.Status)
	said := placed()
	require.Len(t, said, 2)
	require.Equal(t, "channel frames from front to back by "+c.Path+" over LAN instead of "+first.Path+" over LAN", said[1].Message)
	var decision placement.Decision
	require.NoError(t, json.Unmarshal(said[1].Data, &decision))
	require.Contains(t, decision.Because, "channel frames is out of QoS")
	require.Empty(t, decision.Why, "no component has another place")
	require.Equal(t, c.Path, decision.Channels[0].Path)

	w.replan()
	require.Len(t, placed(), 2)
}

// foresee says what a model foresees of a link's bandwidth in ten minutes.
func (w world) foresee(from, to string, kbps float64) {
	w.Helper()
	_, err := w.DB.Exec(w.Context(), `with m as (insert into metrics (name, type, help, labels, states, created_by)
values ('net_bandwidth_kbps_forecast', 'gauge', '', '{}', '{}', 'anna') returning name), f as (
insert into metric_forecasts (metric, query, model, model_type, step_seconds, sequence, ahead, labels)
select name, 'q', 'm:1', '', 600, 12, 1, '{}' from m returning metric)
insert into metric_series (metric, labels, value, steps, first_at)
select metric, jsonb_build_object('source_node', $1::text, 'target_node', $2::text), $3, jsonb_build_array($3::float8),
now() + interval '10 minutes' from f`, from, to, kbps)
	require.NoError(w, err)
}

// TestAChannelMovesBeforeItsLinkDegrades: where forecasts are used, and only there. A forecast is acted on once.
func TestAChannelMovesBeforeItsLinkDegrades(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "n1", "n2", "n3")
	id := w.place()
	w.run(id)
	_, from, to := w.channel(id)
	w.Must(func(ctx context.Context, tx *store.Tx) error {
		return state.Save(ctx, tx, []links.Measurement{{
			Source: from, Target: to, Figures: links.Figures{Bandwidth: links.Known(90_000)}, MeasuredAt: time.Now(),
		}})
	})
	w.foresee(from, to, 10_000)
	w.replan()
	_, from2, to2 := w.channel(id)
	require.Equal(t, [2]string{from, to}, [2]string{from2, to2}, "forecasts are not used")

	w.settings.UseForecast = true
	w.replan()
	c, from2, to2 := w.channel(id)
	require.NotEqual(t, [2]string{from, to}, [2]string{from2, to2})
	require.NotEqual(t, plan.OutOfQoS, c.Status)
	var why string
	require.NoError(t, w.DB.QueryRow(t.Context(), "select data::text from history where data::text like '%will be out of QoS%' limit 1").Scan(&why))
	require.Contains(t, why, "carries 10000 kbit/s, of which its channels need 20000")
	w.run(id)
	w.replan()
	_, from3, to3 := w.channel(id)
	require.Equal(t, [2]string{from2, to2}, [2]string{from3, to3})
}

// small is an application of one component.
const small = `name: %s
components:
  - name: web
    type: kubernetes
    requirements: {cpu: 1500m, memory: 2Gi}
    manifests: [{name: web, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}}}]
`

// TestANodeThatWillBeFullIsLeft: as far as its forecast needs it, where forecasts are used, and once.
func TestANodeThatWillBeFullIsLeft(t *testing.T) {
	t.Parallel()
	for what, forecast := range map[string]topology.ForecastedMetrics{
		"50 % of its cpu, which leaves 2 of 4 cores for the 3 that are reserved":          {CPUUtilizationPrediction: topology.Known(50)},
		"75 % of its memory, which leaves 2 GiB of 8 GiB for the 4 GiB that are reserved": {MemoryUtilizationPrediction: topology.Known(75)},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "n1")
			var ids [2]uuid.UUID
			for i := range ids {
				ids[i] = applicationtest.Submit(w, w.DB, fmt.Sprintf(small, fmt.Sprint("shop", i))).ID
				w.Must(func(ctx context.Context, tx *store.Tx) error {
					return match.Place(ctx, tx, ids[i], w.settings.Settings, false, "")
				})
				w.run(ids[i])
			}
			at := func() (nodes []string) {
				for _, id := range ids {
					for _, j := range w.Get(id).Jobs {
						if j.Live() {
							nodes = append(nodes, j.Node)
						}
					}
				}
				return nodes
			}
			require.Equal(t, []string{"n1", "n1"}, at())
			w.see(map[string]topology.ForecastedMetrics{"n1": forecast}, "n1", "n2")
			w.replan()
			require.Equal(t, []string{"n1", "n1"}, at(), "forecasts are not used")

			w.settings.UseForecast = true
			w.replan()
			require.ElementsMatch(t, []string{"n1", "n2"}, at(), "there is room for one")
			var why string
			require.NoError(t, w.DB.QueryRow(t.Context(), `select data ->> 'because' from history
where event = $1 order by id desc limit 1`, recorded.ApplicationPlaced).Scan(&why))
			require.Regexp(t, "^node site/n1 will be full: the forecast of .* says "+what+"$", why)
			was := at()
			for _, id := range ids {
				w.run(id)
			}
			w.replan()
			require.Equal(t, was, at())
		})
	}
}

// TestWhereNothingElseFitsTheForecastIsBorne: it is tried once, and what runs goes on.
func TestWhereNothingElseFitsTheForecastIsBorne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "n1")
	w.settings.UseForecast = true
	id := applicationtest.Submit(w, w.DB, fmt.Sprintf(small, "shop")).ID
	w.Must(func(ctx context.Context, tx *store.Tx) error {
		return match.Place(ctx, tx, id, w.settings.Settings, false, "")
	})
	w.run(id)
	w.see(map[string]topology.ForecastedMetrics{"n1": {CPUUtilizationPrediction: topology.Known(90)}}, "n1")
	w.settings.Pause = 0
	for range 3 {
		w.replan()
	}
	require.Equal(t, "n1", w.Get(id).Jobs[0].Node)
	var times int
	require.NoError(t, w.DB.QueryRow(t.Context(), "select times from channel_replans where application_id = $1", id).Scan(&times))
	require.Equal(t, 1, times)
}

// TestWhatCannotMoveStaysOutOfQoS: without another way the channel keeps the one that it has, and works again when the link does.
func TestWhatCannotMoveStaysOutOfQoS(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "n1", "n2")
	id := w.place()
	w.run(id)
	nodes := []string{"n1", "n2"}
	w.describe(nodes, map[[2]string]string{{"n1", "n2"}: "5M", {"n2", "n1"}: "5M"})
	for range 3 { // the pause lets only the first of them plan anew
		w.replan()
	}
	c, from, to := w.channel(id)
	require.Equal(t, plan.OutOfQoS, c.Status)
	require.Contains(t, c.Reason, "carries 5000000 bit/s, of which its channels need 20000000")
	require.NotEmpty(t, c.Path, "it goes on over the way that it has")
	var times int
	require.NoError(t, w.DB.QueryRow(t.Context(), "select times from channel_replans where application_id = $1", id).Scan(&times))
	require.Equal(t, 1, times)

	w.describe(nodes, nil)
	w.replan()
	w.Must(func(ctx context.Context, tx *store.Tx) error {
		return match.RetryMisplaced(ctx, tx, id, w.settings.Settings)
	}) // as the news make it
	c, from2, to2 := w.channel(id)
	require.Equal(t, plan.Running, c.Status)
	require.Equal(t, [2]string{from, to}, [2]string{from2, to2})
}

// TestAWayTooNarrowIsRejected: no way keeps what the channel asks for, so an end waits.
func TestAWayTooNarrowIsRejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "n1", "n2")
	w.describe([]string{"n1", "n2"}, map[[2]string]string{{"n1", "n2"}: "5M", {"n2", "n1"}: "5M"})
	id := w.place()
	c, _, _ := w.channel(id)
	require.Equal(t, plan.Rejected, c.Status)
	p := w.planned(id).Plan.Status
	require.Equal(t, plan.Placing, p.Phase)
	require.False(t, p.Reply.Feasible)
	require.NotEmpty(t, p.Reply.Errors)
}
