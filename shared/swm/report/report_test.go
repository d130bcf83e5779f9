package report_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/swm/channels"
	"github.com/littoral-project/littoral/shared/swm/cluster"
	"github.com/littoral-project/littoral/shared/swm/groups"
	"github.com/littoral-project/littoral/shared/swm/report"
	"github.com/littoral-project/littoral/test/kubeapi"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const camera = `apiVersion: codeco.he-codeco.eu/v1alpha1
kind: CodecoApp
metadata: {name: camera}
spec:
  codecoapp-msspec:
  - serviceName: front
    podspec: {containers: [{name: c, image: "example.org/front:1"}]}
    serviceChannels: [{channelName: frames, otherService: {serviceName: back}}]
  - {serviceName: back, podspec: {containers: [{name: c, image: "example.org/back:1"}]}}
`

// TestAChannelTellsOfItsEnds: in the cluster, as long as NetworkEndpoints say it.
func TestAChannelTellsOfItsEnds(t *testing.T) {
	t.Parallel()
	w, api := applicationtest.New(t), kubeapi.Start(t, []string{"plant"}, nil)
	api.Define(groups.Group, groups.Version, "AssignmentPlan", "assignmentplans", true)
	api.Define(groups.Group, groups.Version, "Channel", "channels", true)
	id := applicationtest.Submit(t, w.DB, camera).ID
	_, err := w.DB.Exec(t.Context(), `insert into codeco_apps (namespace, name, application_id, uid) values ('plant', 'camera', $1, 'uid-1')`, id)
	require.NoError(t, err)
	at := func(node string) job.Target {
		return job.Target{Orchestrator: "kubernetes", Cluster: "site", Node: node}
	}
	applicationtest.Place(t, w.DB, id, at("n1"), at("n2"))
	w.Must(func(_ context.Context, tx *store.Tx) error {
		channels.Replace(tx, id, []channels.Channel{
			{Name: "frames", Source: "front", Target: "back", Class: network.BestEffort, Network: "LAN", Path: "n1-n2"},
		})
		return nil
	})
	endpoint := func(node, spec string) {
		t.Helper()
		o, err := groups.Read(groups.InCluster(groups.NetworkEndpoint, "", node), []byte("spec: {nodeName: "+node+spec+"}"))
		require.NoError(t, err)
		w.Must(func(ctx context.Context, tx *store.Tx) error { return groups.Put(ctx, tx, o, groups.Settings{}) })
	}
	told := func() any {
		t.Helper()
		require.NoError(t, report.One(t.Context(), w.DB, cluster.New(api.Client(t)), id))
		o := api.Get("/apis/qos-scheduler.siemens.com/v1alpha1/namespaces/plant/channels/camera-front-frames")
		return o.Object["status"].(map[string]any)["cniMetadata"]
	}
	require.Nil(t, told())
	const wired = ", networkInterfaces: [{name: eth0, ipv4Address: 10.0.0.7}], mappedNetworkInterfaces: {LAN: eth0}"
	endpoint("n1", wired)
	endpoint("n2", ", networkInterfaces: [{name: wg0, alternateAddresses: [\"fd00::2\"]}], mappedNetworkInterfaces: {LAN: wg0}")
	require.Equal(t, map[string]any{
		"sourceip": "10.0.0.7", "sourceInterface": "eth0", "targetip": "fd00::2", "targetInterface": "wg0",
	}, told())
	endpoint("n2", "")
	require.Equal(t, map[string]any{"sourceip": "10.0.0.7", "sourceInterface": "eth0"}, told())
	endpoint("n1", "")
	require.Nil(t, told())
}
