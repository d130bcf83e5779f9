package match_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator/kinds"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/topology"
)

// twoEngines has a Kubernetes cluster "edge" with the node "a", and a Docker machine "camera".
func twoEngines() *topology.Taxonomy {
	t := taxonomy(node{name: "a", cores: 4})
	docker := taxonomy(node{name: "camera", cores: 4}).Cluster["edge"]
	n := docker.Node["camera"]
	n.Engine = topology.Docker
	docker.Name, docker.Type, docker.Engine, docker.AgentID, docker.Node = "camera", kinds.Nuvla, topology.Docker, "agent-camera",
		map[string]topology.Node{"camera": n}
	t.Cluster["camera"] = docker
	return t
}

// variants is a descriptor with both manifests for one component, which the user wants in the cluster.
func variants(cluster string) []byte {
	return fmt.Appendf(nil, `name: shop
components:
  - name: web
    type: multiple
    targets: {cluster_name: %s}
    manifests: [{name: objects}, {name: compose}]
manifests:
  - {name: objects, manifest: {apiVersion: v1, kind: Pod, metadata: {name: web}}}
  - {name: compose, manifest: {services: {web: {image: x}}}}
`, cluster)
}

// contents returns the names of the job's objects.
func contents(j *job.Job) []string {
	var names []string
	for _, c := range j.Instruction.Contents {
		names = append(names, c.Name)
	}
	return names
}

func TestPlace_aJobGetsTheManifestsOfTheEngineItIsPlacedOn(t *testing.T) {
	t.Parallel()
	for cluster, want := range map[string]string{"edge": "objects", "camera": "compose"} {
		t.Run(cluster, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.picture(twoEngines())
			id := w.submit(variants(cluster))
			w.place(id, false)
			a, err := application.Get(t.Context(), w.DB, id)
			require.NoError(t, err)
			require.Equal(t, cluster, a.Jobs[0].Cluster)
			require.Equal(t, []string{want}, contents(a.Jobs[0]))
			require.NotEqual(t, "multiple", a.Jobs[0].Instruction.Type)
		})
	}
}

func TestPlace_aChangeOfEngineReplacesWhatRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.picture(twoEngines())
	id := w.submit(variants("edge"))
	w.place(id, false)
	w.run(id)

	preview, err := w.dryRun(variants("camera"), &id)
	require.NoError(t, err)
	require.Len(t, preview.Steps, 2, "%+v", preview.Steps)
	require.Equal(t, "move", preview.Steps[0].Action)
	require.Equal(t, "docker", preview.Steps[0].Variant)

	require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := applicationtest.Update(ctx, tx, id, variants("camera"), time.Minute)
		return err
	}))
	w.place(id, true)
	a, err := application.Get(t.Context(), w.DB, id)
	require.NoError(t, err)
	found := map[job.Type][]string{}
	for _, j := range a.Jobs {
		found[j.Type] = contents(j)
	}
	require.Equal(t, map[job.Type][]string{job.Create: {"compose"}, job.Delete: {"objects"}}, found,
		"the former copy goes as what it is")
}

func TestPlace_anUpdateReplacesOnlyTheVariantThatRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.picture(twoEngines())
	id := w.submit(variants("edge"))
	w.place(id, false)
	w.run(id)
	change := func(from, to string) *job.Job {
		t.Helper()
		require.NoError(t, w.Tx(func(ctx context.Context, tx *store.Tx) error {
			a, err := application.Get(ctx, tx, id)
			if err != nil {
				return err
			}
			require.Contains(t, a.Descriptor, from)
			_, err = applicationtest.Update(ctx, tx, id, []byte(strings.Replace(a.Descriptor, from, to, 1)), time.Minute)
			return err
		}))
		w.place(id, true)
		a, err := application.Get(t.Context(), w.DB, id)
		require.NoError(t, err)
		require.Len(t, a.Jobs, 1)
		require.Equal(t, []string{"objects"}, contents(a.Jobs[0]))
		return a.Jobs[0]
	}
	require.Equal(t, job.Finished, change("image: x", "image: y").State, "another engine's manifest is no work here")
	require.Equal(t, job.Created, change("kind: Pod, metadata: {name: web}", "kind: Pod, metadata: {name: web}, spec: {}").State)
}
