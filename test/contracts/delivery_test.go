package contracts_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/events/identity"
	"github.com/littoral-project/littoral/shared/events/identity/identitytest"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/test/inprocess"
)

const eventKey = "a key that the Broker's clients share"

// consumers are all functions that consume events, with EVENT_KEY set or not.
func consumers(t testing.TB, key string) (w *world, handlers map[string]http.Handler) {
	t.Helper()
	w = newWorld(t)
	_, handlers, err := inprocess.Mount(function.Platform{DB: w.DB, Auth: w.Issuer.Verifier(), EventKey: key, Settings: settings.Map(given)})
	require.NoError(t, err)
	return w, handlers
}

// everyType lists each event type that some function consumes or emits, and one unknown type.
func everyType() []string {
	all := []string{"com.example.unknown"}
	for _, entry := range functions.Registry {
		all = append(append(all, entry.Spec.Consumes...), entry.Spec.Emits...)
	}
	all = slices.DeleteFunc(all, func(typ string) bool { return typ == events.Any })
	slices.Sort(all)
	return slices.Compact(all)
}

// TestDeliveriesOfStrangers: if Knative sends the identity of the sender, only the sink accepts an event without a
// token of the namespace, even if the event is signed.
func TestDeliveriesOfStrangers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cluster := identitytest.New(t)
	tokens, err := identity.Open(cluster.Config())
	require.NoError(t, err)
	_, handlers, err := inprocess.Mount(function.Platform{
		DB: w.DB, Auth: w.Issuer.Verifier(), EventKey: eventKey, Deliveries: tokens.Deliveries(w.DB),
	})
	require.NoError(t, err)
	for _, entry := range functions.Registry {
		if len(entry.Spec.Consumes) == 0 {
			continue
		}
		e := newEvent(t, "com.example.unknown")
		events.Sign(&e, eventKey)
		post := func(authorization string) int {
			text, err := json.Marshal(e)
			require.NoError(t, err)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, function.EventPath, bytes.NewReader(text))
			r.Header.Set("Content-Type", cloudevents.ApplicationCloudEventsJSON)
			r.Header.Set("Authorization", authorization)
			out := httptest.NewRecorder()
			handlers[entry.Name].ServeHTTP(out, r)
			return out.Code
		}
		known, strange := http.StatusServiceUnavailable, http.StatusUnauthorized // the token for its type
		if slices.Contains(entry.Spec.Consumes, events.Any) {
			known, strange = http.StatusNoContent, http.StatusNoContent
		}
		require.Equal(t, strange, post(""), entry.Name)
		require.Equal(t, strange, post("Bearer "+identitytest.New(t).Token(nil)), "%s: a token of another cluster", entry.Name)
		require.Equal(t, known, post("Bearer "+cluster.Token(nil)), entry.Name)
	}
}

// TestDeliveries: a function accepts the events that it declares (signed, if there is a key) and no others. An event of
// ours that it does not declare is delivered again, since the function may be about to be replaced.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	unsigned, open := consumers(t, "")
	signed, closed := consumers(t, eventKey)
	for _, entry := range functions.Registry {
		t.Run(entry.Name, func(t *testing.T) {
			for _, typ := range everyType() {
				e := newEvent(t, typ)
				if len(entry.Spec.Consumes) == 0 {
					status, _ := deliver(t, open[entry.Name], e)
					require.Contains(t, []int{http.StatusNotFound, http.StatusMethodNotAllowed}, status, typ)
					continue
				}
				takesAny := slices.Contains(entry.Spec.Consumes, events.Any)
				if !takesAny && !slices.Contains(entry.Spec.Consumes, typ) {
					unsigned.unchanged(t, func() {
						status, text := deliver(t, open[entry.Name], e)
						require.Equal(t, http.StatusForbidden, status, "%s: %s", typ, text)
						status, text = deliver(t, closed[entry.Name], e)
						require.Equal(t, http.StatusForbidden, status, "%s: %s", typ, text)
					})
					events.Sign(&e, eventKey)
					status, _ := deliver(t, closed[entry.Name], e)
					require.Equal(t, http.StatusServiceUnavailable, status, "%s: a next version may take it", typ)
					continue
				}
				status, text := deliver(t, open[entry.Name], e)
				require.Equal(t, http.StatusNoContent, status, "%s: %s", typ, text)
				if strings.HasPrefix(typ, "dev.knative.") && !takesAny {
					status, text := deliver(t, closed[entry.Name], e)
					require.Equal(t, http.StatusNoContent, status, "the platform says when to look and needs no proof: %s", text)
					continue
				}
				if takesAny { // the sink gets events that others refused, and only records forgeries
					kept := letters(t, signed)
					sendForgeries(t, closed[entry.Name], e, http.StatusNoContent)
					require.Equal(t, kept, letters(t, signed), "a replay would sign it")
				} else {
					signed.unchanged(t, func() { sendForgeries(t, closed[entry.Name], e, http.StatusForbidden) })
				}
				events.Sign(&e, eventKey)
				status, text = deliver(t, closed[entry.Name], e)
				require.Equal(t, http.StatusNoContent, status, "%s: %s", typ, text)
			}
		})
	}
}

