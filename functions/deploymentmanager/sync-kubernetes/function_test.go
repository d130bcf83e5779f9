package synckubernetes_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/stretchr/testify/require"

	synckubernetes "github.com/littoral-project/littoral/functions/deploymentmanager/sync-kubernetes"
	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/events"
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
    manifests: [{name: web, manifest: {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: w, image: i}]}}}]
`

func TestEachRunBringsTheBooksUpToDate(t *testing.T) {
	db, cluster := storetest.New(t), kubeapi.Start(t, nil, []string{"edge-a"})
	f, err := synckubernetes.New(
		function.Platform{
			DB: db, Log: slog.New(slog.DiscardHandler),
			Settings: settings.Map(map[string]string{
				"DEPLOYMENTMANAGER_SYNC_KUBERNETES_KUBECONFIG_DIR": filepath.Dir(cluster.KubeconfigFile(t, "edge")),
			}),
		}.Env("deploymentmanager-sync-kubernetes"),
	)
	require.NoError(t, err)
	id := applicationtest.Submit(t, db, descriptor).ID
	applicationtest.Place(t, db, id, job.Target{Orchestrator: "kubernetes", Cluster: "edge", Node: "edge-a"})
	only := func() *job.Job { return applicationtest.Job(t, db, id) }
	require.NoError(t, f.Work(t.Context(), tick()), "it takes what nobody was told of")
	require.Equal(t, job.Progressing, only().State)
	cluster.Work()
	require.NoError(t, f.Work(t.Context(), tick()))
	require.True(t, only().Available())

	cluster.Cut(true)
	require.NoError(t, f.Work(t.Context(), tick()))
	require.Contains(t, only().Unknown(), "the API of cluster edge does not answer")
	cluster.Cut(false)
	require.NoError(t, f.Work(t.Context(), tick()))
	require.True(t, only().Available())
}

func tick() cloudevents.Event {
	e := cloudevents.New()
	e.SetType(events.Tick)
	return e
}
