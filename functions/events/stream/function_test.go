package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions/events/stream"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/sse"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func record(t *testing.T, db *store.DB, e history.Entry) {
	t.Helper()
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error { return history.Record(ctx, tx, e) }))
}

// serve starts the function behind a real server, since an answer that goes on needs one.
func serve(t *testing.T, db *store.DB) string {
	t.Helper()
	f, err := stream.New(&function.Env{Platform: function.Platform{DB: db}})
	require.NoError(t, err)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = f.Handle(w, r) }))
	t.Cleanup(s.Close)
	return s.URL
}

// next reads n events of the stream at url.
func next(t *testing.T, url string, n int, during func()) []sse.Event {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Equal(t, sse.Type, answer.Header.Get("Content-Type"))
	enough := errors.New("enough")
	var got []sse.Event
	err = sse.Read(answer.Body, func(e sse.Event) error {
		if got = append(got, e); len(got) == 1 && during != nil {
			during()
		}
		if len(got) == n {
			return enough
		}
		return nil
	})
	require.ErrorIs(t, err, enough)
	return got
}

func TestEventsAreStreamedAndTheStreamCanBeResumed(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	url := serve(t, db)
	record(t, db, history.Entry{Event: "before"})
	app := uuid.New()
	got := next(t, url, 2, func() {
		record(t, db, history.Entry{Event: "job.placed", ApplicationID: &app, Component: "web", Message: "on a/b"})
	})
	require.Equal(t, "opened", got[0].Name)
	require.Equal(t, "job.placed", got[1].Name)
	var e history.Entry
	require.NoError(t, json.Unmarshal([]byte(got[1].Data), &e))
	require.Equal(t, "web", e.Component)
	require.Equal(t, app, *e.ApplicationID)

	resumed := next(t, url+"?after="+got[0].ID, 2, nil)
	require.Equal(t, got[1], resumed[1])
	require.Equal(t, "before", next(t, url+"?after=0", 2, nil)[1].Name)
}

func TestBadQuestionsAreRefusedBeforeTheStreamBegins(t *testing.T) {
	t.Parallel()
	f, err := stream.New(&function.Env{Platform: function.Platform{DB: storetest.New(t)}})
	require.NoError(t, err)
	for _, query := range []string{"?after=x", "?after=-1", "?app=hello"} {
		w := httptest.NewRecorder()
		err := f.Handle(w, httptest.NewRequest(http.MethodGet, "/events/stream"+query, nil))
		require.Equal(t, problem.Malformed, problem.KindOf(err), query)
		require.Empty(t, w.Body.String())
	}
}
