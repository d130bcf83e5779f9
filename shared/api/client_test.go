package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/api"
	"github.com/littoral-project/littoral/shared/loopback"
	"github.com/littoral-project/littoral/shared/problem"
)

// transport answers requests without a network, so that time can be simulated.
type transport func(*http.Request) *http.Response

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	resp := f(r)
	resp.Request = r
	return resp, nil
}

func answer(status int, media, body string, header ...string) *http.Response {
	h := http.Header{"Content-Type": {media}}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{
		StatusCode: status, Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), Header: h,
		Body: io.NopCloser(strings.NewReader(body)),
	}
}

func client(f transport) *api.Client {
	return &api.Client{Base: "http://littoral.test/", HTTP: &http.Client{Transport: f}}
}

const unavailable = `{"type":"https://littoral.dev/problems/unavailable","status":503,"detail":"the store is away"}`

func TestIdempotentCallsAreRepeatedWhileTheServerAsksForIt(t *testing.T) {
	t.Parallel()
	get := func(ctx context.Context, c *api.Client) error { _, err := c.Application(ctx, "x"); return err }
	for name, row := range map[string]struct {
		call   func(context.Context, *api.Client) error
		refuse int // times
		sent   int
		took   time.Duration
		fails  bool
	}{
		"a GET comes back after the time that the server names": {
			get, 2, 3, 6 * time.Second, false,
		},
		"it gives up in the end": {
			get, 99, 5, 12 * time.Second, true,
		},
		"a POST with an Idempotency-Key may be repeated": {
			func(ctx context.Context, c *api.Client) error {
				_, err := c.CreateApplication(ctx, nil, "k", false)
				return err
			}, 1, 2, 3 * time.Second, false,
		},
		"a POST without one may not": {
			func(ctx context.Context, c *api.Client) error {
				_, err := c.CreateApplication(ctx, nil, "", false)
				return err
			}, 1, 1, 0, true,
		},
		"nor may a DELETE, whose repeat means another thing": {
			func(ctx context.Context, c *api.Client) error {
				_, _, err := c.DeleteApplication(ctx, "x", true)
				return err
			}, 1, 1, 0, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sent := 0
				c := client(func(*http.Request) *http.Response {
					if sent++; sent <= row.refuse {
						return answer(503, problem.ContentType, unavailable, "Retry-After", "3")
					}
					return answer(200, "application/json", `{}`)
				})
				begun := time.Now()
				err := row.call(t.Context(), c)
				require.Equal(t, row.fails, err != nil, "%v", err)
				require.Equal(t, row.sent, sent)
				require.Equal(t, row.took, time.Since(begun))
			})
		})
	}
}

func TestACallerWhoGivesUpIsToldWhatTheServerSaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c := client(func(*http.Request) *http.Response {
			return answer(503, problem.ContentType, unavailable, "Retry-After", "3600")
		})
		_, err := c.Application(ctx, "x")
		require.ErrorContains(t, err, "the store is away")
	})
}

func TestEveryPageIsRead(t *testing.T) {
	t.Parallel()
	var asked []string
	c := client(func(r *http.Request) *http.Response {
		asked = append(asked, r.URL.RequestURI())
		switch r.URL.Query().Get("cursor") {
		case "":
			return answer(200, "application/json", `[{"id":"1"},{"id":"2"}]`,
				"Link", `</other?x=1>; rel="prev", </jobmanager/jobs?cursor=a%2Bb>; rel="next"`)
		case "a+b":
			return answer(200, "application/json", `[{"id":"3"}]`, "Link", `<http://elsewhere.test/jobs?cursor=c>; rel=next`)
		}
		return answer(200, "application/json", `[]`)
	})
	jobs, err := c.Jobs(t.Context(), api.Filter{State: "Created"})
	require.NoError(t, err)
	require.Len(t, jobs, 3)
	require.Equal(t, []string{
		"/jobmanager/jobs?state=Created", "/jobmanager/jobs?cursor=a%2Bb&state=Created",
		"/jobmanager/jobs?cursor=c&state=Created",
	}, asked, "the token never goes where a link points, only where the base is")
}

