package host

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/nuvla"
)

const atTheHarbour = `name: harbour-cam
components:
  - name: camera
    type: docker
    targets: [{cluster_name: harbour, orchestrator: nuvla}]
    manifests: [{name: camera, manifest: {services: {camera: {image: "camera:1", deploy: {replicas: 2}}}}}]
`

// TestALaptopDeploysThroughNuvla: with the address of a server among its settings, the jobs of the fleet's Docker hosts go the
// whole way through the function and Nuvla; the telemetry of the hosts stays that of the fleet.
func TestALaptopDeploysThroughNuvla(t *testing.T) {
	t.Parallel()
	server := nuvla.Start(t)
	server.AddEdge("harbour", nuvla.Docker)
	end := make(chan struct{})
	go server.Go(50*time.Millisecond, end)
	t.Cleanup(func() { close(end) })

	o := options(newHome(t))
	o.Database = storetest.URL(t)
	o.Settings = settings.Map(map[string]string{
		"NUVLA_ENDPOINT": server.URL, "NUVLA_API_KEY": nuvla.Key, "NUVLA_API_SECRET": nuvla.Secret,
	})
	h := start(t, o)
	var g group
	require.Equal(t, http.StatusCreated, ask(t, h.URL(), o.Home, "operator", "POST", "/jobmanager/groups", atTheHarbour, &g))
	available(t, h.URL(), o.Home, g.ID)
	running := server.Running("harbour")
	require.Len(t, running, 1)
	require.Equal(t, 2, running[0].Running)

	replicas := strings.Replace(atTheHarbour, "replicas: 2", "replicas: 3", 1)
	require.Equal(t, http.StatusOK, ask(t, h.URL(), o.Home, "operator", "PUT", "/jobmanager/groups/"+g.ID, replicas, nil))
	require.Eventually(t, func() bool {
		running := server.Running("harbour")
		return len(running) == 1 && running[0].Running == 3
	}, patience, 50*time.Millisecond)
	require.Equal(t, http.StatusOK, ask(t, h.URL(), o.Home, "operator", "PUT", "/jobmanager/groups/stop/"+g.ID, "", nil))
	require.Eventually(t, func() bool {
		return len(server.Running("harbour")) == 0 && len(server.Of("deployment")) == 0
	}, patience, 50*time.Millisecond)
}
