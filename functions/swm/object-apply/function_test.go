package objectapply_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/stretchr/testify/require"

	objectapply "github.com/littoral-project/littoral/functions/swm/object-apply"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/swm/endpoints"
	"github.com/littoral-project/littoral/shared/swm/groups"
	"github.com/littoral-project/littoral/shared/swm/topologies"
	"github.com/littoral-project/littoral/test/kubeapi"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const (
	base = "/apis/qos-scheduler.siemens.com/v1alpha1/namespaces/plant/"
	site = `{"apiVersion": "qos-scheduler.siemens.com/v1alpha1", "kind": "NetworkTopology", "metadata": {"name": "site", "namespace": "plant"},
		"spec": {"networkImplementation": "SITE", "nodes": [{"name": "a"}, {"name": "b"}],
			"links": [{"name": "a-b", "source": "a", "target": "b", "capabilities": {"bandWidthBits": "100M", "latencyNanos": "1e6"}}]}}`
	group = `{"apiVersion": "qos-scheduler.siemens.com/v1alpha1", "kind": "ApplicationGroup", "metadata": {"name": "line", "namespace": "plant"},
		"spec": {"minMember": 2}}`
)

// cluster is one with the kinds of SWM, and the function.
type cluster struct {
	*testing.T

	db  *store.DB
	api *kubeapi.Server
	f   *objectapply.Function
}

func newCluster(t *testing.T, given map[string]string) cluster {
	t.Helper()
	c := cluster{T: t, db: storetest.New(t), api: kubeapi.Start(t, []string{"plant"}, nil)}
	for kind, plural := range map[string]string{
		"NetworkTopology": "networktopologies", "NetworkLink": "networklinks", "NetworkPath": "networkpaths",
		"Application": "applications", "ApplicationGroup": "applicationgroups", "Ipam": "ipams", "NetworkEndpoint": "networkendpoints",
	} {
		c.api.Define(groups.Group, groups.Version, kind, plural, kind != "NetworkEndpoint")
	}
	given["CODECO_OBJECTS"] = c.api.KubeconfigFile(t, "objects")
	var err error
	c.f, err = objectapply.New(function.Platform{
		DB: c.db, Log: slog.New(slog.DiscardHandler), Settings: settings.Map(given),
	}.Env("swm-object-apply"))
	require.NoError(t, err)
	return c
}

func (c cluster) tick() {
	c.Helper()
	e := cloudevents.New()
	e.SetType(events.Tick)
	require.NoError(c, c.f.Work(store.WithSource(c.Context(), "/test"), e))
}

// tell tells of an object, as a source does.
func (c cluster) tell(kind, namespace, name string) {
	c.Helper()
	e := cloudevents.New()
	e.SetType(events.ObjectUpdated)
	require.NoError(c, e.SetData(cloudevents.ApplicationJSON, map[string]any{
		"kind": kind, "metadata": map[string]string{"namespace": namespace, "name": name},
	}))
	require.NoError(c, c.f.Work(store.WithSource(c.Context(), "/test"), e))
}

// TestATickTakesWhatNobodyTold: objects that were made before the source watched are taken by the next tick, and what went
// while it did not watch is forgotten. What came over HTTP stays.
func TestATickTakesWhatNobodyTold(t *testing.T) {
	t.Parallel()
	w := newCluster(t, map[string]string{})
	db, api, tick := w.db, w.api, w.tick
	api.Put(t, base+"networktopologies/site", site)
	api.Put(t, base+"applicationgroups/line", group)
	ctx := store.WithSource(t.Context(), "/test")
	require.NoError(t, db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		document, err := topologies.Parse([]byte(site))
		require.NoError(t, err)
		document.NetworkImplementation = "OTHER"
		return topologies.Save(ctx, tx, "over-http", document)
	}))
	there := func() (names []string) {
		t.Helper()
		documents, err := topologies.List(ctx, db)
		require.NoError(t, err)
		for i := range documents {
			names = append(names, documents[i].Name)
		}
		objects, err := groups.Carried(ctx, db)
		require.NoError(t, err)
		for _, key := range objects {
			names = append(names, key.String())
		}
		return names
	}

	tick()
	require.ElementsMatch(t, []string{groups.Group + "/plant/topology/site", "over-http", "ApplicationGroup plant/line"}, there())
	api.Forget(base + "networktopologies/site")
	api.Forget(base + "applicationgroups/line")
	tick()
	require.Equal(t, []string{"over-http"}, there())
}