func letters(t *testing.T, w *world) (n int) {
	t.Helper()
	require.NoError(t, w.DB.QueryRow(t.Context(), "select count(*) from dead_letters").Scan(&n))
	return n
}

func sendForgeries(t *testing.T, h http.Handler, e cloudevents.Event, answer int) {
	t.Helper()
	otherKey, otherID, otherData, otherSubject := e.Clone(), e.Clone(), e.Clone(), e.Clone()
	events.Sign(&otherKey, "another key")
	for _, changed := range []*cloudevents.Event{&otherID, &otherData, &otherSubject} {
		events.Sign(changed, eventKey)
	}
	otherID.SetID("another id")
	otherSubject.SetSubject("another subject")
	require.NoError(t, otherData.SetData(cloudevents.ApplicationJSON, map[string]string{"id": "another"}))
	for name, forged := range map[string]cloudevents.Event{
		"unsigned": e, "signed by another key": otherKey, "with another id": otherID, "with other data": otherData,
		"about something else": otherSubject,
	} {
		status, text := deliver(t, h, forged)
		require.Equal(t, answer, status, "%s: %s", name, text)
	}
}

// TestADeliveryThatIsNoEventIsRefused: in both modes of the HTTP binding.
func TestADeliveryThatIsNoEventIsRefused(t *testing.T) {
	t.Parallel()
	w, handlers := consumers(t, "")
	const structured = cloudevents.ApplicationCloudEventsJSON
	for name, row := range map[string]struct {
		media, body string
		header      []string
		status      int
	}{
		"nothing":             {"", "", nil, 400},
		"no JSON":             {structured, "{", nil, 400},
		"an empty object":     {structured, "{}", nil, 400},
		"an event without id": {structured, `{"specversion":"1.0","source":"/s","type":"t"}`, nil, 400},
		"an older version":    {structured, `{"specversion":"0.2","id":"1","source":"/s","type":"t"}`, nil, 400},
		"a time that is none": {
			structured, `{"specversion":"1.0","id":"1","source":"/s","type":"t","time":"noon"}`, nil, 400,
		},
		"headers without type": {"", "{}", []string{"Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/s"}, 400},
		"headers with a bad time": {
			"", "{}",
			[]string{"Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/s", "Ce-Type", "t", "Ce-Time", "noon"},
			400,
		},
		"too much":        {structured, strings.Repeat(" ", events.MaxBytes+1), nil, 413},
		"an unknown type": {structured, `{"specversion":"1.0","id":"1","source":"/s","type":"t"}`, nil, 403},
		"an unknown type, binary": {
			"", "{}", []string{"Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/s", "Ce-Type", "t"}, 403,
		},
		"data of the wrong form": {
			structured,
			`{"specversion":"1.0","id":"1","source":"/s","type":"dev.littoral.application.submitted.v1","data":[]}`, nil, 400,
		},
		"data that names no thing": {
			structured,
			`{"specversion":"1.0","id":"2","source":"/s","type":"dev.littoral.application.submitted.v1","data":{}}`, nil, 204,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(row.body))
			if row.media != "" {
				r.Header.Set("Content-Type", row.media)
			}
			for i := 0; i+1 < len(row.header); i += 2 {
				r.Header.Set(row.header[i], row.header[i+1])
			}
			recorder := httptest.NewRecorder()
			call := func() { handlers["matchmaker-place"].ServeHTTP(recorder, r) }
			if row.status == http.StatusNoContent {
				call()
			} else {
				w.unchanged(t, call)
			}
			require.Equal(t, row.status, recorder.Code, recorder.Body.String())
			if row.status != http.StatusNoContent {
				require.Equal(t, "application/problem+json", recorder.Header().Get("Content-Type"))
			}
		})
	}
}

// TestADuplicateEventDoesNothingMore: the answer must be a success, otherwise the Broker would deliver it again.
func TestADuplicateEventDoesNothingMore(t *testing.T) {
	t.Parallel()
	w, handlers := consumers(t, "")
	g := w.submit(t, hubShop)
	for _, e := range w.Broker.Accepted() {
		for _, name := range w.Broker.Consumers(e) {
			if name == "jobmanager-displace" {
				continue // a task: it does its work whatever event wakes it
			}
			w.unchanged(t, func() {
				for range 3 {
					status, text := deliver(t, handlers[name], e)
					require.Equal(t, http.StatusNoContent, status, text)
				}
			})
		}
	}
	require.Equal(t, "hub-1", w.group(t, g.ID).Jobs[0].Targets.Node)
}
