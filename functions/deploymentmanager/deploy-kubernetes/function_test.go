package deploykubernetes_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	deploykubernetes "github.com/littoral-project/littoral/functions/deploymentmanager/deploy-kubernetes"
	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/kubeapi"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const descriptor = `
name: shop
components:
  - name: web
    type: kubernetes
    manifests:
      - {name: web, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}}}
      - {name: sensor, manifest: {apiVersion: example.org/v1, kind: Sensor, metadata: {name: s}, spec: {every: 5}}}
`

// TestAJobIsAppliedToTheClusterOfAKubeconfig: including a kind that only that cluster knows.
func TestAJobIsAppliedToTheClusterOfAKubeconfig(t *testing.T) {
	db, cluster := storetest.New(t), kubeapi.Start(t, nil, []string{"edge-a"})
	cluster.Define("example.org", "v1", "Sensor", "sensorium", true)
	f, err := deploykubernetes.New(
		function.Platform{
			DB: db, Log: slog.New(slog.DiscardHandler),
			Settings: settings.Map(map[string]string{
				"DEPLOYMENTMANAGER_DEPLOY_KUBERNETES_KUBECONFIG_DIR": filepath.Dir(cluster.KubeconfigFile(t, "edge")),
				"DEPLOYMENTMANAGER_DEPLOY_KUBERNETES_DEPLOY_WAIT":    "0s",
			}),
		}.Env("deploymentmanager-deploy-kubernetes"),
	)
	require.NoError(t, err)
	place := func(node string) uuid.UUID {
		id := applicationtest.Submit(t, db, descriptor).ID
		applicationtest.Place(t, db, id, job.Target{Orchestrator: "kubernetes", Cluster: "edge", Node: node})
		published := storetest.Published(db)
		require.NoError(t, f.Work(t.Context(), published[len(published)-1]))
		return id
	}
	only := func(id uuid.UUID) *job.Job { return applicationtest.Job(t, db, id) }

	id := place("edge-a")
	require.True(t, only(id).Available(), "%+v", only(id).Conditions)
	require.Len(t, cluster.Paths("/configmaps/web"), 1)
	require.Len(t, cluster.Paths("/sensorium/s"), 1, "the cluster was asked what it calls a Sensor")

	lost := only(place("edge-z"))
	require.Equal(t, job.Degraded, lost.State)
	require.Equal(t, "NodeNotFound", lost.Condition(job.ConditionDegraded).Reason)
	require.Contains(t, lost.Condition(job.ConditionDegraded).Message, "edge-z")
}