// TestTheNewestOfHistoryAreReadInAsManyAnswersAsItTakes: entries may be large, so one answer may not contain all of
// them.
func TestTheNewestOfHistoryAreReadInAsManyAnswersAsItTakes(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int][]string{
		2: {"/jobmanager/history?app=a&limit=2"},
		5: {"/jobmanager/history?app=a&limit=5", "/jobmanager/history?app=a&before=8&limit=3"},
		9: {
			"/jobmanager/history?app=a&limit=9", "/jobmanager/history?app=a&before=8&limit=7",
			"/jobmanager/history?app=a&before=5&limit=4",
		},
	} {
		var asked []string
		c := client(func(r *http.Request) *http.Response {
			asked = append(asked, r.URL.RequestURI())
			switch r.URL.Query().Get("before") {
			case "":
				return answer(200, "application/json", `[{"id":8},{"id":9}]`, "Link", `</prefix/jobmanager/history?before=8>; rel="prev"`)
			case "8":
				return answer(200, "application/json", `[{"id":5},{"id":6},{"id":7}]`, "Link", `</jobmanager/history?before=5>; rel="prev"`)
			}
			return answer(200, "application/json", `[{"id":4}]`)
		})
		entries, err := c.History(t.Context(), api.HistoryQuery{App: "a", After: -1, Limit: limit})
		require.NoError(t, err)
		require.Equal(t, want, asked)
		require.Len(t, entries, min(2+3*(len(want)-1), 6))
		for i, e := range entries {
			require.Equal(t, int64(10-len(entries)+i), e.ID, "oldest first")
		}
	}
}

func TestRefusalsBecomeProblems(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		response *http.Response
		kind     problem.Kind
		text     string
		trace    string
	}{
		"a problem keeps its fields and its trace": {
			answer(422, problem.ContentType, `{"type":"https://littoral.dev/problems/invalid","status":422,"detail":"bad",`+
				`"traceId":"t1","errors":[{"path":"name","line":3,"detail":"is missing"}]}`),
			problem.Invalid, "bad: name (line 3): is missing", "t1",
		},
		"a proxy's page is known by its status": {
			answer(413, "text/html", "<html>"), problem.TooLarge, "the server answered 413 Request Entity Too Large", "",
		},
		"a proxy that cannot reach the server may do so soon": {
			answer(502, "text/html", "<html>"), problem.Unavailable, "the server answered 502 Bad Gateway", "",
		},
		"so may one whose patience was too short": {
			answer(504, "text/html", "<html>"), problem.Unavailable, "the server answered 504 Gateway Timeout", "",
		},
		"a bare 404 does not say that there is no such application": {
			answer(404, "text/plain", "404 page not found"), problem.Internal,
			"the server answered 404 Not Found, but not as Littoral does: it is another server, or something in front of " +
				"Littoral answered", "",
		},
		"a 404 of ours does": {
			answer(404, problem.ContentType, `{"type":"https://littoral.dev/problems/not-found","status":404,"detail":"none"}`),
			problem.NotFound, "none", "",
		},
		"a broken problem document too": {
			answer(409, problem.ContentType, "{"), problem.Conflict, "the server answered 409 Conflict", "",
		},
		"a problem of another type": {
			answer(403, problem.ContentType, `{"type":"about:blank","title":"No","status":403}`), problem.Forbidden, "No", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := client(func(*http.Request) *http.Response { return row.response }).Application(t.Context(), "x")
			var refused *api.Error
			require.ErrorAs(t, err, &refused)
			require.Equal(t, row.kind, problem.KindOf(err))
			require.EqualError(t, err, row.text)
			require.Equal(t, row.trace, refused.TraceID)
		})
	}
}

