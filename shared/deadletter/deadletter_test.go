package deadletter_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/deadletter"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// published is an event as a function published it.
func published(t *testing.T) cloudevents.Event {
	t.Helper()
	app := uuid.New()
	e, err := events.New(t.Context(), "/functions/jobmanager-group-create", events.ApplicationSubmitted, app.String(),
		events.Application{ID: app, Name: "shop"})
	require.NoError(t, err)
	events.Sign(&e, "key")
	return e
}

// died is the event as a Broker delivers it to the sink after the consumer has failed with that answer.
func died(e cloudevents.Event, consumer string, code int, answer string) cloudevents.Event {
	e = e.Clone()
	e.SetExtension("knativeerrordest", "http://"+consumer+".littoral.svc.cluster.local")
	e.SetExtension("knativeerrorcode", code)
	e.SetExtension("knativeerrordata", base64.StdEncoding.EncodeToString([]byte(answer)))
	e.SetExtension("knativebrokerttl", 255)
	return e
}

func record(t *testing.T, db *store.DB, e cloudevents.Event) {
	t.Helper()
	require.NoError(t, deadletter.Record(t.Context(), db, e))
}

func list(t *testing.T, db *store.DB, all bool) []deadletter.Letter {
	t.Helper()
	letters, cut, err := deadletter.List(t.Context(), db, all, time.Time{}, uuid.Nil, 100)
	require.False(t, cut)
	require.NoError(t, err)
	return letters
}

func replay(t *testing.T, db *store.DB, id string) ([]deadletter.Letter, error) {
	t.Helper()
	var letters []deadletter.Letter
	err := db.Tx(t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		letters, err = deadletter.Replay(ctx, tx, uuid.MustParse(id))
		return err
	})
	return letters, err
}

func happened(t *testing.T, db *store.DB) []history.Entry {
	t.Helper()
	entries, _, err := history.Before(t.Context(), db, nil, math.MaxInt64, 100)
	require.NoError(t, err)
	return entries
}

func TestADeadLetterIsStoredOnceAndRecordedOnce(t *testing.T) {
	t.Parallel()
	db, e := storetest.New(t), published(t)
	dead := died(e, "matchmaker-place", 500, `{"title": "Internal Server Error", "detail": "Something failed inside"}`)
	for range 3 { // the Broker delivers at least once
		record(t, db, dead)
	}
	letters := list(t, db, false)
	require.Len(t, letters, 1)
	l := letters[0]
	require.Equal(
		t,
		[]any{"matchmaker-place", e.ID(), e.Type(), 500, 1},
		[]any{l.Consumer, l.EventID, l.Type, l.Code, l.Deaths},
	)
	require.Contains(t, l.Answer, "Something failed inside")

	entries := happened(t, db)
	require.Len(t, entries, 1)
	require.Equal(t, "event.dead", entries[0].Event)
	require.Equal(t, "matchmaker-place gave up application.submitted (500): Something failed inside", entries[0].Message)
	require.Equal(t, e.Subject(), entries[0].ApplicationID.String(), "it is in the application's own history")
}

