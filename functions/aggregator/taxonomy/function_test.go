package taxonomy_test

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions/aggregator/taxonomy"
	"github.com/littoral-project/littoral/infra/runner/prometheus"
	"github.com/littoral-project/littoral/infra/runner/prometheus/prometheustest"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/shared/topology"
	"github.com/littoral-project/littoral/test/inprocess"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// telemetry is a Prometheus with one node.
func telemetry(t *testing.T) http.Handler {
	t.Helper()
	return telemetryOf(t, "edge")
}

// telemetryOf is a Prometheus with one node, called rpi, in each of the clusters.
func telemetryOf(t *testing.T, clusters ...string) http.Handler {
	t.Helper()
	p := prometheustest.New(t)
	var samples []prometheus.Sample
	for i, cluster := range clusters {
		id := strconv.Itoa(i + 1)
		host := map[string]string{
			"icos_agent_id": "agent-" + id, "icos_cluster_id": "c" + id, "icos_host_id": "h" + id, "icos_host_name": "c" + id + ":rpi",
			"type": "ocm", "agent_name": cluster, "agent_id": "agent-" + id, "hostname": "rpi", "cpu": "0", "mode": "idle",
		}
		for _, name := range []string{"tlum_orch_info", "tlum_host_info", "node_cpu_seconds_total"} {
			samples = append(samples, prometheus.Sample{Name: name, Labels: host, Value: 1, At: time.Now()})
		}
	}
	require.NoError(t, p.Append(context.Background(), samples))
	return p.Handler()
}

// serve returns the function's handler over the telemetry and an issuer of tokens for it.
func serve(t *testing.T, telemetry http.Handler, age string) (http.Handler, *inprocess.Issuer) {
	t.Helper()
	server := httptest.NewServer(telemetry)
	t.Cleanup(server.Close)
	issuer := inprocess.NewIssuer(t)
	h, err := function.NewEntry("aggregator-taxonomy", taxonomy.Spec, taxonomy.New).Handler(function.Platform{
		Auth: issuer.Verifier(), Transport: server.Client().Transport, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		DB: storetest.New(t),
		Settings: settings.Map(map[string]string{
			"AGGREGATOR_TAXONOMY_PROMETHEUS_ADDRESS": server.URL, "TAXONOMY_AGE": cmp.Or(age, "5s"),
		}),
	}.Env("aggregator-taxonomy"))
	require.NoError(t, err)
	return h, issuer
}

func get(h http.Handler, path, token string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestHandle(t *testing.T) {
	h, issuer := serve(t, telemetry(t), "")
	viewer, others := issuer.Token(t, auth.Viewer), issuer.TokenWith(t, inprocess.Claims{"aud": "x"})
	for name, row := range map[string]struct {
		path, token string
		status      int
		contains    string
	}{
		"the newest shape":                {"/aggregator/", viewer, 200, `"icosAgentID":"agent-1"`},
		"without the slash":               {"/aggregator", viewer, 200, `"icosAgentID":"agent-1"`},
		"the older shape has no agent":    {"/aggregator/?shape=v1", viewer, 200, `"edge":{"type":"ocm","uuid":"c1"`},
		"an unknown shape":                {"/aggregator/?shape=v9", viewer, 400, "is not one of v1"},
		"an unknown parameter":            {"/aggregator/?form=v1", viewer, 400, "is not known here"},
		"one cluster":                     {"/aggregator/?cluster=edge", viewer, 200, `"edge":{"type":"ocm"`},
		"one node":                        {"/aggregator/?node=rpi", viewer, 200, `"rpi":{`},
		"a cluster that there is not":     {"/aggregator/?cluster=sea", viewer, 404, "no such cluster"},
		"a node that there is not":        {"/aggregator/?cluster=edge&node=sea", viewer, 404, "no such cluster or node"},
		"a key that there is not":         {"/aggregator/?keys=name,moods", viewer, 400, `\"moods\" is no key of a node`},
		"a key within that there is not":  {"/aggregator/?keys=staticMetrics.moods", viewer, 400, `\"staticMetrics.moods\" is no key of a node`},
		"keys of the older shape":         {"/aggregator/?shape=v1&keys=name", viewer, 400, "is not for the older shape"},
		"no token":                        {"/aggregator/", "", 401, "access token"},
		"a token without a role":          {"/aggregator/", issuer.TokenWith(t, inprocess.Claims{}), 403, "viewer"},
		"a token that has expired":        {"/aggregator/", issuer.TokenWith(t, inprocess.Claims{"exp": 1}), 401, "expired"},
		"a token for others":              {"/aggregator/", others, 401, "audience"},
		"a path that is not there":        {"/aggregator/x", viewer, 404, "nothing at"},
		"an agent, who may read as well ": {"/aggregator/", issuer.Token(t, auth.Agent), 200, `"cpuCores":1`},
	} {
		t.Run(name, func(t *testing.T) {
			w := get(h, row.path, row.token)
			require.Equal(t, row.status, w.Code, w.Body.String())
			require.Contains(t, w.Body.String(), row.contains)
			if row.status == http.StatusOK {
				_, err := topology.Parse(w.Body.Bytes())
				require.NoError(t, err)
			}
		})
	}
}

func TestHandle_aFailingQueryIsNamedInBothShapes(t *testing.T) {
	inner := telemetry(t)
	h, issuer := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.FormValue("query"), "kube_pod_info") {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		inner.ServeHTTP(w, r)
	}), "")
	for _, path := range []string{"/aggregator/", "/aggregator/?shape=v1"} {
		w := get(h, path, issuer.Token(t, auth.Viewer))
		require.Equal(t, http.StatusOK, w.Code)
		var got struct {
			Warnings []string `json:"warnings"`
		}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
		require.Equal(t, []string{
			"the query for kube_pod_info failed: the telemetry store answered 500 Internal Server Error",
		}, got.Warnings)
	}
}

