package events_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/trace"
)

func job() events.Job {
	return events.Job{ID: uuid.New(), Component: "web", Orchestrator: "ocm", Epoch: 3}
}

func TestNew(t *testing.T) {
	t.Parallel()
	ctx := trace.Start(t.Context(), "")
	e, err := events.New(ctx, "/functions/x", events.JobReady, "j1", job())
	require.NoError(t, err)
	require.Equal(t, "ocm", e.Extensions()["orchestrator"], "triggers filter on it")
	require.Equal(t, trace.Parent(ctx), events.TraceParent(e))
	back, err := events.Data[events.Job](e)
	require.NoError(t, err)
	require.Equal(t, int64(3), back.Epoch)

	_, err = events.New(ctx, "", events.JobReady, "j1", job())
	require.Error(t, err, "an event without a source is not one")
}

func TestData_ofAnotherFormIsMalformed(t *testing.T) {
	t.Parallel()
	e, err := events.New(t.Context(), "/functions/x", events.JobReady, "j1", map[string]any{"epoch": "third"})
	require.NoError(t, err)
	_, err = events.Data[events.Job](e)
	require.Equal(t, problem.Malformed, problem.KindOf(err), "repeating the event mends nothing")
	require.ErrorContains(t, err, e.ID())
}

func TestSignedCoversIdentityAndData(t *testing.T) {
	t.Parallel()
	e, err := events.New(t.Context(), "/functions/x", events.JobReady, "j1", job())
	require.NoError(t, err)
	require.False(t, events.Signed(e, "key"))
	require.True(t, events.Signed(e, ""), "without a key the Broker is the trust boundary")
	events.Sign(&e, "key")
	require.True(t, events.Signed(e, "key"))
	require.False(t, events.Signed(e, "other"))
	for name, change := range map[string]func(*cloudevents.Event){
		"id":      func(e *cloudevents.Event) { e.SetID("other") },
		"source":  func(e *cloudevents.Event) { e.SetSource("/other") },
		"type":    func(e *cloudevents.Event) { e.SetType(events.JobFinished) },
		"subject": func(e *cloudevents.Event) { e.SetSubject("other") },
		"border": func(e *cloudevents.Event) {
			id, source := e.ID(), e.Source()
			e.SetID(id + source[:1])
			e.SetSource(source[1:])
		},
		"data": func(e *cloudevents.Event) { _ = e.SetData(cloudevents.ApplicationJSON, job()) },
	} {
		changed := e.Clone()
		change(&changed)
		require.False(t, events.Signed(changed, "key"), "a changed %s is noticed", name)
	}
}

// TestPublishedEventsArriveUnchanged sends events in both HTTP modes and reads them back.
func TestPublishedEventsArriveUnchanged(t *testing.T) {
	t.Parallel()
	e, err := events.New(trace.Start(t.Context(), ""), "/functions/x", events.JobReady, "j1", job())
	require.NoError(t, err)
	events.Sign(&e, "key")
	var got cloudevents.Event
	broker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got, err = events.FromRequest(r); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	defer broker.Close()

	publisher := events.HTTPPublisher{URL: broker.URL, Client: broker.Client()}
	require.NoError(t, publisher.Publish(t.Context(), e))
	require.NoError(t, err)
	require.Equal(t, e.String(), got.String())
	require.True(t, events.Signed(got, "key"))

	binary, err := http.NewRequestWithContext(t.Context(), http.MethodPost, broker.URL, bytes.NewReader(e.Data()))
	require.NoError(t, err)
	binary.Header.Set("Content-Type", e.DataContentType())
	for name, value := range map[string]string{
		"specversion": "1.0", "id": e.ID(), "source": e.Source(), "type": e.Type(), "subject": e.Subject(),
		"time": e.Time().Format("2006-01-02T15:04:05.999999999Z07:00"),
	} {
		binary.Header.Set("Ce-"+name, value)
	}
	for name, value := range e.Extensions() {
		binary.Header.Set("Ce-"+name, value.(string))
	}
	resp, err := broker.Client().Do(binary)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusAccepted, resp.StatusCode)
	require.Equal(t, e.Context.AsV1(), got.Context.AsV1())
	require.Equal(t, e.Data(), got.Data())
	require.True(t, events.Signed(got, "key"))
}

