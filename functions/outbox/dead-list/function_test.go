package deadlist_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	deadlist "github.com/littoral-project/littoral/functions/outbox/dead-list"
	"github.com/littoral-project/littoral/shared/deadletter"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestAPageThatIsShortSinceEventsAreLargeIsNotTheLast has few letters, of which two exceed the size of an answer.
func TestAPageThatIsShortSinceEventsAreLargeIsNotTheLast(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	_, err := db.Exec(t.Context(), `insert into dead_letters (id, consumer, source, event_id, type, event, code)
select gen_random_uuid(), 'place', '/s', n::text, 't', json_build_object('x', repeat('x', $1)), 500 from generate_series(1, 3) n`,
		store.PageBytes*2/3)
	require.NoError(t, err)
	f, err := deadlist.New(function.Platform{DB: db}.Env(""))
	require.NoError(t, err)
	w := httptest.NewRecorder()
	require.NoError(t, f.Handle(w, httptest.NewRequest(http.MethodGet, "/events/dead", nil)))
	var letters []deadletter.Letter
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &letters))
	require.Len(t, letters, 1)
	require.Contains(t, w.Header().Get("Link"), `rel="next"`)
}
