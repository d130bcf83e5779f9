package deploynuvla_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	deploynuvla "github.com/littoral-project/littoral/functions/deploymentmanager/deploy-nuvla"
	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/nuvla"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const descriptor = `
name: shop
components:
  - name: camera
    type: docker
    requirements: {devices: [/dev/video0]}
    manifests:
      - name: camera
        manifest: {services: {camera: {image: "camera:1"}}}
`

// TestAJobBecomesADeployment: of a compose application at the NuvlaEdge that the target names by its id, as ICOS does.
func TestAJobBecomesADeployment(t *testing.T) {
	db, server := storetest.New(t), nuvla.Start(t)
	edge := server.AddEdge("harbour", nuvla.Docker)
	f, err := deploynuvla.New(function.Platform{
		DB: db, Log: slog.New(slog.DiscardHandler),
		Settings: settings.Map(map[string]string{
			"DEPLOYMENTMANAGER_DEPLOY_NUVLA_NUVLA_ENDPOINT":   server.URL + "/api",
			"DEPLOYMENTMANAGER_DEPLOY_NUVLA_NUVLA_API_KEY":    nuvla.Key,
			"DEPLOYMENTMANAGER_DEPLOY_NUVLA_NUVLA_API_SECRET": nuvla.Secret,
			"DEPLOYMENTMANAGER_DEPLOY_NUVLA_DEPLOY_WAIT":      "0s",
		}),
	}.Env("deploymentmanager-deploy-nuvla"))
	require.NoError(t, err)
	id := applicationtest.Submit(t, db, descriptor).ID
	applicationtest.Place(t, db, id, job.Target{Orchestrator: "nuvla", Cluster: edge, Node: "harbour-host"})
	published := storetest.Published(db)
	for range 2 { // it may be delivered twice
		require.NoError(t, f.Work(t.Context(), published[len(published)-1]))
	}
	j := applicationtest.Job(t, db, id)
	require.Equal(t, job.Progressing, j.State, "%+v", j.Conditions)
	require.Equal(t, "deploymentmanager-nuvla", j.OwnerID)
	require.Len(t, server.Of("deployment"), 1)
	require.Equal(t, edge, server.Of("deployment")[0]["nuvlabox"])
	server.Work()
	server.Work()
	running := server.Running("harbour")
	require.Len(t, running, 1)
	require.Equal(t, "camera", running[0].Name)
	require.Equal(t, []any{map[string]any{"source": "/dev/video0", "target": "/dev/video0", "permissions": "rwm"}},
		running[0].Doc["devices"])
}
