package inprocess_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/infra/runner/prometheus/prometheustest"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/history/recorded"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/topology"
	"github.com/littoral-project/littoral/test/inprocess"
)

// camera sends 20 Mbit/s from one of its halves to the other, which do not fit on one node, and nowhere but on the hub.
const camera = `apiVersion: codeco.he-codeco.eu/v1alpha1
kind: CodecoApp
metadata: {name: camera}
spec:
  codecoapp-msspec:
  - serviceName: front
    podspec: {containers: [{name: c, image: "example.org/front:1", resources: {requests: {cpu: "5"}}}]}
    serviceChannels:
    - {channelName: frames, otherService: {serviceName: back}, advancedChannelSettings: {minBandwidth: 20M, maxDelay: 10e-3}}
  - serviceName: back
    podspec: {containers: [{name: c, image: "example.org/back:1", resources: {requests: {cpu: "5"}}}]}
`

// network is a system whose hub has three nodes, each joined to each other by links of 100 Mbit/s.
type network struct {
	*testing.T

	sys       *inprocess.System
	telemetry *prometheus.Server
	links     [][2]string
}

func newNetwork(t *testing.T, useForecast string) *network {
	t.Helper()
	n := &network{T: t, telemetry: prometheustest.With(t, prometheus.Options{Retention: 1000 * time.Hour})}
	server := httptest.NewServer(n.telemetry.Handler())
	t.Cleanup(server.Close)
	n.sys = inprocess.StartWith(t, settings.Map(map[string]string{
		"USE_FORECAST": useForecast, "PROMETHEUS_ADDRESS": server.URL, "OBJECTS_URL": "file://" + t.TempDir(),
	}))
	n.sys.SaveTopology(n.taxonomy())

	text := "networkImplementation: LAN\nnodes: [{name: hub-1}, {name: hub-2}, {name: hub-3}]\nlinks:\n"
	for _, a := range []string{"hub-1", "hub-2", "hub-3"} {
		for _, b := range []string{"hub-1", "hub-2", "hub-3"} {
			if a != b {
				n.links = append(n.links, [2]string{a, b})
				text += "- {source: " + a + ", target: " + b + ", capabilities: {bandWidthBits: 100M, latencyNanos: \"1e6\"}}\n"
			}
		}
	}
	n.call(http.MethodPut, "/swm/topologies/lan", text, nil)
	return n
}

func (n *network) taxonomy() *topology.Taxonomy {
	all := inprocess.Topology(time.Now())
	third := all.Cluster["hub"].Node["hub-1"]
	third.Name = "hub-3"
	all.Cluster["hub"].Node["hub-3"] = third
	return all
}

func (n *network) call(method, path, body string, into any) {
	n.Helper()
	answer := call(n.T, n.sys, method, path, body)
	if into != nil {
		require.NoError(n, json.Unmarshal(answer, into), "%s", answer)
	}
}

func (n *network) tick(name string) {
	n.Helper()
	require.NoError(n, n.sys.Broker.TickOne(n.Context(), name))
	require.NoError(n, n.sys.DB.Flush(n.Context()))
}

// carrying is a sample of what a link carries.
func carrying(link [2]string, kbps float64, at time.Time) prometheus.Sample {
	return prometheus.Sample{
		Name: "net_bandwidth_kbps", Labels: map[string]string{"source_node": link[0], "target_node": link[1]}, Value: kbps, At: at,
	}
}

// measured lets telemetry, and then the controller, know what links carry.
func (n *network) measured(samples ...prometheus.Sample) {
	n.Helper()
	require.NoError(n, n.telemetry.Append(n.Context(), samples))
	n.tick("netma-measure")
}

// course is what all links carried in the last four days: one of them now less and then more again, in a rhythm that no day has, and
// right now less and less.
func (n *network) course(waning [2]string) (all []prometheus.Sample) {
	const values, step = 600, 10 * time.Minute
	r := rand.New(rand.NewPCG(1, 2))
	now := time.Now()
	last := now.Truncate(step)
	for _, link := range n.links {
		for i := range values + 1 { // the next one too, since its time may come while the test runs
			at := last.Add(time.Duration(i-values+1) * step)
			kbps := 95_000.0
			if link == waning {
				kbps = 50_000 - 45_000*math.Sin(2*math.Pi*at.Sub(last).Minutes()/125)
			}
			all = append(all, carrying(link, kbps+500*r.NormFloat64(), at))
		}
		all = append(all, carrying(link, 50_000, now))
	}
	return all
}

