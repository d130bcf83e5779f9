package clusterlink_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/clusterlink"
)

const service = "apiVersion: v1\nkind: Service\nmetadata: {name: world-svc}\nspec: {ports: [{port: 8080}, {port: 9090}]}\n"

// app is the hello-world of D3.3, with a third component that has nothing to do with it.
var app = &appmodel.Application{Name: "shop", Components: []appmodel.Component{
	{Name: "hello", Communication: appmodel.Communication{Incoming: []string{"world-svc"}}},
	{
		Name: "world", Communication: appmodel.Communication{Outgoing: []string{"world-svc"}},
		Manifests: []appmodel.Manifest{{Name: "world-svc", Kind: "Service", YAML: service}},
	},
	{Name: "other"},
}}

type place = clusterlink.Place

func TestNothingIsNeededInOneCluster(t *testing.T) {
	t.Parallel()
	for name, places := range map[string][]place{
		"beside each other":             {{Component: "hello", Cluster: "a"}, {Component: "world", Cluster: "a"}},
		"one of the servers is beside":  {{Component: "hello", Cluster: "a"}, {Component: "world", Cluster: "a"}, {Component: "world", Cluster: "b"}},
		"the server has no place":       {{Component: "hello", Cluster: "a"}},
		"the client has no place":       {{Component: "world", Cluster: "a"}},
		"who has nothing to do with it": {{Component: "other", Cluster: "a"}, {Component: "world", Cluster: "b"}},
	} {
		require.Empty(t, clusterlink.Of(app, places), name)
	}
}

func objects(s clusterlink.Settings, places []place, at place) string {
	var all []string
	for _, o := range s.Objects(clusterlink.Of(app, places), at, "shop-1") {
		all = append(all, o.JSON)
	}
	return strings.Join(all, "\n")
}

func TestEachSideBringsItsObjects(t *testing.T) {
	t.Parallel()
	s := clusterlink.Settings{Kind: clusterlink.ClusterLink, Peers: map[string]string{"b": "agent-b"}}
	client, server := place{Component: "hello", Cluster: "a"}, place{Component: "world", Cluster: "b"}
	places := []place{client, server, {Component: "other", Cluster: "b"}}
	imported := objects(s, places, client)
	require.Contains(t, imported, `{"apiVersion":"clusterlink.net/v1alpha1","kind":"Import","metadata":{"name":"world-svc"},`+
		`"spec":{"port":8080,"sources":[{"exportName":"world-svc","exportNamespace":"shop-1","peer":"agent-b"}]}}`)
	require.Contains(t, imported, `"action":"allow","from":[{"workloadSelector":{"matchLabels":{`+
		`"client.clusterlink.net/labels.littoral-component":"hello","client.clusterlink.net/namespace":"shop-1"}}}],`+
		`"to":[{"workloadSelector":{"matchLabels":{"export.clusterlink.net/name":"world-svc","export.clusterlink.net/namespace":"shop-1"}}}]`)
	exported := objects(s, places, server)
	require.Contains(t, exported, `{"apiVersion":"clusterlink.net/v1alpha1","kind":"Export","metadata":{"name":"world-svc"},"spec":{"port":8080}}`)
	require.Contains(t, exported, `"peer.clusterlink.net/name":"a"`)
	require.Empty(t, objects(s, places, place{Component: "other", Cluster: "b"}))
	require.Empty(t, objects(s, places, place{Component: "world", Cluster: "c"}), "it does not run there")
}

func TestAServerInSeveralClustersIsImportedFromAll(t *testing.T) {
	t.Parallel()
	s := clusterlink.Settings{Kind: clusterlink.ClusterLink}
	client := place{Component: "hello", Cluster: "a"}
	text := objects(s, []place{{Component: "world", Cluster: "c"}, client, {Component: "world", Cluster: "b"}, {Component: "world", Cluster: "b"}}, client)
	require.Contains(t, text, `"peer":"b"`)
	require.Contains(t, text, `"peer":"c"`)
	require.Equal(t, 2, strings.Count(text, `"peer":`))
}

func TestMultiClusterServices(t *testing.T) {
	t.Parallel()
	s := clusterlink.Settings{Kind: clusterlink.MCS}
	client, server := place{Component: "hello", Cluster: "a"}, place{Component: "world", Cluster: "b"}
	require.JSONEq(t, `{"apiVersion":"multicluster.x-k8s.io/v1alpha1","kind":"ServiceExport","metadata":{"name":"world-svc"}}`,
		objects(s, []place{client, server}, server))
	require.JSONEq(t, `{"apiVersion":"multicluster.x-k8s.io/v1alpha1","kind":"ServiceImport","metadata":{"name":"world-svc"},
"spec":{"type":"ClusterSetIP","ports":[{"port":8080,"protocol":"TCP"}]}}`, objects(s, []place{client, server}, client))
}

func TestAServiceWithoutAPortIsNotLinked(t *testing.T) {
	t.Parallel()
	bare := &appmodel.Application{Components: []appmodel.Component{app.Components[0], {
		Name: "world", Communication: appmodel.Communication{Outgoing: []string{"world-svc"}},
	}}}
	require.Empty(t, clusterlink.Of(bare, []place{{Component: "hello", Cluster: "a"}, {Component: "world", Cluster: "b"}}))
	require.True(t, clusterlink.Talks(bare))
	require.False(t, clusterlink.Talks(&appmodel.Application{}))
}

func TestAChannelNeedsTheServiceOfItsEnd(t *testing.T) {
	t.Parallel()
	sends := &appmodel.Application{Name: "shop", Channels: []appmodel.Channel{
		{Name: "c", From: "hello", To: appmodel.Peer{Component: "world", Port: 8080}},
		{Name: "d", From: "other", To: appmodel.Peer{Component: "world", Port: 1}},
		{Name: "e", From: "other", To: appmodel.Peer{Application: "elsewhere", Component: "world"}},
	}, Components: []appmodel.Component{{Name: "hello"}, app.Components[1], app.Components[2]}}
	links := clusterlink.Of(sends, []place{{Component: "hello", Cluster: "a"}, {Component: "other", Cluster: "a"}, {Component: "world", Cluster: "b"}})
	require.Len(t, links, 1)
	require.Equal(t, []string{"hello"}, links[0].Clients)
	require.Equal(t, [][2]string{{"hello", "world"}}, clusterlink.Needed(sends))
	require.True(t, clusterlink.Talks(sends))
}

func TestWhoCanDoWithoutALinkIsNotTiedToIt(t *testing.T) {
	t.Parallel()
	require.Equal(t, [][2]string{{"hello", "world"}}, clusterlink.Needed(app))
	free := *app
	free.Components = append([]appmodel.Component{}, app.Components...)
	free.Components[0].Communication.Optional = []string{"world-svc"}
	require.Empty(t, clusterlink.Needed(&free))
	twice := *app
	twice.Components = append([]appmodel.Component{{Name: "mirror", Communication: app.Components[1].Communication}}, app.Components...)
	require.Empty(t, clusterlink.Needed(&twice), "either server would do")
}

func TestSettingsAreChecked(t *testing.T) {
	t.Parallel()
	require.NoError(t, clusterlink.Settings{}.Check())
	require.NoError(t, clusterlink.Settings{Kind: clusterlink.None}.Check())
	require.False(t, clusterlink.Settings{Kind: clusterlink.None}.On())
	require.Error(t, clusterlink.Settings{Kind: "istio"}.Check())
}
