package synckubernetes_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	synckubernetes "github.com/littoral-project/littoral/functions/deploymentmanager/sync-kubernetes"
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
    manifests: [{name: web, manifest: {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: w, image: i}]}}}]
`

func TestEachRunBringsTheBooksUpToDate(t *testing.T) {
	db, cluster := storetest.New(t), kubeapi.Start(t, nil, []string{"edge-a"})
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "edge"), []byte(cluster.Kubeconfig()), 0o600))
	t.Setenv("DEPLOYMENTMANAGER_SYNC_KUBERNETES_KUBECONFIG_DIR", dir)
	f, err := synckubernetes.New(
		&function.Env{Name: "deploymentmanager-sync-kubernetes", DB: db, Log: slog.New(slog.DiscardHandler)},
	)
	require.NoError(t, err)
	var id uuid.UUID
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		a, _, err := application.Submit(ctx, tx, application.Submission{Document: []byte(descriptor), LostAfter: time.Minute})
		if err != nil {
			return err
		}
		id = a.ID
		if a, err = application.Lock(ctx, tx, a.ID); err != nil {
			return err
		}
		return a.Jobs[0].Place(
			ctx,
			tx,
			job.Target{Orchestrator: "kubernetes", Cluster: "edge", Node: "edge-a"},
			"for the test",
		)
	}))
	only := func() *job.Job {
		jobs, err := job.OfApplications(t.Context(), db, id)
		require.NoError(t, err)
		return jobs[0]
	}
	require.NoError(t, f.Run(t.Context()), "it takes what nobody was told of")
	require.Equal(t, job.Progressing, only().State)
	cluster.Work()
	require.NoError(t, f.Run(t.Context()))
	require.True(t, only().Available())

	cluster.Cut(true)
	require.NoError(t, f.Run(t.Context()))
	require.Contains(t, only().Unknown(), "the API of cluster edge does not answer")
	cluster.Cut(false)
	require.NoError(t, f.Run(t.Context()))
	require.True(t, only().Available())
}