// learn lets the links be measured, one of them less and less, and a model of it foresee them all.
func (n *network) learn(waning [2]string) {
	n.Helper()
	n.measured(n.course(waning)...)
	var training struct {
		ID         string `json:"training_id"`
		State, Why string
	}
	n.call(http.MethodPost, "/metricsexport/train", `{"model_name": "links", "model_type": "ridge", "window_in_seconds": 300000,
"step_in_seconds": 600, "telemetry_metric": "net_bandwidth_kbps{source_node='`+waning[0]+`', target_node='`+waning[1]+`'}"}`, &training)
	n.call(http.MethodGet, "/metricsexport/trainings/"+training.ID, "", &training)
	require.Equal(n, "Finished", training.State, training.Why)
	n.call(http.MethodPost, "/metricsexport/create_model_metric", `{"metric_name": "net_bandwidth_kbps_forecast", "type": 2,
"model_name": "links", "telemetry_metric": "net_bandwidth_kbps", "step_in_seconds": 600, "steps_ahead": 3}`, nil)
	n.tick("metricsexport-compute")
}

// channel returns the state of the application's channel, and the link that it takes.
func (n *network) channel(app string) (state string, link [2]string) {
	n.Helper()
	var all []struct{ Status, Path string }
	n.call(http.MethodGet, "/swm/channels?app="+app, "", &all)
	require.Len(n, all, 1)
	i := slices.IndexFunc(n.links, func(l [2]string) bool { return l[0]+"-"+l[1] == all[0].Path })
	require.GreaterOrEqual(n, i, 0, "%+v", all[0])
	return all[0].Status, n.links[i]
}

type linkState struct {
	Source, Target, Degraded string
	BandwidthKbps            float64
	Forecasts                []struct{ Values []float64 }
}

func (n *network) link(link [2]string) linkState {
	n.Helper()
	var all []linkState
	n.call(http.MethodGet, "/netma/links", "", &all)
	i := slices.IndexFunc(all, func(l linkState) bool { return l.Source == link[0] && l.Target == link[1] })
	require.GreaterOrEqual(n, i, 0)
	return all[i]
}

// why are the decisions about an application that begin their reason like that.
func (n *network) why(app, reason string) (all []string) {
	n.Helper()
	var entries []struct{ Data struct{ Because string } }
	n.call(http.MethodGet, "/jobmanager/history?event="+recorded.ApplicationPlaced+"&app="+app, "", &entries)
	for _, e := range entries {
		if strings.HasPrefix(e.Data.Because, reason) {
			all = append(all, e.Data.Because)
		}
	}
	return all
}