// TestAddressesAndEndpointsOfACluster: an Ipam is told what it got, or why it got nothing, and NetworkEndpoints, which are in no namespace,
// what is wrong with them, as long as it is.
func TestAddressesAndEndpointsOfACluster(t *testing.T) {
	t.Parallel()
	w := newCluster(t, map[string]string{"IPAM_RANGES": "10.20.0.0/29"})
	ask := func(name string, addresses int) {
		w.api.Put(t, base+"ipams/"+name, fmt.Sprintf(`{"apiVersion": "qos-scheduler.siemens.com/v1alpha1", "kind": "Ipam",
			"metadata": {"name": %q, "namespace": "plant"}, "spec": {"numberOfAddresses": %d}}`, name, addresses))
		w.tell("Ipam", "plant", name)
	}
	status := func(path string) any { return w.api.Get(path).Object["status"] }
	ask("cameras", 4)
	require.Equal(t, map[string]any{"code": "RESERVED", "ipv4Cidr": "10.20.0.0/30", "error": ""}, status(base+"ipams/cameras"))
	ask("disks", 5)
	require.Equal(t, "UNFULFILLABLE", status(base + "ipams/disks").(map[string]any)["code"])
	require.Contains(t, status(base + "ipams/disks").(map[string]any)["error"], "4 are free")
	w.api.Forget(base + "ipams/cameras")
	w.tell("Ipam", "plant", "cameras")
	w.tick()
	require.Equal(t, map[string]any{"code": "RESERVED", "ipv4Cidr": "10.20.0.0/29", "error": ""}, status(base+"ipams/disks"))
	ask("disks", -1)
	refused := status(base + "ipams/disks").(map[string]any)
	require.Equal(t, []any{"UNFULFILLABLE", "10.20.0.0/29"}, []any{refused["code"], refused["ipv4Cidr"]})
	require.Contains(t, refused["error"], "numberOfAddresses")

	const at = "/apis/qos-scheduler.siemens.com/v1alpha1/networkendpoints/a"
	endpoint := func(address string) {
		w.api.Put(t, at, fmt.Sprintf(`{"apiVersion": "qos-scheduler.siemens.com/v1alpha1", "kind": "NetworkEndpoint", "metadata": {"name": "a"},
			"spec": {"nodeName": "a", "networkInterfaces": [{"name": "eth0", "ipv4Address": %q}], "mappedNetworkInterfaces": {"LAN": "eth0"}}}`, address))
		w.tell("NetworkEndpoint", "", "a")
	}
	known := func() map[endpoints.At]endpoints.Interface {
		t.Helper()
		all, err := endpoints.Read(t.Context(), w.db)
		require.NoError(t, err)
		return all
	}
	endpoint("10.0.0.300")
	require.Contains(t, fmt.Sprint(status(at)), "10.0.0.300")
	require.Empty(t, known())
	endpoint("10.0.0.30")
	lan := endpoints.At{Network: "LAN", Node: "a"}
	require.Equal(t, map[endpoints.At]endpoints.Interface{lan: {At: lan, Name: "eth0", Address: "10.0.0.30"}}, known())
	require.NotContains(t, fmt.Sprint(status(at)), "Failing")
	w.tick()
	require.Len(t, known(), 1)
	w.api.Forget(at)
	w.tick()
	require.Empty(t, known())
}
