package updatestream_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	updatecontrol "github.com/littoral-project/littoral/functions/netma/update-control"
	updatestream "github.com/littoral-project/littoral/functions/netma/update-stream"
	"github.com/littoral-project/littoral/shared/alto"
	"github.com/littoral-project/littoral/shared/application/applicationtest"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/netma/links"
	"github.com/littoral-project/littoral/shared/sse"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// world is a store, the function that has streams open, and the one that controls them, each as in a process of its own.
type world struct {
	applicationtest.World
	url string
}

func newWorld(t *testing.T) world {
	t.Helper()
	w := world{World: applicationtest.New(t)}
	env := &function.Env{Platform: function.Platform{DB: w.DB}}
	stream, err := updatestream.New(env)
	require.NoError(t, err)
	control, err := updatecontrol.New(env)
	require.NoError(t, err)
	mux := http.NewServeMux()
	handle := func(pattern string, f func(http.ResponseWriter, *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := f(w, r); err != nil {
				http.Error(w, err.Error(), http.StatusTeapot)
			}
		})
	}
	handle("POST /alto/updates", stream.Handle)
	handle("POST /alto/updates/{id}", control.Handle)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	w.url = s.URL
	return w
}

// measure says what the round trips between nodes are.
func (w world) measure(rtt map[[2]string]float64) {
	w.Helper()
	w.Must(func(ctx context.Context, tx *store.Tx) error {
		var all []links.Measurement
		for ends, v := range rtt {
			all = append(all, links.Measurement{Source: ends[0], Target: ends[1], Figures: links.Figures{RTT: &v}, MeasuredAt: time.Now()})
		}
		return links.Save(ctx, tx, all)
	})
}

func (w world) post(ctx context.Context, path, last, body string) *http.Response {
	w.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+path, strings.NewReader(body))
	require.NoError(w, err)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(w, err)
	w.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// open returns what comes of a stream, and its end.
func (w world) open(last, body string) (events <-chan sse.Event, end func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	answer := w.post(ctx, "/alto/updates", last, body)
	require.Equal(w, http.StatusOK, answer.StatusCode)
	require.Equal(w, alto.EventStream, answer.Header.Get("Content-Type"))
	out := make(chan sse.Event, 100)
	go func() {
		defer close(out)
		_ = sse.Read(answer.Body, func(e sse.Event) error { out <- e; return nil })
	}()
	return out, cancel
}

func (w world) next(events <-chan sse.Event) sse.Event {
	w.Helper()
	select {
	case e, open := <-events:
		require.True(w, open, "the stream has ended")
		return e
	case <-time.After(time.Minute):
		require.FailNow(w, "nothing comes")
	}
	return sse.Event{}
}

// control returns what the stream says about itself next.
func (w world) control(events <-chan sse.Event) (c alto.UpdateControlEvent) {
	w.Helper()
	e := w.next(events)
	require.Equal(w, alto.UpdateControl, e.Name)
	require.NoError(w, json.Unmarshal([]byte(e.Data), &c))
	return c
}

// costs is a cost map, to which patches can be applied.
type costs map[string]map[string]*float64

func (c costs) apply(t *testing.T, e sse.Event) {
	t.Helper()
	var d struct {
		Map costs `json:"cost-map"`
	}
	require.NoError(t, json.Unmarshal([]byte(e.Data), &d))
	for row, values := range d.Map {
		if c[row] == nil {
			c[row] = map[string]*float64{}
		}
		for to, v := range values {
			if c[row][to] = v; v == nil {
				delete(c[row], to)
			}
		}
	}
}

const both = `{"add": {"map": {"resource-id": "network"}, "costs": {"resource-id": "cost-net_rtt_ms-num"}}}`

