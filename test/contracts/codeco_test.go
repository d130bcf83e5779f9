package contracts_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const codecoCamera = `apiVersion: codeco.he-codeco.eu/v1alpha1
kind: CodecoApp
metadata: {name: camera, namespace: plant}
spec:
  appName: camera
  qosClass: Gold
  codecoapp-msspec:
  - serviceName: front
    podspec: {containers: [{name: c, image: "example.org/front:1", resources: {requests: {cpu: 100m}}}]}
    serviceChannels:
    - channelName: frames
      otherService: {serviceName: back, appName: camera, port: 9000}
      advancedChannelSettings: {minBandwidth: 20M, maxDelay: 10e-3}
  - serviceName: back
    podspec: {containers: [{name: c, image: "example.org/back:1"}]}
`

type codecoApp struct {
	Kind     string
	Metadata struct{ Name, Namespace, UID string }
	Status   struct {
		Status     string
		ErrorMsg   string
		AppMetrics struct {
			ServiceMetrics []struct{ ServiceName, NodeName, ClusterName string }
		}
	}
}

func TestACodecoAppLivesLikeAnyApplication(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.operator.call(t, http.MethodPost, "/acm/apps", codecoCamera).is(t, http.StatusCreated)
	require.Equal(t, "/acm/apps/plant/camera", a.header.Get("Location"))

	app := decode[codecoApp](t, w.viewer.get(t, "/acm/apps/plant/camera"))
	require.Equal(t, "CodecoApp", app.Kind)
	require.Equal(t, "Warning", app.Status.Status, "placed, and not running yet")
	require.Len(t, app.Status.AppMetrics.ServiceMetrics, 2)
	for _, s := range app.Status.AppMetrics.ServiceMetrics {
		require.NotEmpty(t, s.NodeName)
		require.NotEmpty(t, s.ClusterName)
	}
	g := w.group(t, app.Metadata.UID)
	require.Equal(t, "camera", g.Name)
	require.Len(t, g.Jobs, 2, "the same application, in the words of ICOS")

	other := strings.ReplaceAll(codecoCamera, "front:1", "front:2")
	w.operator.call(t, http.MethodPut, "/acm/apps/plant/camera", other).is(t, http.StatusOK)
	w.operator.call(t, http.MethodPut, "/acm/apps/plant/radar", other).is(t, http.StatusConflict)
	w.operator.call(t, http.MethodPost, "/acm/apps", codecoCamera).is(t, http.StatusConflict)
	require.Len(t, decode[[]codecoApp](t, w.viewer.get(t, "/acm/apps?namespace=plant")), 1)
	require.Empty(t, decode[[]codecoApp](t, w.viewer.get(t, "/acm/apps?namespace=other")))

	w.operator.call(t, http.MethodDelete, "/acm/apps/plant/camera", "")
	w.viewer.call(t, http.MethodGet, "/acm/apps/plant/radar", "").is(t, http.StatusNotFound)
}

func TestACodecoAppIsTakenWhereverADescriptorIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := decode[group](t, w.operator.call(t, http.MethodPost, "/jobmanager/groups", codecoCamera).is(t, http.StatusCreated))
	require.Equal(t, "camera", g.Name)
	require.NotEmpty(t, w.group(t, g.ID).Jobs[0].Targets.Node)
	w.viewer.call(t, http.MethodPost, "/matchmaker/plan", codecoCamera).is(t, http.StatusOK)
	w.operator.call(t, http.MethodPut, "/jobmanager/groups/scale/"+g.ID+"?component=front&replicas=2", "").is(t, http.StatusConflict)
}

func TestTheFaultsOfACodecoAppHaveItsPaths(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.operator.call(t, http.MethodPost, "/acm/apps", strings.ReplaceAll(codecoCamera, "Gold", "Platinum")).is(t, http.StatusUnprocessableEntity)
	require.Contains(t, string(a.body), `"spec.qosClass"`)
	a = w.operator.call(t, http.MethodPost, "/acm/apps", hubShop).is(t, http.StatusUnprocessableEntity)
	require.Contains(t, string(a.body), "CodecoApp")
}

// TestChannelsTakeWaysThroughTheNetwork: what one takes, the next does not get.
func TestChannelsTakeWaysThroughTheNetwork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var nodes []string
	taxonomy := decode[struct {
		Cluster map[string]struct {
			Node map[string]struct{ Name string }
		}
	}](t, w.viewer.get(t, "/aggregator/"))
	for _, c := range taxonomy.Cluster {
		for _, n := range c.Node {
			if !slices.Contains(nodes, n.Name) {
				nodes = append(nodes, n.Name)
			}
		}
	}
	require.GreaterOrEqual(t, len(nodes), 2)
	topology := "networkImplementation: LAN\nnodes: [{name: switch, type: NETWORK}"
	links := ""
	for _, n := range nodes {
		topology += ", {name: " + n + "}"
		links += ", {source: " + n + ", target: switch, capabilities: {bandWidthBits: 30M, latencyNanos: \"2e6\"}}" +
			", {source: switch, target: " + n + ", capabilities: {bandWidthBits: 30M, latencyNanos: \"2e6\"}}"
	}
	topology += "]\nlinks: [" + strings.TrimPrefix(links, ", ") + "]\n"
	w.operator.call(t, http.MethodPut, "/swm/topologies/lan", topology).is(t, http.StatusOK)
	w.operator.call(t, http.MethodPut, "/swm/topologies/lan", strings.ReplaceAll(topology, "30M", "many")).is(t, http.StatusUnprocessableEntity)

	app := decode[codecoApp](t, w.operator.call(t, http.MethodPost, "/acm/apps", codecoCamera).is(t, http.StatusCreated))
	type channel struct {
		Name, Source, Target, Network, Path string
		Loopback                            bool
	}
	ways := decode[[]channel](t, w.viewer.get(t, "/swm/channels?app="+app.Metadata.UID))
	require.Len(t, ways, 1)
	require.Equal(t, []string{"frames", "front", "back"}, []string{ways[0].Name, ways[0].Source, ways[0].Target})
	require.True(t, ways[0].Loopback || ways[0].Network == "LAN", "%+v", ways[0])
	w.operator.call(t, http.MethodDelete, "/swm/topologies/lan", "").is(t, http.StatusNoContent)
	w.operator.call(t, http.MethodDelete, "/swm/topologies/lan", "").is(t, http.StatusNotFound)
}