func TestAReplayIsTheSameEventForWhoeverFailed(t *testing.T) {
	t.Parallel()
	db, e := storetest.New(t), published(t)
	record(t, db, died(e, "matchmaker-place", 500, "x"))
	record(t, db, died(e, "policymanager-follow", -1, ""))
	require.Len(t, list(t, db, false), 2, "one for each consumer")

	letters, err := replay(t, db, e.ID())
	require.NoError(t, err)
	require.Len(t, letters, 2)
	require.NotNil(t, letters[0].ReplayedAt)
	sent := storetest.Published(db)
	require.Len(t, sent, 1, "one event reaches them all")
	require.Equal(t, e.Context.GetID(), sent[0].ID())
	require.Equal(t, e.Source(), sent[0].Source(), "the inbox knows it by both")
	require.JSONEq(t, string(e.Data()), string(sent[0].Data()))
	for name := range sent[0].Extensions() {
		require.False(t, strings.HasPrefix(name, "knative"), name)
	}
	require.Empty(t, list(t, db, false))
	require.Len(t, list(t, db, true), 2)
	entries := happened(t, db)
	require.Equal(
		t,
		"application.submitted goes to matchmaker-place, policymanager-follow again",
		entries[len(entries)-1].Message,
	)

	_, err = replay(t, db, e.ID())
	require.Equal(t, problem.Conflict, problem.KindOf(err))
	require.Len(t, storetest.Published(db), 1)

	record(t, db, died(e, "matchmaker-place", 503, "again"))
	again := list(t, db, false)
	require.Len(t, again, 1)
	require.Equal(t, []any{2, 503, "again"}, []any{again[0].Deaths, again[0].Code, again[0].Answer})
	_, err = replay(t, db, e.ID())
	require.NoError(t, err, "what died again can be replayed again")
}

// TestOnlyTheConsumerThatFailedActsOnAReplay uses the inbox with two consumers of one event.
func TestOnlyTheConsumerThatFailedActsOnAReplay(t *testing.T) {
	t.Parallel()
	db, e := storetest.New(t), published(t)
	acted := map[string]int{}
	react := func(consumer string, fail error) error {
		_, err := db.React(t.Context(), consumer, e, func(context.Context, *store.Tx) error {
			if fail == nil {
				acted[consumer]++
			}
			return fail
		})
		return err
	}
	require.NoError(t, react("follows", nil))
	require.Error(t, react("places", problem.New(problem.Internal, "broken")))
	record(t, db, died(e, "places", 500, "broken"))
	_, err := replay(t, db, e.ID())
	require.NoError(t, err)
	e = storetest.Published(db)[0]
	require.NoError(t, react("follows", nil))
	require.NoError(t, react("places", nil))
	require.NoError(t, react("places", nil))
	require.Equal(t, map[string]int{"follows": 1, "places": 1}, acted)
}

func TestReplay_ofWhatIsNotThere(t *testing.T) {
	t.Parallel()
	_, err := replay(t, storetest.New(t), uuid.NewString())
	require.Equal(t, problem.NotFound, problem.KindOf(err))
}

func TestAReplayThatTheBrokerRefusesWaitsInTheOutbox(t *testing.T) {
	t.Parallel()
	db, e := storetest.New(t), published(t)
	record(t, db, died(e, "matchmaker-place", 500, "x"))
	storetest.RecorderOf(db).Fail(context.DeadlineExceeded)
	_, err := replay(t, db, e.ID())
	require.NoError(t, err)
	require.NoError(t, db.Flush(t.Context())) // it was tried, and failed
	storetest.RecorderOf(db).Fail(nil)
	n, err := db.Sweep(t.Context(), 0, 10)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, e.ID(), storetest.Published(db)[0].ID())
}

func TestPages(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	var want []string
	for range 5 {
		e := published(t)
		want = append(want, e.ID())
		record(t, db, died(e, "places", 500, ""))
	}
	var got []string
	var at time.Time
	var id uuid.UUID
	for {
		page, _, err := deadletter.List(t.Context(), db, false, at, id, 2)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		for i := range page {
			got = append(got, page[i].EventID)
			at, id = page[i].At, page[i].ID
		}
	}
	require.Equal(t, want, got)
}

// TestAPageOfLargeEventsIsShort: an event may be as large as the objects of an application, and many may die at once.
func TestAPageOfLargeEventsIsShort(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	var want []string
	for range 3 {
		e := published(t)
		want = append(want, e.ID())
		record(t, db, died(e, "places", 500, strings.Repeat("x", 10)))
	}
	_, err := db.Exec(t.Context(), `update dead_letters set event = json_build_object('x', repeat('x', $1))`, store.PageBytes*2/3)
	require.NoError(t, err)
	var got []string
	var at time.Time
	var id uuid.UUID
	for cut := true; cut; {
		var page []deadletter.Letter
		page, cut, err = deadletter.List(t.Context(), db, false, at, id, 100)
		require.NoError(t, err)
		require.Len(t, page, 1, "one more would be too much, and none is no page")
		at, id, got = page[0].At, page[0].ID, append(got, page[0].EventID)
	}
	require.Equal(t, want, got)
}