// TestAStreamTellsWhatChanges: first the maps as they are, the network map before the costs between its places, then what changes of them.
func TestAStreamTellsWhatChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.measure(map[[2]string]float64{{"a", "b"}: 10, {"b", "a"}: 10})
	events, end := w.open("", both)
	defer end()
	require.Regexp(t, `^/alto/updates/[0-9a-f-]{36}$`, w.control(events).ControlURI)
	first := w.next(events)
	require.Equal(t, "application/alto-networkmap+json,map", first.Name)
	require.Contains(t, first.Data, `"elsewhere"`)
	whole := w.next(events)
	require.Equal(t, "application/alto-costmap+json,costs", whole.Name)
	now := costs{}
	now.apply(t, whole)
	require.InDelta(t, 10, *now["a"]["b"], 0)

	w.measure(map[[2]string]float64{{"a", "b"}: 12})
	patch := w.next(events)
	require.Equal(t, "application/merge-patch+json,costs", patch.Name)
	require.JSONEq(t, `{"cost-map": {"a": {"b": 12}}}`, patch.Data)

	w.measure(map[[2]string]float64{{"a", "c"}: 3}) // a place more: both maps change, this one first
	require.Equal(t, "application/merge-patch+json,map", w.next(events).Name)
	last := w.next(events)
	require.Equal(t, "application/merge-patch+json,costs", last.Name)
	require.Contains(t, last.Data, `"dependent-vtags"`)
	now.apply(t, patch)
	now.apply(t, last)
	require.InDelta(t, 12, *now["a"]["b"], 0)
	require.InDelta(t, 3, *now["a"]["c"], 0)
	end()

	// Whoever comes again gets what has changed since, and nothing twice.
	w.measure(map[[2]string]float64{{"a", "b"}: 14})
	events, end = w.open(last.ID, both)
	defer end()
	w.control(events)
	again := w.next(events) // the whole, or a patch if the stream began with what the caller has
	require.Regexp(t, "^application/(alto-costmap|merge-patch)[+]json,costs$", again.Name, "the network map is as it was")
	now.apply(t, again)
	require.InDelta(t, 14, *now["a"]["b"], 0)
	end()
	events, end = w.open(again.ID, both)
	defer end()
	w.control(events)
	w.measure(map[[2]string]float64{{"a", "b"}: 15})
	now.apply(t, w.next(events))
	require.InDelta(t, 15, *now["a"]["b"], 0)
}

// TestAStreamIsControlled: by calls that may come to any process; the last resource that is removed ends it.
func TestAStreamIsControlled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.measure(map[[2]string]float64{{"a", "b"}: 10})
	events, end := w.open("", `{"add": {"map": {"resource-id": "network"}}}`)
	defer end()
	uri := w.control(events).ControlURI
	w.next(events)
	is := func(status int, body string) *http.Response {
		t.Helper()
		answer := w.post(t.Context(), uri, "", body)
		require.Equal(t, status, answer.StatusCode, body)
		return answer
	}
	is(http.StatusNoContent, `{"remove": ["map"], "add": {"part": {"resource-id": "cost-filtered", "incremental-changes": false,
		"input": {"cost-type": {"cost-mode": "numerical", "cost-metric": "net_rtt_ms"}, "pids": {"srcs": ["a"]}}}}}`)
	require.Equal(t, alto.UpdateControlEvent{Started: []string{"part"}, Stopped: []string{"map"}}, w.control(events))
	require.Contains(t, w.next(events).Data, `"cost-map":{"a":{"a":0,"b":10}}`)
	w.measure(map[[2]string]float64{{"a", "b"}: 11})
	e := w.next(events)
	require.Equal(t, "application/alto-costmap+json,part", e.Name, "no patches are wanted")
	require.Contains(t, e.Data, `"b":11`)

	for body, fault := range map[string]alto.Error{
		`{}`:                  {Code: alto.MissingField, Field: "add"},
		`{"remove": ["map"]}`: {Code: alto.InvalidFieldValue, Field: "remove", Value: "map"},
		`{"add": {"part": {"resource-id": "network"}}}`:                        {Code: alto.InvalidFieldValue, Field: "add", Value: "part"},
		`{"add": {"a.b": {"resource-id": "network"}}}`:                         {Code: alto.InvalidFieldValue, Field: "add", Value: "a.b"},
		`{"add": {"x": {}}}`:                                                   {Code: alto.MissingField, Field: "add/x/resource-id"},
		`{"add": {"x": {"resource-id": "taste"}}}`:                             {Code: alto.InvalidFieldValue, Field: "add/x/resource-id", Value: "taste"},
		`{"add": {"x": {"resource-id": "updates"}}}`:                           {Code: alto.InvalidFieldValue, Field: "add/x/resource-id", Value: "updates"},
		`{"add": {"x": {"resource-id": "cost-filtered"}}}`:                     {Code: alto.MissingField, Field: "add/x/input/cost-type"},
		`{"add": {"x": {"resource-id": "network-filtered", "input": 5}}}`:      {Code: alto.InvalidFieldType, Field: "add/x/input"},
		`{"add": {"x": {"resource-id": "network", "incremental-changes": 1}}}`: {Code: alto.InvalidFieldType, Field: "add/x/incremental-changes"},
	} {
		var said struct{ Meta alto.Error }
		require.NoError(t, json.NewDecoder(is(http.StatusBadRequest, body).Body).Decode(&said))
		require.Equal(t, fault, said.Meta, body)
	}
	is(http.StatusNoContent, `{"remove": []}`)
	require.Equal(t, []string{"part"}, w.control(events).Stopped)
	_, open := <-events
	require.False(t, open, "nothing is left of it")
	require.Eventually(t, func() bool {
		return w.post(t.Context(), uri, "", `{"remove": []}`).StatusCode == http.StatusTeapot
	}, time.Minute, 10*time.Millisecond, "it is not there any more")
}

