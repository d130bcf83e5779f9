package overflow_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions/controller/overflow"
	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/handover"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const shop = `name: shop
components:
  - name: web
    type: kubernetes
    manifests:
      - name: web
        manifest: {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {image: "a:1"}}
`

// world is a controller with an application of which the component web fits nowhere.
type world struct {
	applicationtest.World
	id uuid.UUID
}

func newWorld(t *testing.T) world {
	w := applicationtest.New(t)
	return world{w, applicationtest.Submit(t, w.DB, shop).ID}
}

// unplaced delivers the event to the function with the setting.
func (w world) unplaced(setting string) {
	w.Helper()
	f, err := overflow.New(function.Platform{
		DB: w.DB, Settings: settings.Map(map[string]string{"CONTROLLER_OVERFLOW": setting}),
	}.Env("controller-overflow"))
	require.NoError(w, err)
	e, err := events.New(context.Background(), "/functions/test", events.ApplicationUnplaced, w.id.String(),
		events.Application{ID: w.id, Name: "shop", Version: 1, Components: []string{"web"}})
	require.NoError(w, err)
	w.Must(func(ctx context.Context, tx *store.Tx) error { return f.React(ctx, tx, e) })
}

// state is that of the hand-over; "" for none.
func (w world) state() handover.State {
	w.Helper()
	list, err := handover.List(context.Background(), w.DB)
	require.NoError(w, err)
	if len(list) == 0 {
		return ""
	}
	require.Len(w, list, 1)
	return list[0].State
}

func TestWhatFitsNowhereIsOffered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unplaced("10m")
	h, err := handover.Get(t.Context(), w.DB, w.id)
	require.NoError(t, err)
	require.Equal(t, handover.Offered, h.State)
	require.Empty(t, h.Peer, "whoever offers most")
	require.Contains(t, h.Reason, "web")
	require.Equal(t, 1, w.Published(events.HandoverRequested))
	w.unplaced("10m")
	require.Equal(t, 1, w.Published(events.HandoverRequested), "it is under way")
}

func TestWithoutTheSettingItStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unplaced("0s")
	require.Empty(t, w.state())
}

func TestWhatNobodyTookIsOfferedAgainAfterARest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unplaced("10m")
	w.Must(func(ctx context.Context, tx *store.Tx) error {
		return handover.Keep(ctx, tx, w.id, 1, "no controller takes it")
	})
	w.unplaced("10m")
	require.Equal(t, handover.Home, w.state())
	w.unplaced("1ns")
	require.Equal(t, handover.Offered, w.state())
}

func TestAnApplicationThatIsStoppedOrGoneIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Must(func(ctx context.Context, tx *store.Tx) error {
		_, err := application.Stop(ctx, tx, w.id)
		return err
	})
	w.unplaced("10m")
	require.Zero(t, w.Published(events.HandoverRequested))
	w.id = uuid.New()
	w.unplaced("10m")
	require.Zero(t, w.Published(events.HandoverRequested))
}
