package deploykubernetes_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	deploykubernetes "github.com/littoral-project/littoral/functions/deploymentmanager/deploy-kubernetes"
	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/store"
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

// TestAJobIsAppliedToTheClusterOfAKubeconfig, a kind that only that cluster knows included.
func TestAJobIsAppliedToTheClusterOfAKubeconfig(t *testing.T) {
	db, cluster := storetest.New(t), kubeapi.Start(t, nil, []string{"edge-a"})
	cluster.Define("example.org", "v1", "Sensor", "sensorium", true)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "edge"), []byte(cluster.Kubeconfig()), 0o600))
	t.Setenv("DEPLOYMENTMANAGER_DEPLOY_KUBERNETES_KUBECONFIG_DIR", dir)
	t.Setenv("DEPLOYMENTMANAGER_DEPLOY_KUBERNETES_DEPLOY_WAIT", "0s")
	f, err := deploykubernetes.New(
		&function.Env{Name: "deploymentmanager-deploy-kubernetes", DB: db, Log: slog.New(slog.DiscardHandler)},
	)
	require.NoError(t, err)
	place := func(node string) uuid.UUID {
		var id uuid.UUID
		require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			a, _, err := application.Submit(
				ctx,
				tx,
				application.Submission{Document: []byte(descriptor), LostAfter: time.Minute},
			)
			if err != nil {
				return err
			}
			id = a.ID
			if a, err = application.Lock(ctx, tx, a.ID); err != nil {
				return err
			}
			return a.Jobs[0].Place(ctx, tx, job.Target{Orchestrator: "kubernetes", Cluster: "edge", Node: node}, "for the test")
		}))
		published := storetest.Published(db)
		require.NoError(t, f.Work(t.Context(), published[len(published)-1]))
		return id
	}
	only := func(id uuid.UUID) *job.Job {
		jobs, err := job.OfApplications(t.Context(), db, id)
		require.NoError(t, err)
		return jobs[0]
	}

	id := place("edge-a")
	require.True(t, only(id).Available(), "%+v", only(id).Conditions)
	require.Len(t, cluster.Paths("/configmaps/web"), 1)
	require.Len(t, cluster.Paths("/sensorium/s"), 1, "the cluster was asked what it calls a Sensor")

	lost := only(place("edge-z"))
	require.Equal(t, job.Degraded, lost.State)
	require.Equal(t, "NodeNotFound", lost.Condition(job.ConditionDegraded).Reason)
	require.Contains(t, lost.Condition(job.ConditionDegraded).Message, "edge-z")
}
