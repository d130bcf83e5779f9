package deadletter_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	deadletter "github.com/littoral-project/littoral/functions/outbox/dead-letter"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestOnlyWhatWeSignedIsStored: a replay signs an event again, so the sink must not store foreign events.
func TestOnlyWhatWeSignedIsStored(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	h, err := function.NewEntry("outbox-dead-letter", deadletter.Spec, deadletter.New).Handler(function.Platform{
		DB: db, EventKey: "key", FormerKey: "former", Log: slog.New(slog.DiscardHandler),
	}.Env("outbox-dead-letter"))
	require.NoError(t, err)
	for name, row := range map[string]struct {
		typ, key string
		status   int
	}{
		"an event of ours":               {events.JobReady, "key", http.StatusNoContent},
		"one of a type yet to come":      {"dev.littoral.tide.turned.v1", "key", http.StatusNoContent},
		"one that the former key signed": {events.JobReady, "former", http.StatusNoContent},
		"one that nobody signed":         {events.JobReady, "", http.StatusNoContent},
		"one that another key signed":    {events.JobReady, "other", http.StatusNoContent},
	} {
		e, err := events.New(t.Context(), "/test", row.typ, "s", events.Job{ID: uuid.New()})
		require.NoError(t, err)
		events.Sign(&e, row.key)
		e.SetExtension("knativeerrorcode", "500")
		body, err := e.MarshalJSON()
		require.NoError(t, err)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(string(body)))
		r.Header.Set("Content-Type", cloudevents.ApplicationCloudEventsJSON)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, row.status, w.Code, name)
	}
	var kept, noted int
	require.NoError(t, db.QueryRow(t.Context(), `select count(*) from dead_letters`).Scan(&kept))
	require.Equal(t, 3, kept)
	require.NoError(t, db.QueryRow(t.Context(), `select count(*) from history where event = 'event.forged'`).Scan(&noted))
	require.Equal(t, 2, noted, "of a forgery it is on record that it came")
}
