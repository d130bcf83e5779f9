package networkapply_test

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkapply "github.com/littoral-project/littoral/functions/netma/network-apply"
	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/history/recorded"
	"github.com/littoral-project/littoral/shared/netma/l2sm"
	"github.com/littoral-project/littoral/shared/network"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/swm/channels"
	"github.com/littoral-project/littoral/shared/swm/topologies"
	"github.com/littoral-project/littoral/test/kubeapi"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const (
	camera = `apiVersion: codeco.he-codeco.eu/v1alpha1
kind: CodecoApp
metadata: {name: camera}
spec:
  codecoapp-msspec:
  - {serviceName: front, podspec: {containers: [{name: c, image: "example.org/front:1"}]}}
  - {serviceName: back, podspec: {containers: [{name: c, image: "example.org/back:1"}]}}
`
	overlay = `networkImplementation: L2SM
nodes: [{name: a}, {name: b}, {name: s, type: NETWORK}]
links: [{name: a-s, source: a, target: s, capabilities: {bandWidthBits: 1G, latencyNanos: "1e6"}},
  {name: s-b, source: s, target: b, capabilities: {bandWidthBits: 1G, latencyNanos: "1e6"}},
  {name: b-a, source: b, target: a, capabilities: {bandWidthBits: 1G, latencyNanos: "1e6"}}]
`
	networks = "/apis/l2sm.l2sm.k8s.local/v1/namespaces/plant/l2networks/"
)

type world struct {
	applicationtest.World
	api *kubeapi.Server
	f   *networkapply.Function
	id  uuid.UUID // of the camera
}

func newWorld(t *testing.T) world {
	w := world{applicationtest.New(t), kubeapi.Start(t, []string{"plant"}, nil), nil, uuid.Nil}
	w.api.Define(l2sm.Group, l2sm.Version, l2sm.NetworkKind, l2sm.NetworkPlural, true)
	f, err := networkapply.New(function.Platform{DB: w.DB, Log: slog.New(slog.DiscardHandler), Settings: settings.Map(map[string]string{
		"CODECO_OBJECTS": w.api.KubeconfigFile(t, "objects"), "L2SM": "true",
	})}.Env("netma-network-apply"))
	require.NoError(t, err)
	w.f = f
	d, err := topologies.Parse([]byte(overlay))
	require.NoError(t, err)
	w.Must(func(ctx context.Context, tx *store.Tx) error { return topologies.Save(ctx, tx, "overlay", d) })
	w.id = applicationtest.Submit(t, w.DB, camera).ID
	_, err = w.DB.Exec(t.Context(), `insert into codeco_apps (namespace, name, application_id, uid) values ('plant', 'camera', $1, 'uid-1')`, w.id)
	require.NoError(t, err)
	return w
}

// place gives the camera channels over the overlay, by the ways that are named.
func (w world) place(ways map[string]string) {
	w.Helper()
	w.Must(func(ctx context.Context, tx *store.Tx) error {
		var all []channels.Channel
		for _, name := range slices.Sorted(maps.Keys(ways)) {
			all = append(all, channels.Channel{Name: name, Source: "front", Target: "back", Class: network.BestEffort, Network: "L2SM", Path: ways[name]})
		}
		channels.Replace(tx, w.id, all)
		return nil
	})
}

func (w world) work() {
	w.Helper()
	e := cloudevents.New()
	e.SetType(events.Tick)
	require.NoError(w, w.f.Work(store.WithSource(w.Context(), "/test"), e))
}

func (w world) there() []string {
	w.Helper()
	var names []string
	for _, path := range w.api.Paths("/l2networks/") {
		names = append(names, strings.TrimPrefix(path, networks))
	}
	slices.Sort(names)
	return names
}

