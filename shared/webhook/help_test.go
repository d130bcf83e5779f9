package webhook

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/auth/authtest"
	"github.com/littoral-project/littoral/shared/credentials"
	"github.com/littoral-project/littoral/shared/problem"
)

// fill inserts the port into a vector, and replaces doubled percent signs by single ones.
func fill(vector, port string) string {
	return strings.ReplaceAll(strings.ReplaceAll(vector, "%s", port), "%%", "%")
}

// answerWithLoopback answers one DNS query over TCP with 127.0.0.1, whatever it is about.
func answerWithLoopback(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	for {
		var length uint16
		if binary.Read(conn, binary.BigEndian, &length) != nil {
			return
		}
		query := make([]byte, length)
		if _, err := io.ReadFull(conn, query); err != nil || len(query) < 12 {
			return
		}
		end := 12
		for end < len(query) && query[end] != 0 {
			end += int(query[end]) + 1
		}
		end += 5 // the root label, type and class
		if end > len(query) {
			return
		}
		answer := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0}, query[12:end]...)
		answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 127, 0, 0, 1)
		framed := binary.BigEndian.AppendUint16(nil, uint16(len(answer))) // a few dozen bytes
		if _, err := conn.Write(append(framed, answer...)); err != nil {
			return
		}
	}
}

func TestCallsCarryWhatTheirMethodCarries(t *testing.T) {
	t.Parallel()
	type seen struct{ method, query, body, id string }
	got := make(chan seen, 1)
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- seen{r.Method, r.URL.RawQuery, string(body), r.Header.Get("Idempotency-Key")}
	}))
	t.Cleanup(target.Close)
	c, err := New(Config{Timeout: 5 * time.Second, Allow: []string{"127.0.0.0/8"}}, http.DefaultClient)
	require.NoError(t, err)
	for _, method := range Methods {
		require.NoError(t, c.Do(t.Context(), Call{
			Method: method, URL: target.URL + "/hook?k=v#part", ID: "v-1", Body: map[string]any{"policyName": "p"},
			Query: map[string]string{"subject.appName": "a b"},
		}))
		want := seen{method, "k=v", `{"policyName":"p"}`, "v-1"}
		if method == http.MethodGet {
			want = seen{method, "k=v&subject.appName=a+b", "", "v-1"}
		}
		require.Equal(t, want, <-got)
	}
	err = c.Do(t.Context(), Call{Method: http.MethodPatch, URL: target.URL})
	require.Equal(t, problem.Forbidden, problem.KindOf(err))
}

func TestCallsAreBounded(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(slow.Close)
	t.Cleanup(func() { close(release) })
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}))
	t.Cleanup(endless.Close)
	c, err := New(Config{Timeout: 200 * time.Millisecond, Allow: []string{"127.0.0.1"}}, http.DefaultClient)
	require.NoError(t, err)
	require.Equal(t, problem.Unavailable, problem.KindOf(c.Do(t.Context(), Call{Method: "POST", URL: slow.URL})))
	require.NoError(t, c.Do(t.Context(), Call{Method: "POST", URL: endless.URL}), "no more of it is read than needed")
}

// TestErrorsNameTheHostAlone: they appear in the log and in traces, and the rest of a URL may be a secret.
func TestErrorsNameTheHostAlone(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	failing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(failing.Close)
	for _, allow := range []string{"127.0.0.1", ""} {
		c, err := New(Config{Timeout: time.Second, Allow: []string{"localhost", allow}}, http.DefaultClient)
		require.NoError(t, err)
		for _, at := range []string{gone.URL, failing.URL, strings.Replace(gone.URL, "127.0.0.1", "localhost", 1)} {
			for _, path := range []string{"/services/s3cret?key=s3cret", "/%7f/s3cret", "/%zz/s3cret"} {
				err = c.Do(t.Context(), Call{Method: "POST", URL: at + path})
				require.Error(t, err)
				require.NotContains(t, err.Error(), "s3cret")
			}
		}
	}
}

// issue starts an issuer that returns the same token for every request, and returns the credentials for it.
func issue(t *testing.T, token string, asked *url.Values) credentials.Config {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		*asked = r.PostForm
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": 300})
	}))
	t.Cleanup(s.Close)
	return credentials.Config{ClientID: "policymanager", ClientSecret: "s", TokenURL: s.URL}
}

// authorized starts a target and returns the Authorization header of each call.
func authorized(t *testing.T) (target *httptest.Server, by <-chan string) {
	t.Helper()
	got := make(chan string, 1)
	target = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("Authorization")
	}))
	t.Cleanup(target.Close)
	return target, got
}

// TestTokens: an access token is fetched with client credentials, for the audience of the target, and only if
// requested.
func TestTokens(t *testing.T) {
	t.Parallel()
	var asked url.Values
	client := issue(t, "secret-1", &asked)
	target, got := authorized(t)
	c, err := New(Config{Timeout: 5 * time.Second, Allow: []string{"127.0.0.1"}, Config: client}, http.DefaultClient)
	require.NoError(t, err)
	require.NoError(t, c.Do(t.Context(), Call{Method: "POST", URL: target.URL}))
	require.Empty(t, <-got)
	require.NoError(t, c.Do(t.Context(), Call{Method: "POST", URL: target.URL, Token: true}))
	require.Equal(t, "Bearer secret-1", <-got)
	require.Equal(t, "client_credentials", asked.Get("grant_type"))
	require.Equal(t, target.URL, asked.Get("audience"))
	without, err := New(Config{Timeout: time.Second}, http.DefaultClient)
	require.NoError(t, err)
	err = without.Do(t.Context(), Call{Method: "POST", URL: target.URL, Token: true})
	require.Equal(t, problem.Unavailable, problem.KindOf(err), "no token, no call")
}

// TestTokens_forLittoralItself: an issuer that ignores the parameter audience gives the same token for every target.
// With it a stranger could use the rights of the policy manager here.
func TestTokens_forLittoralItself(t *testing.T) {
	t.Parallel()
	key := authtest.NewKey(t)
	for name, row := range map[string]struct {
		audience any
		allow    string // besides the test's own network
		want     bool
	}{
		"for the target":                          {"https://hooks.example.com", "", true},
		"for nobody in particular":                {nil, "", true},
		"for Littoral":                            {"littoral", "", false},
		"for Littoral among others":               {[]string{"account", "littoral"}, "", false},
		"for Littoral, to a host that is trusted": {"littoral", "localhost", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			token := authtest.Sign(t, key, "k1", map[string]any{"sub": "policymanager", "roles": []string{"operator"}},
				map[string]any{"aud": row.audience})
			target, got := authorized(t)
			c, err := New(Config{
				Timeout: 5 * time.Second, Allow: []string{"127.0.0.0/8", "::1", row.allow}, Audience: "littoral",
				Config: issue(t, token, new(url.Values)),
			}, http.DefaultClient)
			require.NoError(t, err)
			err = c.Do(t.Context(), Call{
				Method: "POST", URL: strings.Replace(target.URL, "127.0.0.1", "localhost", 1), Token: true,
			})
			if row.want {
				require.NoError(t, err)
				require.Equal(t, "Bearer "+token, <-got)
				return
			}
			require.Equal(t, problem.Forbidden, problem.KindOf(err), "%v", err)
			require.NotContains(t, err.Error(), token)
			require.Empty(t, got, "nobody was called")
		})
	}
}