func TestAnAnswerThatIsNotOursIsAnError(t *testing.T) {
	t.Parallel()
	c := client(func(*http.Request) *http.Response { return answer(200, "text/html", "<html>") })
	_, err := c.Application(t.Context(), "x")
	require.ErrorContains(t, err, "is not what Littoral gives")
}

// TestAChangeIsNotRedirectedToARead: net/http would send a GET and take its answer for that of the change.
func TestAChangeIsNotRedirectedToARead(t *testing.T) {
	t.Parallel()
	var reached []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		reached = append(reached, r.Method+" "+r.URL.String()+" "+string(body))
		_, _ = io.WriteString(w, `{"id": "a b"}`)
	}))
	t.Cleanup(server.Close)
	for status, changes := range map[int]bool{301: true, 302: true, 303: true, 307: false, 308: false} {
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, server.URL+r.URL.String(), status)
		}))
		t.Cleanup(front.Close)
		c := &api.Client{Base: front.URL, HTTP: front.Client()} // other tests close idle connections of the shared one
		for call, do := range map[string]func() error{
			"POST /jobmanager/groups x": func() error {
				_, err := c.CreateApplication(t.Context(), []byte("x"), "key", false)
				return err
			},
			"PUT /jobmanager/groups/a%20b x": func() error {
				_, err := c.UpdateApplication(t.Context(), "a b", []byte("x"), false)
				return err
			},
			"DELETE /jobmanager/groups/a%20b?stop=true ": func() error {
				_, _, err := c.DeleteApplication(t.Context(), "a b", true)
				return err
			},
		} {
			reached = nil
			err := do()
			if !changes {
				require.NoError(t, err, "%d %s", status, call)
				require.Equal(t, []string{call}, reached)
				continue
			}
			var moved *api.Moved
			require.ErrorAs(t, err, &moved, "%d %s", status, call)
			require.Equal(t, server.URL, moved.To)
			require.Empty(t, reached)
		}
		_, err := c.Application(t.Context(), "a b")
		require.NoError(t, err, "what only reads may be redirected")
	}
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	address, err := loopback.Free(t.Context())
	require.NoError(t, err)
	base := "http://" + address.String()
	_, err = (&api.Client{Base: base}).Application(t.Context(), "x")
	var away *api.Unreachable
	require.ErrorAs(t, err, &away)
	require.ErrorContains(t, err, "no server answers at "+base)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = (&api.Client{Base: base}).Application(ctx, "x")
	require.ErrorIs(t, err, context.Canceled)
}

func TestTokens(t *testing.T) {
	t.Parallel()
	var sent string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Get("Authorization")
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("first\n"), 0o600))
	c := &api.Client{Base: server.URL, Token: api.TokenFile(file)}
	_, err := c.Application(t.Context(), "x")
	require.NoError(t, err)
	require.Equal(t, "Bearer first", sent)

	require.NoError(t, os.WriteFile(file, []byte("second\n"), 0o600))
	_, err = c.Application(t.Context(), "x")
	require.NoError(t, err)
	require.Equal(t, "Bearer second", sent, "a renewed token is used at once")

	require.NoError(t, os.Remove(file))
	_, err = c.Application(t.Context(), "x")
	require.True(t, errors.Is(err, os.ErrNotExist), "%v", err)

	c.Token = nil
	_, err = c.Application(t.Context(), "x")
	require.NoError(t, err)
	require.Empty(t, sent)
}

func FuzzLinks(f *testing.F) {
	f.Add(`</a?cursor=b>; rel="next"`)
	f.Add(`<`)
	f.Add(`>;rel=next,<%zz>;rel=next`)
	f.Fuzz(func(t *testing.T, link string) {
		calls := 0
		c := client(func(*http.Request) *http.Response {
			if calls++; calls > 1 {
				return answer(200, "application/json", `[]`)
			}
			resp := answer(200, "application/json", `[]`)
			resp.Header["Link"] = []string{link}
			return resp
		})
		_, err := c.Jobs(t.Context(), api.Filter{})
		require.NoError(t, err)
	})
}
