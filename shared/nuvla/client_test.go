package nuvla_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	real "github.com/nuvla/api-client-go"
	"github.com/nuvla/api-client-go/clients/resources"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/nuvla"
	double "github.com/littoral-project/littoral/test/nuvla"
)

func open(t *testing.T) (*nuvla.Client, *double.Server) {
	t.Helper()
	s := double.Start(t)
	c, err := nuvla.New(s.URL, double.Key, double.Secret, nil)
	require.NoError(t, err)
	return c, s
}

type box struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

func signedIn(s *double.Server) (n int) {
	for _, call := range s.Calls() {
		if call == "POST /api/session" {
			n++
		}
	}
	return n
}

func TestASessionIsKeptAndRenewed(t *testing.T) {
	t.Parallel()
	c, s := open(t)
	s.AddEdge("one")
	read := func() {
		t.Helper()
		boxes, err := nuvla.List[box](t.Context(), c, "nuvlabox", nuvla.Query{})
		require.NoError(t, err)
		require.Len(t, boxes, 1)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { _, _ = nuvla.List[box](context.WithoutCancel(t.Context()), c, "nuvlabox", nuvla.Query{}) })
	}
	all.Wait()
	read()
	require.Equal(t, 1, signedIn(s), "calls at the same time sign in once")
	s.Sessions(time.Hour) // and all have ended
	read()
	require.Equal(t, 2, signedIn(s))
	s.Sessions(0)
	_, err := nuvla.List[box](t.Context(), c, "nuvlabox", nuvla.Query{})
	require.True(t, nuvla.IsStatus(err, http.StatusForbidden), "%v", err)
	require.Equal(t, 3, signedIn(s), "a session that does not last is no reason to try for ever")
}

func TestAWrongKeyIsSaidOnce(t *testing.T) {
	t.Parallel()
	s := double.Start(t)
	c, err := nuvla.New(s.URL, double.Key, "another", nil)
	require.NoError(t, err)
	require.ErrorContains(t, c.Get(t.Context(), "nuvlabox/x", nil), "Nuvla answers 403: invalid credentials for 'credential/")
	require.Equal(t, 1, signedIn(s))
}

func TestTooManyCallsWait(t *testing.T) {
	t.Parallel()
	c, s := open(t)
	s.AddEdge("one")
	s.Fail(double.Fault{Call: "GET /api/nuvlabox", Status: http.StatusTooManyRequests, Times: 2, Header: http.Header{"Retry-After": {"0"}}})
	boxes, err := nuvla.List[box](t.Context(), c, "nuvlabox", nuvla.Query{})
	require.NoError(t, err)
	require.Len(t, boxes, 1)

	s.Fail(double.Fault{Call: "GET /api/nuvlabox", Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"5"}}})
	short, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	_, err = nuvla.List[box](short, c, "nuvlabox", nuvla.Query{})
	require.True(t, nuvla.IsStatus(err, http.StatusTooManyRequests), "it does not wait for longer than there is time: %v", err)
	require.NoError(t, short.Err())
}

func TestAGatewaysErrorIsReadToo(t *testing.T) {
	t.Parallel()
	c, s := open(t)
	s.Fail(double.Fault{Call: "GET", Status: http.StatusBadGateway, Shape: true})
	_, err := nuvla.List[box](t.Context(), c, "nuvlabox", nuvla.Query{})
	require.EqualError(t, err, "Nuvla answers 502: on demand")
}

func TestSearchReadsAllPages(t *testing.T) {
	t.Parallel()
	c, s := open(t)
	const n = 450
	for range n {
		s.AddEdge("same")
	}
	boxes, err := nuvla.List[box](t.Context(), c, "nuvlabox", nuvla.Query{Select: "name"})
	require.NoError(t, err)
	require.Len(t, boxes, n)
	boxes, err = nuvla.List[box](t.Context(), c, "nuvlabox", nuvla.Query{Most: 3})
	require.NoError(t, err)
	require.Len(t, boxes, 3)
}

// TestAValueDoesNotWidenASearch: "x' or id!='" as a name would find everything.
func TestAValueDoesNotWidenASearch(t *testing.T) {
	t.Parallel()
	c, s := open(t)
	for _, name := range []string{"one", "it's", "x' or id!='", `say "x"`} {
		s.AddEdge(name)
		filter, err := nuvla.Equal("name", name)
		require.NoError(t, err)
		boxes, err := nuvla.List[box](t.Context(), c, "nuvlabox", nuvla.Query{Filter: filter})
		require.NoError(t, err)
		require.Len(t, boxes, 1)
		require.Equal(t, name, boxes[0].Name)
	}
	for _, name := range []string{`both ' and "`, `x\`, "x\n"} {
		_, err := nuvla.Equal("name", name)
		require.Error(t, err)
	}
	_, err := nuvla.List[box](t.Context(), c, "nuvlabox", nuvla.Query{Filter: "name='one"})
	require.True(t, nuvla.IsStatus(err, http.StatusBadRequest))
	require.ErrorContains(t, err, "Invalid CIMI filter.")
}

// TestThePublishedClient: what Nuvla's own client for Go does with the double.
func TestThePublishedClient(t *testing.T) {
	t.Parallel()
	s := double.StartTLS(t) // its cookie is for TLS only
	edge := s.AddEdge("one", double.Docker)
	c := real.NewNuvlaClientFromOpts(nil, real.WithEndpoint(s.URL), real.WithInsecureSession(true), real.WithoutPersistCookie)
	require.NoError(t, c.LoginApiKeys(double.Key, double.Secret))
	got, err := c.Get(t.Context(), edge, nil)
	require.NoError(t, err)
	require.Equal(t, "one", got.Data["name"])
	found, err := c.Search(t.Context(), "nuvlabox", &real.SearchOptions{Filter: "name^='o' and online=true", First: 1, Last: 10})
	require.NoError(t, err)
	require.Equal(t, 1, found.Count)
	_, err = c.Add(t.Context(), "module", map[string]any{"name": "p", "path": "p", "subtype": "project"})
	require.NoError(t, err)
	id, err := c.Add(t.Context(), "module", map[string]any{
		"name": "m", "path": "p/m", "subtype": "application",
		"content": map[string]any{"author": "me", "commit": "first", "docker-compose": "services: {web: {image: x}}"},
	})
	require.NoError(t, err)
	made, err := c.Add(t.Context(), resources.DeploymentType, map[string]any{"module": map[string]any{"href": id.String()}})
	require.NoError(t, err)
	res, err := c.Edit(t.Context(), made.String(), map[string]any{"parent": s.Of("credential")[0]["id"]}, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode)
	res, err = c.Operation(t.Context(), made.String(), "start", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, res.StatusCode)
	res, err = c.Operation(t.Context(), made.String(), "update", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusConflict, res.StatusCode, "it is not STARTED yet")
	s.Work()
	s.Work()
	got, err = c.Get(t.Context(), made.String(), nil)
	require.NoError(t, err)
	require.Equal(t, "STARTED", got.Data["state"])
	require.Len(t, s.Running("one"), 1)
	require.True(t, strings.HasPrefix(made.String(), "deployment/"))
}
