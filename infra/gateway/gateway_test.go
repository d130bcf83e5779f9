package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/wake"
)

// world is a gateway in front of one server that stands for all functions and answers with the Host that was requested.
func world(t *testing.T, routes []route, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	behind := httptest.NewServer(answer)
	t.Cleanup(behind.Close)
	host := func(service string) string { return service + ".ns" }
	h, err := newHandler(routes, to(t, behind, host, nil))
	require.NoError(t, err)
	front := httptest.NewServer(h)
	t.Cleanup(front.Close)
	return front
}

// to returns options that send everything to one server.
func to(t *testing.T, behind *httptest.Server, host func(string) string, waker *wake.Waker) options {
	t.Helper()
	way := func(bool) http.RoundTripper { return direct{behind.Listener.Addr().String()} }
	return options{host: host, way: way, waker: waker, most: 100, stopping: t.Context()}
}

// direct sends everything to one address and leaves the Host as it is.
type direct struct{ address string }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	r.URL.Host = d.address
	return http.DefaultTransport.RoundTrip(r)
}

func do(t *testing.T, method, url, body string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp, string(text)
}

// TestEveryRouteReachesItsFunction compares the generated table with the declarations.
func TestEveryRouteReachesItsFunction(t *testing.T) {
	t.Parallel()
	routes, err := readTables(os.DirFS("../../knative/gateway"))
	require.NoError(t, err)
	front := world(t, routes, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s", r.Host, r.Method, r.URL.RequestURI(), body)
	})
	n := 0
	for _, entry := range functions.Registry {
		for _, declared := range entry.Spec.Patterns() {
			method, path, _ := strings.Cut(declared, " ")
			path = strings.TrimSuffix(path, "{$}")
			for strings.Contains(path, "{") {
				from, to := strings.Index(path, "{"), strings.Index(path, "}")
				path = path[:from] + "a%2Fb" + path[to+1:]
			}
			resp, text := do(t, method, front.URL+path+"?q=%20x&app=1;limit=2&%zz", "body")
			require.Equal(t, 200, resp.StatusCode, declared)
			require.Equal(t, entry.Name+".ns "+method+" "+path+"?q=%20x&app=1;limit=2&%zz body", text, "the request arrives as it was sent")
			n++
		}
	}
	require.Len(t, routes, n)
}

// TestACallEndsBeforeItsGatewayDoes: open calls are completed when an instance is replaced.
func TestACallEndsBeforeItsGatewayDoes(t *testing.T) {
	t.Parallel()
	for _, entry := range functions.Registry {
		if entry.Spec.Streams() {
			continue // ends when its gateway does
		}
		require.LessOrEqual(t, entry.Spec.Timeout, longest, entry.Name)
	}
	text, err := os.ReadFile("../../knative/gateway/gateway.yaml")
	require.NoError(t, err)
	text, _, _ = bytes.Cut(text, []byte("\n---\n"))
	var deployment struct {
		Spec struct {
			Template struct {
				Spec struct{ TerminationGracePeriodSeconds int }
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &deployment))
	grace := time.Duration(deployment.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
	require.Greater(t, grace, quiet+longest)
}

func TestWhatNoFunctionServesIsAProblem(t *testing.T) {
	t.Parallel()
	nobody := func(http.ResponseWriter, *http.Request) { t.Error("nobody was meant") }
	front := world(t, []route{{service: "a", pattern: "GET /things/{id}"}}, nobody)
	resp, text := do(t, "GET", front.URL+"/nowhere", "")
	require.Equal(t, 404, resp.StatusCode, text)
	resp, text = do(t, "PUT", front.URL+"/things/1", "")
	require.Equal(t, 405, resp.StatusCode, text)
	require.Equal(t, "GET, HEAD", resp.Header.Get("Allow"))
	require.Equal(t, problem.ContentType, resp.Header.Get("Content-Type"))
}

// TestACallKeepsItsTrace: a call without a trace gets one. The gateway sets the forwarding headers itself and does not
// trust the caller's.
func TestACallKeepsItsTrace(t *testing.T) {
	t.Parallel()
	front := world(t, []route{{service: "a", pattern: "GET /things"}}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Traceparent")+" "+r.Header.Get("X-Forwarded-For"))
	})
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for given, want := range map[string]string{parent: "^" + parent + " 127.0.0.1$", "": "^00-[0-9a-f]{32}-[0-9a-f]{16}-01 127.0.0.1$"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front.URL+"/things", nil)
		require.NoError(t, err)
		r.Header = http.Header{"Traceparent": {given}, "X-Forwarded-For": {"10.0.0.1"}}
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Regexp(t, want, string(text))
	}
}

// TestNobodyLeavesHTTPByTheGateway: a proxy in front of functions, such as Knative's activator, may offer an upgrade to
// another protocol. Requests in it would bypass the table.
func TestNobodyLeavesHTTPByTheGateway(t *testing.T) {
	t.Parallel()
	front := world(t, []route{{service: "a", pattern: "GET /things/{id}"}}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Upgrade")+r.Header.Get("Connection")+r.Header.Get("Http2-Settings"))
	})
	for _, protocol := range []string{"h2c", "websocket"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front.URL+"/things/1", nil)
		require.NoError(t, err)
		r.Header = http.Header{
			"Connection": {"Upgrade, HTTP2-Settings"}, "Upgrade": {protocol}, "Http2-Settings": {"AAMAAABkAARAAAAAAAIAAAAA"},
		}
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusOK, resp.StatusCode, "%s: %s", protocol, text)
		require.Empty(t, string(text))
	}
}

