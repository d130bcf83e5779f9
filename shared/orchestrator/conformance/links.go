package conformance

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/clusterlink"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/linking"
)

var (
	exports     = schema.GroupVersionResource{Group: "clusterlink.net", Version: "v1alpha1", Resource: "exports"}
	imports     = schema.GroupVersionResource{Group: "clusterlink.net", Version: "v1alpha1", Resource: "imports"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// talkers are two components of which the second serves the first.
var talkers = &appmodel.Application{Name: "conform", Components: []appmodel.Component{
	{Name: "hello", Communication: appmodel.Communication{Incoming: []string{"world-svc"}}},
	{Name: "world", Communication: appmodel.Communication{Outgoing: []string{"world-svc"}}, Manifests: []appmodel.Manifest{
		{Name: "world-svc", Kind: "Service", YAML: "kind: Service\nmetadata: {name: world-svc}\nspec: {ports: [{port: 8080}]}\n"},
	}},
}}

// linkOf is what package linking has an orchestrator carry out for the side of the client or of the server.
func linkOf(w World, client bool, servers ...string) *job.Job {
	at := w.Places()[0]
	places := []clusterlink.Place{{Component: "hello", Cluster: at.Cluster}}
	for _, cluster := range servers {
		places = append(places, clusterlink.Place{Component: "world", Cluster: cluster})
	}
	here := places[0]
	if !client {
		here = places[1]
		at.Cluster = here.Cluster
	}
	side := linking.Side{
		Application: uuid.New(), Copy: uuid.New(), Orchestrator: at.Orchestrator, Cluster: at.Cluster, Name: "conform", Epoch: 1,
	}
	side.Namespace = "conform-" + side.Application.String()[:8]
	return written(&side, here, places)
}

func written(side *linking.Side, here clusterlink.Place, places []clusterlink.Place) *job.Job {
	s := clusterlink.Settings{Kind: clusterlink.ClusterLink}
	side.Contents = nil
	for _, o := range s.Objects(clusterlink.Of(talkers, places), here, side.Namespace) {
		side.Contents = append(side.Contents, job.Content{Name: o.Name, YAML: o.JSON})
	}
	return side.Job()
}

func peers(t *testing.T, w World) *Clusters {
	t.Helper()
	clusters, shows := w.(*Clusters)
	require.True(t, shows)
	require.NotNil(t, clusters.Peer)
	return clusters
}

func linkValid(t *testing.T, w World) {
	clusters := peers(t, w)
	for _, client := range []bool{true, false} {
		j := linkOf(w, client, "two")
		clusters.Peer(false)
		state, conditions := w.Do(t, j)
		require.Equal(t, job.Progressing, state, "%v", conditions)
		require.Equal(t, "LinkNotValid", available(t, conditions).Reason)
		clusters.Peer(false)
		state, conditions = w.Do(t, j)
		require.Equal(t, job.Progressing, state, "%v", conditions)
		require.Contains(t, available(t, conditions).Message, "as the peer sees it")
		clusters.Peer(true)
		state, conditions = w.Do(t, j)
		require.Equal(t, job.Finished, state, "%v", conditions)
		gone(t, w, j)
	}
}

func linkMoved(t *testing.T, w World) {
	clusters := peers(t, w)
	j := linkOf(w, true, "two")
	defer gone(t, w, j)
	w.Do(t, j)
	sources := func() string {
		t.Helper()
		o := clusters.object(t, j.Cluster, imports, j.Namespace, "world-svc")
		require.NotNil(t, o)
		text, err := o.MarshalJSON()
		require.NoError(t, err)
		return string(text)
	}
	require.Contains(t, sources(), `"peer":"two"`)
	next := *j
	next.Epoch = 2
	next.Instruction.Contents = append([]job.Content{}, j.Instruction.Contents...)
	for i := range next.Instruction.Contents {
		c := &next.Instruction.Contents[i]
		c.YAML = strings.ReplaceAll(c.YAML, `"peer":"two"`, `"peer":"three"`)
	}
	w.Do(t, &next)
	require.Contains(t, sources(), `"peer":"three"`)
	require.NotContains(t, sources(), `"peer":"two"`)
	w.Do(t, j) // somebody who has read it long ago
	require.Contains(t, sources(), `"peer":"three"`)
}

// linkDefined brings the definition of a kind beside its object, as an application does that brings its own fabric.
func linkDefined(t *testing.T, w World) {
	clusters := peers(t, w)
	j := linkOf(w, false, "two")
	j.Instruction.Contents = append([]job.Content{{Name: "definition", YAML: `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: exports.clusterlink.net}
spec:
  group: clusterlink.net
  scope: Namespaced
  names: {kind: Export, plural: exports}
  versions:
    - name: v1alpha1
      served: true
      storage: true
      subresources: {status: {}}
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`}}, j.Instruction.Contents...)
	w.Do(t, j)
	require.NotNil(t, clusters.object(t, j.Cluster, definitions, "", "exports.clusterlink.net"))
	require.NotNil(t, clusters.object(t, j.Cluster, exports, j.Namespace, "world-svc"))
	clusters.Peer(true)
	finishLink(t, w, j)
	gone(t, w, j)
	require.Nil(t, clusters.object(t, j.Cluster, definitions, "", "exports.clusterlink.net"))
}

func finishLink(t *testing.T, w World, j *job.Job) {
	t.Helper()
	state, conditions := w.Do(t, j)
	require.Equal(t, job.Finished, state, "%v", conditions)
	require.Equal(t, "True", available(t, conditions).Status)
}

func linkRemoved(t *testing.T, w World) {
	clusters := peers(t, w)
	j := linkOf(w, true, "two")
	w.Do(t, j)
	clusters.Peer(true)
	finishLink(t, w, j)
	require.NotNil(t, clusters.object(t, j.Cluster, imports, j.Namespace, "world-svc"))
	last := As(j, job.Delete)
	last.Epoch = 2
	state, conditions := w.Do(t, last)
	require.Equal(t, job.Finished, state, "%v", conditions)
	require.Nil(t, clusters.object(t, j.Cluster, imports, j.Namespace, "world-svc"))
	require.Nil(t, clusters.object(t, j.Cluster, namespaces, "", j.Namespace))
}
