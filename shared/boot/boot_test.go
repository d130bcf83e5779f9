package boot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestRun_neverTakesEventsUnsignedInACluster: if the key is missing in the Secret, that must not disable the check
// unnoticed.
func TestRun_neverTakesEventsUnsignedInACluster(t *testing.T) {
	reaction := function.Spec{Consumes: []string{events.ApplicationPlaced}}
	producer := function.Spec{Emits: []string{events.ApplicationPlaced}}
	started := errors.New("it was made")
	for name, row := range map[string]struct {
		spec                 function.Spec
		service, key, former string
		starts               bool
	}{
		"a reaction":                     {reaction, "f", "", "", false},
		"who emits events":               {producer, "f", "", "", false},
		"a reaction with the key":        {reaction, "f", "key", "", true},
		"who emits with a former key":    {producer, "f", "", "key", false},
		"a reaction outside of Knative":  {reaction, "", "", "", true},
		"who has nothing to do with any": {function.Spec{}, "f", "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), settings.Map(map[string]string{
				"K_SERVICE": row.service, "EVENT_KEY": row.key, "EVENT_KEY_FORMER": row.former,
				"DATABASE_URL": "postgres://nobody@localhost/none",
			}), function.NewEntry("f", row.spec, func(*function.Env) (any, error) { return nil, started }))
			if row.starts {
				require.ErrorIs(t, err, started)
			} else {
				require.ErrorContains(t, err, "EVENT_KEY")
			}
		})
	}
}

// react is a Reaction made of a function.
type react func(context.Context, *store.Tx, cloudevents.Event) error

func (f react) React(ctx context.Context, tx *store.Tx, e cloudevents.Event) error {
	return f(ctx, tx, e)
}

// TestNewEnv_takesWhatTheFormerKeySigned: it verifies with the former key and signs with the present one, since a
// sender may have read the settings before they changed.
func TestNewEnv_takesWhatTheFormerKeySigned(t *testing.T) {
	sent := make(chan cloudevents.Event, 10)
	broker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e, err := events.FromRequest(r)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		sent <- e
		w.WriteHeader(http.StatusAccepted)
	}))
	defer broker.Close()
	from := settings.Map(map[string]string{
		"EVENT_KEY": "present", "EVENT_KEY_FORMER": "former", "K_SINK": broker.URL, "DATABASE_URL": storetest.URL(t),
	})
	var c Config
	require.NoError(t, settings.Read(from, "", &c))
	env, err := newEnv(t.Context(), "f", c, from, slog.New(slog.DiscardHandler), nil, nil)
	require.NoError(t, err)
	defer env.DB.Close()
	spec := function.Spec{Consumes: []string{events.ApplicationPlaced}, Emits: []string{events.ApplicationDisplaced}}
	h, err := function.NewEntry("f", spec, func(*function.Env) (react, error) {
		return func(ctx context.Context, tx *store.Tx, e cloudevents.Event) error {
			return tx.Emit(ctx, events.ApplicationDisplaced, e.Subject(), events.Application{})
		}, nil
	}).Handler(env)
	require.NoError(t, err)

	for key, status := range map[string]int{
		"former": http.StatusNoContent, "present": http.StatusNoContent,
		"another": http.StatusForbidden, "": http.StatusForbidden,
	} {
		e, err := events.New(t.Context(), "/test", events.ApplicationPlaced, "by "+key, events.Application{})
		require.NoError(t, err)
		events.Sign(&e, key)
		body, err := json.Marshal(e)
		require.NoError(t, err)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, function.EventPath, bytes.NewReader(body))
		r.Header.Set("Content-Type", cloudevents.ApplicationCloudEventsJSON)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, status, w.Code, "signed with %q", key)
	}
	require.NoError(t, env.DB.Flush(t.Context()))
	close(sent)
	var subjects []string
	for e := range sent {
		subjects = append(subjects, e.Subject())
		require.True(t, events.Signed(e, "present"))
	}
	require.ElementsMatch(t, []string{"by former", "by present"}, subjects)
}

// published opens a store on the database, commits an event and waits until the Broker holds it.
func published(t *testing.T, url string) (*store.DB, *storetest.Holding) {
	t.Helper()
	broker := storetest.NewHolding()
	db, err := store.Open(t.Context(), store.Config{DatabaseURL: url}, broker, nil)
	require.NoError(t, err)
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.Emit(ctx, events.ApplicationPlaced, "a", events.Application{})
	}))
	<-broker.Arrived
	return db, broker
}

func left(t *testing.T, url string) (n int64) {
	t.Helper()
	db, err := store.Open(t.Context(), store.Config{DatabaseURL: url}, nil, nil)
	require.NoError(t, err)
	defer db.Close()
	n, _, err = db.Waiting(t.Context())
	require.NoError(t, err)
	return n
}

func TestCloseStore_waitsForEventsOnTheirWay(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	db, broker := published(t, url)
	closed := make(chan struct{})
	go func() {
		closeStore(db, time.Minute, slog.New(slog.DiscardHandler))
		close(closed)
	}()
	select {
	case <-closed:
		t.Fatal("closed while an event was on its way")
	case broker.Answers <- nil:
	}
	<-closed
	require.Zero(t, left(t, url))
}

// TestCloseStore_takesAlongWhatWasLeft: a call that only reads also publishes events left by a crash.
func TestCloseStore_takesAlongWhatWasLeft(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	crashed, _ := published(t, url)
	crashed.Close()
	db, err := store.Open(t.Context(), store.Config{DatabaseURL: url}, &storetest.Recorder{}, nil)
	require.NoError(t, err)
	_, err = db.Exec(t.Context(), `update outbox set created_at = now() - $1::interval`, store.LeftFor)
	require.NoError(t, err)
	closeStore(db, time.Minute, slog.New(slog.DiscardHandler))
	require.Zero(t, left(t, url))
}

func TestCloseStore_leavesInTheOutboxWhatTakesTooLong(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	db, _ := published(t, url)
	closeStore(db, time.Millisecond, slog.New(slog.DiscardHandler))
	require.Equal(t, int64(1), left(t, url))
}

// TestServe_keepsNobodyForEver: a client that neither completes its request nor reads the answer must not occupy a
// connection and its handler without limit.
func TestServe_keepsNobodyForEver(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		request string
		serve   func(http.ResponseWriter, *http.Request) error
	}{
		"who does not end what he sends": {
			"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{", func(_ http.ResponseWriter, r *http.Request) error {
				_, err := io.Copy(io.Discard, r.Body)
				return err
			},
		},
		"who does not read what he is sent": {
			"GET / HTTP/1.1\r\nHost: x\r\n\r\n", func(w http.ResponseWriter, _ *http.Request) error {
				for {
					if _, err := w.Write(make([]byte, 1<<20)); err != nil {
						return err
					}
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			require.NoError(t, err)
			ended := make(chan error, 1)
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { ended <- row.serve(w, r) })
			ctx, stop := context.WithCancel(t.Context())
			served := make(chan struct{})
			go func() {
				defer close(served)
				_ = Serve(ctx, listener, handler, time.Millisecond, 100*time.Millisecond) // checked elsewhere
			}()
			client, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
			require.NoError(t, err)
			_, err = client.Write([]byte(row.request))
			require.NoError(t, err)
			select {
			case err := <-ended:
				require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			case <-time.After(30 * time.Second):
				t.Error("it is still waited for")
			}
			require.NoError(t, client.Close())
			stop()
			<-served
		})
	}
}