func TestPublish_saysWhatWentWrong(t *testing.T) {
	t.Parallel()
	e, err := events.New(t.Context(), "/x", events.JobReady, "j1", job())
	require.NoError(t, err)
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer busy.Close()
	for address, want := range map[string]string{"": "K_SINK", busy.URL: "503", "http://127.0.0.1:1": "refused"} {
		err := events.HTTPPublisher{URL: address, Client: busy.Client()}.Publish(t.Context(), e)
		require.ErrorContains(t, err, want)
	}
}

// TestPublish_believesNobodyButTheBroker: a proxy in front of it, for instance one that asks for a login, redirects to
// a page that anyone may read.
func TestPublish_believesNobodyButTheBroker(t *testing.T) {
	t.Parallel()
	e, err := events.New(t.Context(), "/x", events.JobReady, "j1", job())
	require.NoError(t, err)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/page" && r.Method == http.MethodGet:
			_, _ = w.Write([]byte("please log in"))
		case r.URL.Path == "/broker":
			http.Redirect(w, r, "/page", http.StatusFound)
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/there", http.StatusPermanentRedirect)
		case r.URL.Path == "/there" && r.Method == http.MethodPost:
			w.WriteHeader(http.StatusAccepted)
		case r.URL.Path == "/round":
			http.Redirect(w, r, "/round", http.StatusPermanentRedirect)
		}
	}))
	defer front.Close()
	publish := func(path string) error {
		return events.HTTPPublisher{URL: front.URL + path, Client: front.Client()}.Publish(t.Context(), e)
	}
	require.ErrorContains(t, publish("/broker"), "302")
	require.ErrorContains(t, publish("/round"), "308")
	require.NoError(t, publish("/moved"))
}

func TestFromRequest_refusesWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	const structured = "application/cloudevents+json"
	for name, row := range map[string]struct {
		media, body string
		kind        problem.Kind
	}{
		"an empty body":           {structured, "", problem.Malformed},
		"not JSON":                {structured, "{", problem.Malformed},
		"no type":                 {structured, `{"specversion":"1.0","id":"1","source":"/x"}`, problem.Malformed},
		"an unknown specversion":  {structured, `{"specversion":"7","id":"1","source":"/x","type":"t"}`, problem.Malformed},
		"no attributes in header": {"application/json", "{}", problem.Malformed},
		"too large":               {structured, strings.Repeat(" ", events.MaxBytes+1), problem.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(row.body))
			r.Header.Set("Content-Type", row.media)
			_, err := events.FromRequest(r)
			require.Equal(t, row.kind, problem.KindOf(err), "%v", err)
		})
	}
}

func TestFromRequest_ofAnotherVersion(t *testing.T) {
	t.Parallel()
	for version, taken := range map[string]bool{"1.0": true, "0.3": false, "2.0": false, "": false} {
		r := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
		for name, value := range map[string]string{"specversion": version, "id": "1", "source": "/x", "type": "t"} {
			r.Header.Set("Ce-"+name, value)
		}
		_, err := events.FromRequest(r)
		require.Equal(t, taken, err == nil, "%s: %v", version, err)
	}
}

// TestFromRequest_thatBreaksOff: the event is unknown then, so the answer must make the Broker retry.
func TestFromRequest_thatBreaksOff(t *testing.T) {
	t.Parallel()
	late := io.MultiReader(strings.NewReader(`{"specversion":"1.0",`), iotest.ErrReader(os.ErrDeadlineExceeded))
	r := httptest.NewRequest(http.MethodPost, "/", late)
	r.Header.Set("Content-Type", cloudevents.ApplicationCloudEventsJSON)
	_, err := events.FromRequest(r)
	require.Equal(t, problem.Unavailable, problem.KindOf(err), "a Broker delivers it again: %v", err)
}

func FuzzFromRequest(f *testing.F) {
	f.Add("application/cloudevents+json", "", "", `{"specversion":"1.0","id":"1","source":"/x","type":"t","data":{}}`)
	f.Add("application/cloudevents+json", "", "", `{"specversion":"1.0","id":"1","source":"/x","type":"t","data_base64":"!"}`)
	f.Add("text/plain", "a-b", "2001-01-01T00:00:00Z", "x")
	f.Fuzz(func(t *testing.T, media, extension, at, body string) {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header = http.Header{
			"Content-Type": {media}, "Ce-Specversion": {"1.0"}, "Ce-Id": {"1"}, "Ce-Source": {"/x"}, "Ce-Type": {"t"},
			"Ce-Time": {at}, "Ce-" + extension: {"v"},
		}
		e, err := events.FromRequest(r)
		if err != nil {
			return
		}
		require.NoError(t, e.Validate(), "what is read is an event")
	})
}
