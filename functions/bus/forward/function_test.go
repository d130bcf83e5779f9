package forward_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions/bus/delete"
	"github.com/littoral-project/littoral/functions/bus/forward"
	"github.com/littoral-project/littoral/functions/bus/get"
	"github.com/littoral-project/littoral/functions/bus/put"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/bus/sink"
	"github.com/littoral-project/littoral/shared/bus/sink/sinktest"
	"github.com/littoral-project/littoral/shared/bus/sink/zenoh"
	"github.com/littoral-project/littoral/shared/bus/zenohrest"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/sse"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/inprocess"
	broker "github.com/littoral-project/littoral/test/mqtt"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// router is a bus of ours, which answers as a router of Zenoh with a storage does. It takes every caller for an operator.
func router(t *testing.T) string {
	t.Helper()
	issuer := inprocess.NewIssuer(t)
	platform := function.Platform{DB: storetest.New(t), Auth: issuer.Verifier(), Settings: settings.Map(nil)}
	token := issuer.Token(t, auth.Operator)
	mux := http.NewServeMux()
	for _, entry := range []function.Entry{
		function.NewEntry("bus-get", get.Spec, get.New), function.NewEntry("bus-put", put.Spec, put.New),
		function.NewEntry("bus-delete", delete.Spec, delete.New),
	} {
		h, err := entry.Handler(platform.Env(entry.Name))
		require.NoError(t, err)
		for _, pattern := range entry.Spec.Patterns() {
			mux.Handle(pattern, h)
		}
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+token)
		r.URL.Path = zenohrest.Root + strings.TrimPrefix(r.URL.Path, "/")
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	return s.URL
}

func message(t *testing.T, e zenohrest.Element) sinktest.Message {
	t.Helper()
	payload, err := e.Payload()
	require.NoError(t, err)
	return sinktest.Message{Key: e.Key, Payload: string(payload), Encoding: e.Encoding}
}

func TestConformanceOfZenoh(t *testing.T) {
	t.Parallel()
	sinktest.Run(t, func(t *testing.T) *sinktest.World {
		address := router(t)
		wire := sinktest.NewWire(t, strings.TrimPrefix(address, "http://"))
		return &sinktest.World{
			Open: func(t *testing.T, rest string) sink.Sink {
				a, err := sink.ParseAddress("http://" + wire.Address + rest)
				require.NoError(t, err)
				s, err := zenoh.New(a, &http.Client{Timeout: 10 * time.Second})
				require.NoError(t, err)
				return s
			},
			State: func(t *testing.T) map[string]sinktest.Message {
				answer, err := http.Get(address + "/**")
				require.NoError(t, err)
				defer answer.Body.Close()
				var list []zenohrest.Element
				require.NoError(t, json.NewDecoder(answer.Body).Decode(&list))
				found := map[string]sinktest.Message{}
				for _, e := range list {
					found[e.Key] = message(t, e)
				}
				return found
			},
			Follow: func(t *testing.T, each func(sinktest.Message)) {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/**", nil)
				require.NoError(t, err)
				request.Header.Set("Accept", sse.Type)
				answer, err := http.DefaultClient.Do(request)
				require.NoError(t, err)
				go func() {
					defer answer.Body.Close()
					_ = sse.Read(answer.Body, func(e sse.Event) error {
						var element zenohrest.Element
						if err := json.Unmarshal([]byte(e.Data), &element); err != nil || element.Key == "" {
							return nil
						}
						each(message(t, element))
						return nil
					})
				}()
			},
			Cut: wire.Cut, Heal: wire.Heal,
		}
	})
}

// TestEachSinkIsServed: one that is away does not hold up the others, and gets everything when it is back.
func TestEachSinkIsServed(t *testing.T) {
	t.Parallel()
	address := broker.Start(t)
	wire := sinktest.NewWire(t, address)
	user := strings.ReplaceAll(url.UserPassword(broker.User, broker.Password).String(), ",", "%2C")
	db := storetest.New(t)
	platform := function.Platform{DB: db, Settings: settings.Map(map[string]string{
		"BUS_SINKS": "mqtt://" + user + "@" + address + "/here,mqtt://" + user + "@" + wire.Address + "/away",
	})}
	f, err := forward.New(platform.Env("bus-forward"))
	require.NoError(t, err)
	work := func(typ string) {
		t.Helper()
		e := cloudevents.New()
		e.SetType(typ)
		require.NoError(t, f.Work(t.Context(), e))
	}
	wire.Cut()
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return bus.Publish(ctx, tx, bus.Change{Key: "a", Encoding: "text/plain", Payload: []byte("1")})
	}))
	work(events.TopologyPublished)
	require.Contains(t, broker.Retained(t, address, "#"), "here/a")
	require.NotContains(t, broker.Retained(t, address, "#"), "away/a")
	wire.Heal()
	work(events.Tick)
	require.Contains(t, broker.Retained(t, address, "#"), "away/a")
}

func TestASinkThatIsNoneIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	_, err := forward.New(function.Platform{Settings: settings.Map(map[string]string{"BUS_SINKS": "ftp://a"})}.Env("bus-forward"))
	require.ErrorContains(t, err, "ftp://a")
}