func TestHandle_withoutTelemetryIsUnavailable(t *testing.T) {
	h, issuer := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}), "")
	w := get(h, "/aggregator/", issuer.Token(t, auth.Viewer))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, problem.ContentType, w.Header().Get("Content-Type"))
	require.NotEmpty(t, w.Header().Get("Retry-After"))
	require.Contains(t, w.Body.String(), "tlum_orch_info")
	require.NotContains(t, w.Body.String(), "127.0.0.1", "the address of the store is nobody's business")
}

func ask(h http.Handler, path, token string, header map[string]string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Authorization", "Bearer "+token)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestHandle_whoHasThePresentPictureNeedNotReadItAgain(t *testing.T) {
	h, issuer := serve(t, telemetry(t), "1h")
	viewer := issuer.Token(t, auth.Viewer)
	whole := get(h, "/aggregator/", viewer)
	require.Equal(t, http.StatusOK, whole.Code)
	tag := whole.Header().Get("ETag")
	require.NotEmpty(t, tag)
	for name, row := range map[string]struct {
		given  string
		status int
	}{
		"the present one":         {tag, http.StatusNotModified},
		"among others":            {`"x", ` + tag, http.StatusNotModified},
		"any":                     {"*", http.StatusNotModified},
		"another":                 {`W/"x"`, http.StatusOK},
		"what is no tag":          {"x", http.StatusOK},
		"its text without quotes": {strings.Trim(tag, `W/"`), http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			w := ask(h, "/aggregator/", viewer, map[string]string{"If-None-Match": row.given})
			require.Equal(t, row.status, w.Code)
			require.Equal(t, tag, w.Header().Get("ETag"))
			require.Equal(t, row.status == http.StatusNotModified, w.Body.Len() == 0)
		})
	}
}

func TestHandle_compressesForWhoeverAccepts(t *testing.T) {
	h, issuer := serve(t, telemetryOf(t, "edge", "far"), "1h")
	viewer := issuer.Token(t, auth.Viewer)
	plain := get(h, "/aggregator/", viewer)
	packed := ask(h, "/aggregator/", viewer, map[string]string{"Accept-Encoding": "gzip, br"})
	require.Equal(t, "gzip", packed.Header().Get("Content-Encoding"))
	z, err := gzip.NewReader(packed.Body)
	require.NoError(t, err)
	body, err := io.ReadAll(z)
	require.NoError(t, err)
	require.Equal(t, plain.Body.String(), string(body))
}