// TestWhateverABrokerAddsIsRead: the extensions come from the Broker, and a letter that cannot be stored is lost.
func TestWhateverABrokerAddsIsRead(t *testing.T) {
	t.Parallel()
	long := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("ä", 1000)))
	for name, row := range map[string]struct {
		extensions map[string]any
		consumer   string
		code       int
		says       string
	}{
		"nothing": {nil, "unknown", -1, "it said nothing"},
		"an address without a host": {
			map[string]any{"knativeerrordest": "/x", "knativeerrorcode": "many"}, "unknown", -1, "",
		},
		"an address with a port": {
			map[string]any{"knativeerrordest": "http://a-b.ns.svc:80/x", "knativeerrorcode": "404"}, "a-b", 404, "",
		},
		"an answer cut in a letter": {map[string]any{"knativeerrordata": long[:1023]}, "unknown", -1, "ää"},
		"an answer that is no text": {
			map[string]any{"knativeerrordata": base64.StdEncoding.EncodeToString([]byte("a\x00\xffb"))}, "unknown", -1, "ab",
		},
		"an answer as it was": {map[string]any{"knativeerrordata": "no such thing!"}, "unknown", -1, "no such thing!"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, e := storetest.New(t), published(t)
			for key, value := range row.extensions {
				e.SetExtension(key, value)
			}
			record(t, db, e)
			letters := list(t, db, false)
			require.Len(t, letters, 1)
			require.Equal(t, row.consumer, letters[0].Consumer)
			require.Equal(t, row.code, letters[0].Code)
			require.Contains(t, happened(t, db)[0].Message, row.says)
		})
	}
}

func TestEventsOfEveryKindFindTheirApplication(t *testing.T) {
	t.Parallel()
	app := uuid.New()
	for typ, data := range map[string]any{
		events.ApplicationPlaced: events.Application{ID: app},
		events.JobReady:          events.Job{ID: uuid.New(), ApplicationID: app, Component: "web"},
		events.TopologyChanged:   events.Topology{Snapshot: uuid.New()},
		events.PolicyViolated:    events.Policy{ID: uuid.New(), Name: "of all applications"},
		"com.example.other":      json.RawMessage(`[1]`),
	} {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			db := storetest.New(t)
			e, err := events.New(t.Context(), "/test", typ, "s", data)
			require.NoError(t, err)
			record(t, db, died(e, "places", 500, ""))
			entry := happened(t, db)[0]
			if strings.Contains(typ, "application") || strings.Contains(typ, "job") {
				require.Equal(t, &app, entry.ApplicationID)
			} else {
				require.Nil(t, entry.ApplicationID)
			}
		})
	}
}

// TestOfAForgeryOnlyTheBeginningsOfItsNamesAreStored: anyone can send forgeries, of any size and number.
func TestOfAForgeryOnlyTheBeginningsOfItsNamesAreStored(t *testing.T) {
	t.Parallel()
	db, long := storetest.New(t), strings.Repeat("ü", 100_000)
	e := published(t)
	e.SetID("i" + long)
	e.SetType("t" + long)
	e.SetSource("/s" + long)
	require.NoError(t, deadletter.Forged(t.Context(), db, died(e, "c"+long, 403, long)))
	entries := happened(t, db)
	require.Len(t, entries, 1)
	require.Equal(t, "event.forged", entries[0].Event)
	require.Less(t, entries[0].Size(), 2000)
	for _, name := range []string{"iü", "tü", "/s%C3%BC"} {
		require.Contains(t, string(entries[0].Data), name)
	}
}