// TestFailuresOnTheWayAskForARepeat: errors of the network become 503; a function's own answers are passed on.
func TestFailuresOnTheWayAskForARepeat(t *testing.T) {
	t.Parallel()
	front := world(t, []route{{service: "a", pattern: "GET /{code}/{kind}"}}, func(w http.ResponseWriter, r *http.Request) {
		code, kind, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		switch kind {
		case "broken":
			panic(http.ErrAbortHandler)
		case "problem":
			problem.Write(w, problem.New(problem.Unavailable, "the store is away"), "")
		default:
			var status int
			_, _ = fmt.Sscan(code, &status)
			http.Error(w, "no healthy upstream", status)
		}
	})
	for path, want := range map[string]int{
		"/502/proxy": 503, "/503/proxy": 503, "/504/proxy": 503, "/0/broken": 503, "/0/problem": 503,
		"/500/own": 500, "/404/own": 404,
	} {
		resp, text := do(t, "GET", front.URL+path, "")
		require.Equal(t, want, resp.StatusCode, path)
		if want != 503 {
			continue
		}
		require.NotEmpty(t, resp.Header.Get("Retry-After"), path)
		var document problem.Document
		require.NoError(t, json.Unmarshal([]byte(text), &document), path)
		require.Equal(t, strings.HasSuffix(path, "problem"), document.Detail == "the store is away", path)
	}
}

// TestWhomACallWillNeedIsWokenWithIt: before the called function has begun to answer.
func TestWhomACallWillNeedIsWokenWithIt(t *testing.T) {
	t.Parallel()
	woken := make(chan string, 10)
	sleepers := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { woken <- r.URL.Path }))
	t.Cleanup(sleepers.Close)
	routes := []route{{service: "make", pattern: "POST /a", wakes: "place,deploy"}, {service: "show", pattern: "GET /a", wakes: "look"}}
	needs := map[string][]string{http.MethodPost: {"deploy", "place"}, http.MethodGet: {"look"}}
	behind := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var want, have []string
		for _, name := range needs[r.Method] {
			want = append(want, "/"+name+function.HealthPath)
			select {
			case path := <-woken:
				have = append(have, path)
			case <-time.After(10 * time.Second):
			}
		}
		slices.Sort(have)
		assert.Equal(t, want, have)
	}))
	t.Cleanup(behind.Close)
	waker := wake.New(wake.Config{
		On: true, Service: "gateway", Chain: chains(routes), URL: sleepers.URL + "/{name}", Every: time.Hour,
	}, slog.New(slog.DiscardHandler))
	host := func(service string) string { return service }
	h, err := newHandler(routes, to(t, behind, host, waker))
	require.NoError(t, err)
	front := httptest.NewServer(h)
	t.Cleanup(front.Close)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		resp, text := do(t, method, front.URL+"/a", "")
		require.Equal(t, http.StatusOK, resp.StatusCode, text)
	}
}

// TestCallsBeyondTheLimitAreAnsweredRetryAfter, and the others go on; the kubelet's probe is answered throughout.
func TestCallsBeyondTheLimitAreAnsweredRetryAfter(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	behind := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			entered <- struct{}{}
			<-release
		}
	}))
	t.Cleanup(behind.Close)
	o := to(t, behind, func(service string) string { return service }, nil)
	o.most = 1
	h, err := newHandler([]route{{service: "a", pattern: "GET /held"}, {service: "b", pattern: "GET /other"}}, o)
	require.NoError(t, err)
	front := httptest.NewServer(h)
	t.Cleanup(front.Close)
	held := make(chan int, 1)
	go func() {
		resp, err := http.Get(front.URL + "/held")
		if err != nil {
			held <- 0
			return
		}
		_ = resp.Body.Close()
		held <- resp.StatusCode
	}()
	<-entered
	resp, text := do(t, "GET", front.URL+"/other", "")
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode, text)
	require.NotEmpty(t, resp.Header.Get("Retry-After"))
	require.Equal(t, problem.ContentType, resp.Header.Get("Content-Type"))
	resp, text = do(t, "GET", front.URL+function.HealthPath, "")
	require.Equal(t, http.StatusOK, resp.StatusCode, text)
	close(release)
	require.Equal(t, http.StatusOK, <-held)
	resp, text = do(t, "GET", front.URL+"/other", "")
	require.Equal(t, http.StatusOK, resp.StatusCode, text)
}

func TestReadTables(t *testing.T) {
	t.Parallel()
	routes, err := readTables(fstest.MapFS{
		"a.txt": {Data: []byte("# comment\n\nissuer /oidc/ # all below\nmake POST /a > place,deploy # both\n" +
			"follow GET /s stream=9m0s/50\nsolve POST /p.S/M grpc stream=1m/5\n")},
		"b.md": {Data: []byte("no table")},
	})
	require.NoError(t, err)
	require.Equal(t, []route{
		{service: "issuer", pattern: "/oidc/"},
		{service: "make", pattern: "POST /a", wakes: "place,deploy"},
		{service: "follow", pattern: "GET /s", stream: 9 * time.Minute, atOnce: 50},
		{service: "solve", pattern: "POST /p.S/M", stream: time.Minute, atOnce: 5, grpc: true},
	}, routes)
	require.Equal(t, "make=place,deploy", chains(routes))
	_, err = readTables(fstest.MapFS{"a.txt": {Data: []byte("issuer\n")}})
	require.ErrorContains(t, err, "a.txt:1")
	_, err = readTables(fstest.MapFS{"a.txt": {Data: []byte("a GET /x fast\n")}})
	require.ErrorContains(t, err, "fast")
	_, err = readTables(fstest.MapFS{})
	require.Error(t, err)
	_, err = newHandler([]route{{service: "a", pattern: "GET /x"}, {service: "b", pattern: "GET /x"}}, options{
		host: func(s string) string { return s }, way: func(bool) http.RoundTripper { return nil },
	})
	require.ErrorContains(t, err, "GET /x")
}
