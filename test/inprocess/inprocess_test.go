package inprocess_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/topology"
	"github.com/littoral-project/littoral/test/inprocess"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const descriptor = `name: shop
components:
  - name: web
    type: kubernetes
    requirements: {cpu: 500m, memory: 256Mi}
    manifests: [{name: web, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}}}]
`

type group struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Jobs   []struct {
		Targets struct {
			Cluster string `json:"cluster_name"`
			Node    string `json:"node_name"`
		} `json:"targets"`
	} `json:"jobs"`
}

func ask(t *testing.T, sys *inprocess.System, method, path, body string) (g group) {
	t.Helper()
	require.NoError(t, json.Unmarshal(call(t, sys, method, path, body), &g))
	return g
}

// call returns what an operation answers.
func call(t *testing.T, sys *inprocess.System, method, path, body string) []byte {
	t.Helper()
	return callAs(t, sys, auth.Operator, method, path, body)
}

func callAs(t *testing.T, sys *inprocess.System, role auth.Role, method, path, body string) []byte {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, sys.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+sys.Token(role))
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, 2, resp.StatusCode/100, "%s", answer)
	return answer
}

func TestASubmissionRunsItsWholeWay(t *testing.T) {
	t.Parallel()
	sys := inprocess.Start(t)
	sys.SaveTopology(inprocess.Topology(time.Now()))

	g := ask(t, sys, http.MethodPost, "/jobmanager/groups", descriptor)
	require.Equal(t, "Deploying", ask(t, sys, http.MethodGet, "/jobmanager/groups/"+g.ID, "").Status)
	require.Equal(t, 1, sys.Agent("ocm", "agent-hub").Work()+sys.Agent("nuvla", "agent-edge").Work())
	require.Equal(t, "Available", ask(t, sys, http.MethodGet, "/jobmanager/groups/"+g.ID, "").Status)
	require.Empty(t, sys.Broker.Failures())

	var types []string
	for _, e := range sys.Broker.Accepted() {
		types = append(types, e.Type())
	}
	require.Subset(t, types, []string{
		events.TopologyChanged, events.ApplicationSubmitted, events.ApplicationPlaced, events.JobReady, events.JobFinished,
	})
}

func TestADrainedNodeIsLeft(t *testing.T) {
	t.Parallel()
	sys := inprocess.Start(t)
	sys.SaveTopology(inprocess.Topology(time.Now()))
	g := ask(t, sys, http.MethodPost, "/jobmanager/groups", descriptor)
	hub, edge := sys.Agent("ocm", "agent-hub"), sys.Agent("nuvla", "agent-edge")
	require.Equal(t, 1, hub.Work()+edge.Work())

	left := ask(t, sys, http.MethodGet, "/jobmanager/groups/"+g.ID, "").Jobs[0].Targets
	sys.SaveTopology(inprocess.Drain(inprocess.Topology(time.Now()), left.Cluster+"/"+left.Node))
	require.Equal(t, 2, hub.Work()+edge.Work(), "the new place is deployed and the old one cleaned")
	now := ask(t, sys, http.MethodGet, "/jobmanager/groups/"+g.ID, "")
	require.Equal(t, "Available", now.Status)
	require.NotEqual(t, left, now.Jobs[0].Targets)
}

// TestANodeIsLeftBeforeItIsFull: a forecast arrives, and the application leaves in time, if forecasts are used.
func TestANodeIsLeftBeforeItIsFull(t *testing.T) {
	t.Parallel()
	for _, used := range []string{"true", "false"} {
		t.Run("USE_FORECAST "+used, func(t *testing.T) {
			t.Parallel()
			sys := inprocess.StartWith(t, settings.Map(map[string]string{"USE_FORECAST": used}))
			sys.SaveTopology(inprocess.Topology(time.Now()))
			g := ask(t, sys, http.MethodPost, "/jobmanager/groups", descriptor)
			hub, edge := sys.Agent("ocm", "agent-hub"), sys.Agent("nuvla", "agent-edge")
			require.Equal(t, 1, hub.Work()+edge.Work())
			first := ask(t, sys, http.MethodGet, "/jobmanager/groups/"+g.ID, "").Jobs[0].Targets

			foreseen := inprocess.Topology(time.Now())
			n := foreseen.Cluster[first.Cluster].Node[first.Node]
			n.ForecastedMetrics.CPUUtilizationPrediction = topology.Known(97)
			foreseen.Cluster[first.Cluster].Node[first.Node] = n
			sys.SaveTopology(foreseen)
			require.NoError(t, sys.Broker.TickOne(t.Context(), "swm-replan"))
			require.NoError(t, sys.DB.Flush(t.Context()))
			if used == "false" {
				require.Zero(t, hub.Work()+edge.Work())
				require.Equal(t, first, ask(t, sys, http.MethodGet, "/jobmanager/groups/"+g.ID, "").Jobs[0].Targets)
				return
			}
			require.Equal(t, 2, hub.Work()+edge.Work(), "the new place is deployed and the old one cleaned")
			now := ask(t, sys, http.MethodGet, "/jobmanager/groups/"+g.ID, "")
			require.Equal(t, "Available", now.Status)
			require.NotEqual(t, first, now.Jobs[0].Targets)
			require.Empty(t, sys.Broker.Failures())
		})
	}
}

func TestRoomThatIsMadeIsUsed(t *testing.T) {
	t.Parallel()
	const big = `name: %s
components:
  - name: web
    type: kubernetes
    requirements: {cpu: 3500m, architecture: arm64}
    manifests: [{name: web, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}}}]
`
	submit := func(sys *inprocess.System, name string) group {
		return ask(t, sys, http.MethodPost, "/jobmanager/groups", strings.Replace(big, "%s", name, 1))
	}
	for name, work := range map[string]bool{
		"by the end of a removal":                      true,
		"by stopping what nobody has begun to execute": false,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sys := inprocess.Start(t)
			sys.SaveTopology(inprocess.Topology(time.Now()))
			edge := sys.Agent("nuvla", "agent-edge")
			first, _, third := submit(sys, "first"), submit(sys, "second"), submit(sys, "third")
			require.Equal(t, "Pending", ask(t, sys, http.MethodGet, "/jobmanager/groups/"+third.ID, "").Status)
			if work {
				require.Equal(t, 2, edge.Work())
			}
			ask(t, sys, http.MethodPut, "/jobmanager/groups/stop/"+first.ID, "")
			if work {
				require.Equal(t, 1, edge.Work())
			}
			require.Equal(t, "Deploying", ask(t, sys, http.MethodGet, "/jobmanager/groups/"+third.ID, "").Status)
		})
	}
}