// TestALinkIsLeftBeforeItDegrades: what telemetry hears of a link is learnt, a model foresees that it will not carry its channel, and
// the application leaves it while it still does, where forecasts are used. Where they are not, it leaves when the link is too narrow.
func TestALinkIsLeftBeforeItDegrades(t *testing.T) {
	t.Parallel()
	for _, used := range []string{"true", "false"} {
		t.Run("USE_FORECAST "+used, func(t *testing.T) {
			t.Parallel()
			n := newNetwork(t, used)
			g := ask(t, n.sys, http.MethodPost, "/jobmanager/groups", camera)
			hub := n.sys.Agent("ocm", "agent-hub")
			require.Equal(t, 2, hub.Work())
			state, first := n.channel(g.ID)
			require.Equal(t, "RUNNING", state)
			n.learn(first)
			forecast := n.link(first)
			require.Empty(t, forecast.Degraded)
			require.InDelta(t, 50_000, forecast.BandwidthKbps, 1)
			require.Len(t, forecast.Forecasts, 1)
			require.Len(t, forecast.Forecasts[0].Values, 3)
			require.Less(t, forecast.Forecasts[0].Values[2], 15_000.0)

			n.tick("swm-replan")
			_, link := n.channel(g.ID)
			if used == "false" {
				require.Equal(t, first, link)
				n.measured(carrying(first, 10_000, time.Now()))
				require.NotEmpty(t, n.why(g.ID, "channel frames is out of QoS"))
				return
			}
			require.NotEqual(t, first, link)
			require.NotEmpty(t, n.why(g.ID, "channel frames will be out of QoS: the link from "+first[0]+" to "+first[1]+" carries"))
			require.Equal(t, 2, hub.Work(), "the new place is deployed and the old one cleaned")
			state, link = n.channel(g.ID)
			require.Equal(t, "RUNNING", state)

			n.measured(carrying(first, 10_000, time.Now()))
			require.Empty(t, n.link(first).Degraded, "nobody is there any more")
			n.tick("swm-replan")
			_, last := n.channel(g.ID)
			require.Equal(t, link, last)
			require.False(t, slices.ContainsFunc(n.sys.Broker.Accepted(), func(e cloudevents.Event) bool { return e.Type() == events.NetworkDegraded }))
			require.Empty(t, n.sys.Broker.Failures())
		})
	}
}

// planned are the nodes of the camera's ends, were it handed in now.
func (n *network) planned() (link [2]string) {
	n.Helper()
	var plan struct {
		Steps []struct {
			Component string
			To        struct {
				Node string `json:"node_name"`
			}
		}
	}
	n.call(http.MethodPost, "/matchmaker/plan", camera, &plan)
	require.Len(n, plan.Steps, 2)
	for _, s := range plan.Steps {
		link[slices.Index([]string{"front", "back"}, s.Component)] = s.To.Node
	}
	return link
}

// TestWhoeverPlacesKnowsWhatIsForeseen: nothing is planned, explained, moved or placed later over a link that will be too narrow.
func TestWhoeverPlacesKnowsWhatIsForeseen(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, "true")
	waning := n.planned()
	n.learn(waning)
	require.NotEqual(t, waning, n.planned())
	document, err := json.Marshal(camera)
	require.NoError(t, err)
	for path, body := range map[string]string{
		"/matchmaker/explain": camera, "/matchmake": camera, "/matchmaker/whatif": `{"descriptor": ` + string(document) + `}`,
	} {
		require.Contains(t, string(call(t, n.sys, http.MethodPost, path, body)), "hub-", path)
	}
	require.Contains(t, string(callAs(t, n.sys, auth.Controller, http.MethodPost, "/controller/offers", camera)), `"placed":2`)

	hub := n.sys.Agent("ocm", "agent-hub")
	g := ask(t, n.sys, http.MethodPost, "/jobmanager/groups", camera)
	avoided := func(id string) [2]string {
		t.Helper()
		for hub.Work() > 0 {
		}
		state, link := n.channel(id)
		require.Equal(t, "RUNNING", state)
		require.NotEqual(t, waning, link)
		return link
	}
	link := avoided(g.ID)
	n.call(http.MethodPut, "/matchmaker/nodes/hub/"+link[0]+"/drain", "", nil)
	left := link[0]
	link = avoided(g.ID)
	require.NotContains(t, link, left, "by a person who drains the node")
	n.call(http.MethodPut, "/matchmaker/nodes/hub/"+left+"/uncordon", "", nil)
	n.sys.SaveTopology(inprocess.Drain(n.taxonomy(), "hub/"+link[1]))
	left = link[1]
	link = avoided(g.ID)
	require.NotContains(t, link, left, "by the node itself")
	n.sys.SaveTopology(n.taxonomy())

	other := ask(t, n.sys, http.MethodPost, "/jobmanager/groups", strings.Replace(camera, "name: camera", "name: other", 1))
	require.Equal(t, "Pending", ask(t, n.sys, http.MethodGet, "/jobmanager/groups/"+other.ID, "").Status)
	ask(t, n.sys, http.MethodPut, "/jobmanager/groups/stop/"+g.ID, "")
	avoided(other.ID)
	require.Empty(t, n.sys.Broker.Failures())
}
