package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions/mdm/stream"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/mdm"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/sse"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func publish(t *testing.T, db *store.DB, kind, name string) {
	t.Helper()
	c, err := mdm.Source{Connector: uuid.New(), Type: "test", At: time.Now()}.Entity(kind, name, nil)
	require.NoError(t, err)
	require.NoError(t, db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := mdm.Publish(ctx, tx, []mdm.Change{c})
		return err
	}))
}

// next reads n events of the stream, from behind an id.
func next(t *testing.T, url, last string, n int, during func()) []sse.Event {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
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

func identifier(t *testing.T, e sse.Event) string {
	t.Helper()
	var said struct{ Payload struct{ Identifier string } }
	require.NoError(t, json.Unmarshal([]byte(e.Data), &said))
	return said.Payload.Identifier
}

func TestTheStreamIsFilteredAndResumed(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	f, err := stream.New(&function.Env{Platform: function.Platform{DB: db}})
	require.NoError(t, err)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = f.Handle(w, r) }))
	t.Cleanup(s.Close)
	publish(t, db, "compute", "before")

	got := next(t, s.URL+"/mdm/events/sse?type=compute&kind=entity", "", 2, func() {
		publish(t, db, "pod", "other")
		publish(t, db, "compute", "live")
	})
	require.Equal(t, "opened", got[0].Name)
	require.Equal(t, mdm.Upsert, got[1].Name)
	require.Equal(t, "live", identifier(t, got[1]), "what is to come, and of the types that are asked for")

	publish(t, db, "compute", "missed")
	got = next(t, s.URL+"/mdm/events/sse?type=compute", got[1].ID, 2, nil)
	require.Equal(t, "missed", identifier(t, got[1]))

	got = next(t, s.URL+"/mdm/events/sse", "0", 5, nil)
	require.Equal(t, "before", identifier(t, got[1]), "after 0, the whole graph")
}

func TestBadFiltersAreRefusedBeforeTheStreamBegins(t *testing.T) {
	t.Parallel()
	f, err := stream.New(&function.Env{Platform: function.Platform{DB: storetest.New(t)}})
	require.NoError(t, err)
	for _, query := range []string{"?after=x", "?kind=thing", "?connector=x", "?colour=red", "?event_type=merge"} {
		w := httptest.NewRecorder()
		err := f.Handle(w, httptest.NewRequest(http.MethodGet, "/mdm/events/sse"+query, nil))
		require.Equal(t, problem.Malformed, problem.KindOf(err), query)
		require.Empty(t, w.Body.String())
	}
}