func TestHandle_answersParts(t *testing.T) {
	h, issuer := serve(t, telemetryOf(t, "a", "b", "c"), "1h")
	viewer := issuer.Token(t, auth.Viewer)
	read := func(path string) (map[string]topology.Cluster, http.Header) {
		w := get(h, path, viewer)
		require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		var got topology.Taxonomy
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
		return got.Cluster, w.Header()
	}
	all, _ := read("/aggregator/")
	require.Len(t, all, 3)
	one, _ := read("/aggregator/?cluster=b")
	require.Equal(t, map[string]topology.Cluster{"b": all["b"]}, one)
	older, _ := read("/aggregator/?shape=v1&cluster=b")
	require.Equal(t, []string{"b"}, slices.Collect(maps.Keys(older)))

	some, _ := read("/aggregator/?cluster=b&keys=staticMetrics,lastSeen")
	want := all["b"].Node["rpi"]
	require.Equal(t, topology.Node{
		Name: "rpi", LastSeen: want.LastSeen, StaticMetrics: want.StaticMetrics,
	}, some["b"].Node["rpi"])
	some, _ = read("/aggregator/?cluster=b&keys=staticMetrics.cpuCores,staticMetrics.RAMMemory,location.city")
	require.Equal(t, topology.Node{
		Name: "rpi", StaticMetrics: topology.StaticMetrics{CPUCores: want.StaticMetrics.CPUCores},
	}, some["b"].Node["rpi"])

	var pages []string
	for path := "/aggregator/?limit=2"; path != ""; {
		page, header := read(path)
		pages = append(pages, strings.Join(slices.Sorted(maps.Keys(page)), " "))
		path, _, _ = strings.Cut(strings.TrimPrefix(header.Get("Link"), "<"), ">")
	}
	require.Equal(t, []string{"a b", "c"}, pages)
}

// TestHandle_looksAgainOnlyWhenThePictureIsOld: many readers do not ask telemetry each time.
func TestHandle_looksAgainOnlyWhenThePictureIsOld(t *testing.T) {
	for age, want := range map[string]int{"1h": 1, "0s": 3} {
		t.Run(age, func(t *testing.T) {
			inner := telemetry(t)
			var mu sync.Mutex
			asked := map[string]bool{} // all queries of one look are of one instant
			h, issuer := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				asked[r.FormValue("time")] = true
				mu.Unlock()
				inner.ServeHTTP(w, r)
			}), age)
			for range 3 {
				require.Equal(t, http.StatusOK, get(h, "/aggregator/", issuer.Token(t, auth.Viewer)).Code)
			}
			require.Len(t, asked, want)
		})
	}
}

// TestHandle_doesNotLookForWhoTakesAnOldPicture: it is there at once, even while telemetry is away.
func TestHandle_doesNotLookForWhoTakesAnOldPicture(t *testing.T) {
	inner := telemetry(t)
	var away atomic.Bool
	h, issuer := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			http.Error(w, "away", http.StatusBadGateway)
			return
		}
		inner.ServeHTTP(w, r)
	}), "0s")
	ask := func(control string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/aggregator/", nil)
		r.Header.Set("Authorization", "Bearer "+issuer.Token(t, auth.Viewer))
		r.Header.Set("Cache-Control", control)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	first := ask("max-stale") // there is no picture yet, so it has to look
	require.Equal(t, http.StatusOK, first.Code, first.Body.String())
	away.Store(true)
	for control, want := range map[string]int{
		"max-stale": 200, "no-transform, max-stale": 200, "max-stale=3600": 200, "Max-Stale=99999999999999999999": 200,
		"": 503, "max-stale=0": 503, "max-stale=soon": 503, "max-age=3600": 503,
	} {
		w := ask(control)
		require.Equal(t, want, w.Code, control)
		if want == http.StatusOK {
			require.Equal(t, first.Header().Get("ETag"), w.Header().Get("ETag"))
			require.NotEmpty(t, w.Header().Get("Age"))
		}
	}
}

// TestHandle_aRecentPictureIsAnsweredWhereANewOneTakesLong: it is made all the same, for the next caller.
func TestHandle_aRecentPictureIsAnsweredWhereANewOneTakesLong(t *testing.T) {
	inner := telemetry(t)
	var slow atomic.Pointer[chan struct{}]
	h, issuer := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if until := slow.Load(); until != nil {
			<-*until
		}
		inner.ServeHTTP(w, r)
	}), "1ms")
	viewer := issuer.Token(t, auth.Viewer)
	first := get(h, "/aggregator/", viewer)
	require.Equal(t, http.StatusOK, first.Code, first.Body.String())
	until := make(chan struct{})
	slow.Store(&until)
	for range 2 { // the second finds that the first one's is still being made
		w := get(h, "/aggregator/", viewer)
		require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		require.Equal(t, first.Header().Get("ETag"), w.Header().Get("ETag"))
	}
	slow.Store(nil)
	close(until)
	require.Eventually(t, func() bool {
		w := ask(h, "/aggregator/", viewer, map[string]string{"Cache-Control": "max-stale"})
		return w.Header().Get("ETag") != first.Header().Get("ETag")
	}, time.Minute, 10*time.Millisecond)
}
