package overflow_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
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

// unplaced tells the function, with the setting, that the component fits nowhere.
func (w world) unplaced(setting string) {
	w.Helper()
	w.told(setting, events.ApplicationUnplaced, events.Application{ID: w.id, Name: "shop", Version: 1, Components: []string{"web"}})
}

// reminded tells it what is the first application that waits.
func (w world) reminded(setting string) {
	w.Helper()
	w.told(setting, events.ApplicationWaiting, events.Application{ID: w.id, Reason: "it waited for some time"})
}

func (w world) told(setting, typ string, about events.Application) {
	w.Helper()
	f, err := overflow.New(function.Platform{
		DB: w.DB, Settings: settings.Map(map[string]string{"CONTROLLER_OVERFLOW": setting}),
	}.Env("controller-overflow"))
	require.NoError(w, err)
	e, err := events.New(context.Background(), "/functions/test", typ, about.ID.String(), about)
	require.NoError(w, err)
	require.NoError(w, f.Work(store.WithSource(w.Context(), "/functions/controller-overflow"), e))
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

// TestWhatStillWaitsIsOfferedAgain with the reminder, though nothing about it is new: peers may have room by now.
func TestWhatStillWaitsIsOfferedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	second := applicationtest.Submit(t, w.DB, strings.Replace(shop, "shop", "other", 1)).ID
	w.id = slices.MinFunc([]uuid.UUID{w.id, second}, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	w.reminded("0s")
	require.Zero(t, w.Published(events.HandoverRequested))
	w.reminded("10m")
	require.Equal(t, 2, w.Published(events.HandoverRequested), "each of those that wait")
	w.reminded("10m")
	require.Equal(t, 2, w.Published(events.HandoverRequested), "it is under way")
	list, err := handover.List(t.Context(), w.DB)
	require.NoError(t, err)
	for _, h := range list {
		w.Must(func(ctx context.Context, tx *store.Tx) error {
			return handover.Keep(ctx, tx, h.Application, h.Epoch, "no controller takes it")
		})
	}
	w.reminded("10m")
	require.Equal(t, 2, w.Published(events.HandoverRequested), "no peer took it a moment ago")
	w.reminded("1ns")
	require.Equal(t, 4, w.Published(events.HandoverRequested))
}

// TestWhatFitsHereAfterAllStays, though it is being handed over; but not if a person asks for it.
func TestWhatFitsHereAfterAllStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unplaced("10m")
	h, err := handover.Get(t.Context(), w.DB, w.id)
	require.NoError(t, err)
	current := func() (now *handover.Handover) {
		w.Must(func(ctx context.Context, tx *store.Tx) (err error) {
			now, err = handover.Current(ctx, tx, w.id, h.Epoch)
			return err
		})
		return now
	}
	require.NotNil(t, current(), "it fits nowhere")
	_, err = w.DB.Exec(t.Context(), `update jobs set cluster = 'edge', node = 'edge-1' where application_id = $1`, w.id)
	require.NoError(t, err)
	w.reminded("10m")
	require.Nil(t, current())
	require.Equal(t, handover.Home, w.state())

	_, err = w.DB.Exec(t.Context(), `update jobs set cluster = '', node = '' where application_id = $1`, w.id)
	require.NoError(t, err)
	w.unplaced("1ns")
	w.Must(func(ctx context.Context, tx *store.Tx) (err error) {
		h, err = handover.Request(ctx, tx, w.id, "harbour", "asked for")
		return err
	})
	_, err = w.DB.Exec(t.Context(), `update jobs set cluster = 'edge', node = 'edge-1' where application_id = $1`, w.id)
	require.NoError(t, err)
	require.NotNil(t, current())
	require.Equal(t, "harbour", h.Peer)
	require.Equal(t, int64(3), h.Epoch, "whoever still carries out the former one finds that it has ended")
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