// says sets what L2S-M says of a network that has been there for a while.
func (w world) says(name, connectivity string) {
	w.Helper()
	w.api.Change(networks+name, func(o *kubeapi.Object) {
		o.SetCreationTimestamp(metav1.NewTime(time.Now().Add(-time.Hour)))
		o.Object["status"] = map[string]any{"internalConnectivity": connectivity}
	})
}

// told counts what history has of it.
func (w world) told() (unreachable, reachable int) {
	w.Helper()
	require.NoError(w, w.DB.QueryRow(w.Context(), `select count(*) filter (where event = $1), count(*) filter (where event = $2) from history`,
		recorded.NetworkUnreachable, recorded.NetworkReachable).Scan(&unreachable, &reachable))
	return unreachable, reachable
}

// due makes L2S-M be asked again now.
func (w world) due() {
	w.Helper()
	_, err := w.DB.Exec(w.Context(), `update vlink_provider set next_at = now()`)
	require.NoError(w, err)
}

var three = map[string]string{"frames": "a-s,s-b", "news": "b-a", "sound": "a-s,s-b"}

// TestChannelsBecomeNetworks: one first, the others once it is connected, another one for a channel that moves, none for one that is gone.
func TestChannelsBecomeNetworks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.place(three)
	w.work()
	w.work()
	require.Equal(t, []string{"camera-front-frames"}, w.there(), "one is tried")
	o := w.api.Get(networks + "camera-front-frames")
	require.Equal(t, "uid-1", string(o.GetOwnerReferences()[0].UID))
	spec := o.Object["spec"].(map[string]any)
	require.Equal(t, "vlink", spec["type"])
	require.JSONEq(t, `{"overlay-parameters": {"overlay-paths": [
		{"name": "frames", "fromEndpoint": "a", "toEndpoint": "b", "path": ["a", "s", "b"]},
		{"name": "frames-back", "fromEndpoint": "b", "toEndpoint": "a", "path": ["b", "s", "a"]}]}}`, spec["config"].(string))

	w.says("camera-front-frames", l2sm.Available)
	w.work()
	require.Equal(t, []string{"camera-front-frames", "camera-front-news", "camera-front-sound"}, w.there())
	w.place(map[string]string{"frames": "b-a", "news": "b-a"})
	w.says("camera-front-news", l2sm.Available)
	w.work()
	w.work()
	require.Equal(t, []string{"camera-front-frames", "camera-front-news"}, w.there())
	require.Contains(t, w.api.Get(networks + "camera-front-frames").Object["spec"].(map[string]any)["config"], `"path":["b","a"]`)
	unreachable, reachable := w.told()
	require.Zero(t, unreachable+reachable)
}

// TestAProviderThatIsAwayIsNotFlooded: nothing more is asked of it, it is told of once, and all is made when it is back.
func TestAProviderThatIsAwayIsNotFlooded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.place(three)
	w.work()
	w.says("camera-front-frames", l2sm.Unavailable)
	for range 3 {
		w.work()
	}
	unreachable, reachable := w.told()
	require.Equal(t, []int{1, 0}, []int{unreachable, reachable})
	before := len(w.api.Calls())
	w.work()
	require.Len(t, w.api.Calls(), before, "it is not due yet")
	w.due()
	w.work()
	var failures int
	var wait time.Duration
	require.NoError(t, w.DB.QueryRow(t.Context(), "select failures, next_at - now() from vlink_provider").Scan(&failures, &wait))
	require.Equal(t, 2, failures)
	require.Greater(t, wait, time.Minute, "twice as long as the first time")
	require.Equal(t, []string{"camera-front-frames"}, w.there(), "no further networks")

	w.api.Cut(true) // the whole API is away: the event is taken all the same
	w.due()
	w.work()
	w.api.Cut(false)
	w.says("camera-front-frames", l2sm.Available)
	w.due()
	w.work()
	require.Len(t, w.there(), 3)
	unreachable, reachable = w.told()
	require.Equal(t, []int{1, 1}, []int{unreachable, reachable})
}