// TestPatchesAreOfTheWantedType: of those that the client names, the first that there is; another client gets its own.
func TestPatchesAreOfTheWantedType(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.measure(map[[2]string]float64{{"a", "b"}: 10, {"b", "a"}: 10})
	wanted := func(types string) string {
		return `{"add": {"costs": {"resource-id": "cost-net_rtt_ms-num", "incremental-change-media-types": "` + types + `"}}}`
	}
	both := "application/merge-patch+json,application/json-patch+json"
	operations, end := w.open("", wanted("application/x-diff, application/json-patch+json"))
	defer end()
	merged, end := w.open("", wanted(both))
	defer end()
	w.control(operations)
	w.control(merged)
	require.Equal(t, w.next(merged).Data, w.next(operations).Data, "it comes whole first")

	w.measure(map[[2]string]float64{{"a", "b"}: 12})
	e := w.next(operations)
	require.Equal(t, "application/json-patch+json,costs", e.Name)
	require.JSONEq(t, `[{"op": "replace", "path": "/cost-map/a/b", "value": 12}]`, e.Data)
	e = w.next(merged)
	require.Equal(t, "application/merge-patch+json,costs", e.Name)
	require.JSONEq(t, `{"cost-map": {"a": {"b": 12}}}`, e.Data)

	var said struct{ Meta alto.Error }
	answer := w.post(t.Context(), "/alto/updates", "", wanted("text/x-diff"))
	require.Equal(t, http.StatusBadRequest, answer.StatusCode)
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&said))
	require.Equal(t, alto.Error{Code: alto.InvalidFieldValue, Field: "add/costs/incremental-change-media-types", Value: "text/x-diff"}, said.Meta)
}

// TestACurrentTagIsNotSentAgain: the client has the version that it names.
func TestACurrentTagIsNotSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.measure(map[[2]string]float64{{"a", "b"}: 10})
	events, end := w.open("", `{"add": {"map": {"resource-id": "network"}}}`)
	defer end()
	w.control(events)
	var d alto.NetworkMapDocument
	require.NoError(t, json.Unmarshal([]byte(w.next(events).Data), &d))
	events, end = w.open("", `{"add": {"costs": {"resource-id": "cost-hopcount-num"}, "map": {"resource-id": "network", "tag": "`+d.Meta.VTag.Tag+`"}}}`)
	defer end()
	w.control(events)
	require.Equal(t, "application/alto-costmap+json,costs", w.next(events).Name)
}
