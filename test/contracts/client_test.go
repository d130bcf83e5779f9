package contracts_test

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/sse"
	"github.com/littoral-project/littoral/test/inprocess"
)

// client calls the API as one caller.
type client struct {
	base  string
	token string // "" sends none
}

// answer is the response to a request.
type answer struct {
	status int
	header http.Header
	body   []byte
	trace  string // of the request
	what   string // the request, for messages
}

// call sends a request in its own trace. header alternates names and values.
func (c client) call(t testing.TB, method, path, body string, header ...string) *answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, c.base+path, strings.NewReader(body))
	require.NoError(t, err)
	trace := newTrace()
	r.Header.Set("Traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	a := &answer{status: resp.StatusCode, header: resp.Header, trace: trace, what: method + " " + path}
	if a.header.Get("Content-Type") == sse.Type {
		return a // it goes on for minutes
	}
	a.body, err = io.ReadAll(resp.Body)
	require.NoError(t, err)
	return a
}

// send is call with body as JSON.
func (c client) send(t testing.TB, method, path string, body any) *answer {
	t.Helper()
	text, err := json.Marshal(body)
	require.NoError(t, err)
	return c.call(t, method, path, string(text), "Content-Type", "application/json")
}

// get is call for a resource that must exist.
func (c client) get(t testing.TB, path string) *answer {
	t.Helper()
	return c.call(t, http.MethodGet, path, "").is(t, http.StatusOK)
}

func newTrace() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// is requires the status.
func (a *answer) is(t testing.TB, status int) *answer {
	t.Helper()
	require.Equal(t, status, a.status, "%s: %s", a.what, a.body)
	return a
}

// refused requires the status and an RFC 9457 document with the caller's trace id, and returns the document.
func (a *answer) refused(t testing.TB, status int) problem.Document {
	t.Helper()
	a.is(t, status)
	require.Equal(t, problem.ContentType, a.header.Get("Content-Type"), a.what)
	var keys map[string]any
	require.NoError(t, json.Unmarshal(a.body, &keys), "%s: %s", a.what, a.body)
	var d problem.Document
	require.NoError(t, json.Unmarshal(a.body, &d))
	require.True(t, strings.HasPrefix(d.Type, "https://littoral.dev/problems/"), d.Type)
	require.Equal(t, http.StatusText(status), d.Title)
	require.Equal(t, status, d.Status)
	require.NotEmpty(t, d.Detail)
	require.Equal(t, a.trace, d.TraceID, a.what)
	switch status {
	case http.StatusUnauthorized:
		require.Contains(t, a.header.Get("WWW-Authenticate"), "Bearer", a.what)
	case http.StatusServiceUnavailable:
		require.NotEmpty(t, a.header.Get("Retry-After"), a.what)
	case http.StatusMethodNotAllowed:
		require.NotEmpty(t, a.header.Get("Allow"), a.what)
	}
	return d
}

// fields requires a 422 and returns the paths of its faults.
func (a *answer) fields(t testing.TB) []string {
	t.Helper()
	var paths []string
	for _, f := range a.refused(t, http.StatusUnprocessableEntity).Errors {
		require.NotEmpty(t, f.Detail)
		paths = append(paths, f.Path)
	}
	return paths
}

// decode reads the JSON of an answer.
func decode[T any](t testing.TB, a *answer) T {
	t.Helper()
	require.Equal(t, "application/json", a.header.Get("Content-Type"), a.what)
	var v T
	require.NoError(t, json.Unmarshal(a.body, &v), "%s: %s", a.what, a.body)
	return v
}

// world is a running system with a client for each kind of caller.
type world struct {
	*inprocess.System
	nobody, viewer, operator client
	hub, edge, spare         client // agents with tokens bound to hubAgent, edgeAgent and spareAgent
	anyAgent                 client // its token is bound to no agent id
}

// The agents of the world's two clusters, and one without a cluster.
const (
	hubAgent   = "agent-hub"
	edgeAgent  = "agent-edge"
	spareAgent = "agent-spare"
)

// newWorld starts a system on the infrastructure of inprocess.Topology.
func newWorld(t testing.TB) *world {
	t.Helper()
	s := inprocess.StartWith(t, settings.Map(given))
	s.SaveTopology(inprocess.Topology(time.Now()))
	w := &world{System: s, nobody: client{base: s.URL}}
	w.viewer, w.operator, w.anyAgent = w.as(auth.Viewer), w.as(auth.Operator), w.as(auth.Agent)
	w.hub, w.edge = w.agent(t, hubAgent), w.agent(t, edgeAgent)
	w.spare = w.agent(t, spareAgent)
	t.Cleanup(func() { w.emitOnlyWhatIsDeclared(t) })
	return w
}

func (w *world) as(role auth.Role) client { return client{base: w.URL, token: w.Token(role)} }

// agent returns a client whose token is bound to the agent id.
func (w *world) agent(t testing.TB, id string) client {
	t.Helper()
	return client{base: w.URL, token: w.Issuer.TokenWith(t, inprocess.Claims{
		"sub": id, "roles": []string{string(auth.Agent)}, "icos_agent_id": id,
	})}
}

// emitOnlyWhatIsDeclared requires for every event of the test that its producer declares the type.
func (w *world) emitOnlyWhatIsDeclared(t testing.TB) {
	t.Helper()
	declared := map[string][]string{}
	for _, entry := range functions.Registry {
		declared["/functions/"+entry.Name] = entry.Spec.Emits
	}
	for _, e := range w.Broker.Accepted() {
		if types, ours := declared[e.Source()]; ours || e.Source() != "/littoral" { // the test itself
			require.Contains(t, types, e.Type(), "%s emits what it does not declare", e.Source())
		}
	}
}
