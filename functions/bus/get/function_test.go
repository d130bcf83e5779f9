package get_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/functions/bus/delete"
	"github.com/littoral-project/littoral/functions/bus/get"
	"github.com/littoral-project/littoral/functions/bus/put"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/bus/zenohrest"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/sse"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/inprocess"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// router is the three functions behind one address, as a gateway has them.
type router struct {
	url    string
	token  string
	tokens bus.Tokens
}

func newRouter(t *testing.T) *router {
	t.Helper()
	issuer := inprocess.NewIssuer(t)
	platform := function.Platform{
		DB: storetest.New(t), Auth: issuer.Verifier(), Settings: settings.Map(map[string]string{"BUS_TOKEN_KEY": "key"}),
	}
	mux := http.NewServeMux()
	for _, entry := range []function.Entry{
		function.NewEntry("bus-get", get.Spec, get.New), function.NewEntry("bus-put", put.Spec, put.New),
		function.NewEntry("bus-delete", delete.Spec, delete.New),
	} {
		h, err := entry.Handler(platform.Env(entry.Name))
		require.NoError(t, err)
		for _, pattern := range entry.Spec.Patterns() {
			mux.Handle(pattern, h)
		}
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return &router{s.URL, issuer.Token(t, auth.Operator), bus.Tokens{Key: "key"}}
}

func (r *router) call(t *testing.T, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	answer := r.open(t.Context(), t, method, path, body, header...)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer, string(text)
}

func (r *router) open(ctx context.Context, t *testing.T, method, path, body string, header ...string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, r.url+path, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+r.token)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	return answer
}

func elements(t *testing.T, text string) map[string]string {
	t.Helper()
	var list []zenohrest.Element
	require.NoError(t, json.Unmarshal([]byte(text), &list), text)
	found := map[string]string{}
	for _, e := range list {
		_, known := e.Time()
		require.True(t, known, e.Timestamp)
		found[e.Key] = string(e.Value)
	}
	require.Len(t, found, len(list))
	return found
}

// TestTheFormsOfZenohsRestPlugin: contracts/zenoh-compss.md, section 1.
func TestTheFormsOfZenohsRestPlugin(t *testing.T) {
	t.Parallel()
	r := newRouter(t)
	for key, row := range map[string][2]string{
		"a/json": {"application/json", `{"x": 1}`}, "a/text": {"text/plain; charset=utf-8", "hello"}, "a/broken": {"application/json", "{"},
		"a/none": {"", "\x00\x01"}, "a/empty": {"text/plain", ""}, "b%20c": {"zenoh/string", "<b>"},
	} {
		answer, body := r.call(t, http.MethodPut, "/bus/"+key, row[1], "Content-Type", row[0])
		require.Equal(t, http.StatusOK, answer.StatusCode, body)
		require.Empty(t, body)
	}
	answer, body := r.call(t, http.MethodGet, "/bus/**", "")
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Equal(t, "application/json", answer.Header.Get("Content-Type"))
	all := elements(t, body)
	require.JSONEq(t, `{"x":1}`, all["a/json"])
	delete := func(key string) { r.call(t, http.MethodDelete, "/bus/"+key, "") }
	require.Equal(t, map[string]string{
		"a/json": all["a/json"], "a/text": `"hello"`, "a/broken": `"ew=="`, "a/none": `"AAE="`, "a/empty": "null", "b c": `"\u003cb\u003e"`,
	}, all)
	_, body = r.call(t, http.MethodPost, "/bus/a/t$*?anything;else=1", "a payload")
	require.Equal(t, map[string]string{"a/text": `"hello"`}, elements(t, body))

	answer, body = r.call(t, http.MethodGet, "/bus/a/text?_raw", "")
	require.Equal(t, "hello", body)
	require.Equal(t, "text/plain; charset=utf-8", answer.Header.Get("Content-Type"))
	require.Contains(t, answer.Header.Get("Content-Security-Policy"), "sandbox", "a value that is a page must not act as one of ours")
	_, body = r.call(t, http.MethodGet, "/bus/nothing?_raw", "")
	require.Empty(t, body)
	answer, body = r.call(t, http.MethodGet, "/bus/b%20c", "", "Accept", "text/html, */*")
	require.Equal(t, "text/html; charset=utf-8", answer.Header.Get("Content-Type"))
	require.Contains(t, body, "<dt>b c</dt>")
	require.NotContains(t, body, "<b>")

	delete("a/json")
	answer, body = r.call(t, http.MethodGet, "/bus/a/json", "")
	require.Equal(t, http.StatusOK, answer.StatusCode, "no match is no 404")
	require.Empty(t, elements(t, body))

	for _, path := range []string{"/bus/", "/bus/a/**/*", "/bus/a%23", "/bus/a*", "/bus/a%00", "/bus/a?_time=[now(-1h)..]"} {
		answer, _ := r.call(t, http.MethodGet, path, "")
		require.Equal(t, http.StatusBadRequest, answer.StatusCode, path)
	}
	for _, path := range []string{"/bus/", "/bus/a/*", "/bus/a%3Fb"} {
		for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodDelete} {
			answer, _ := r.call(t, method, path, "x")
			require.Equal(t, http.StatusBadRequest, answer.StatusCode, method+" "+path)
		}
	}
	answer, _ = r.call(t, http.MethodPut, "/bus/a", strings.Repeat("x", bus.MaxPayload+1))
	require.Equal(t, http.StatusRequestEntityTooLarge, answer.StatusCode)
}

func TestASubscription(t *testing.T) {
	t.Parallel()
	r := newRouter(t)
	r.call(t, http.MethodPut, "/bus/shop/web", "1", "Content-Type", "application/json")
	enough := errors.New("enough")
	read := func(n int, during func(), header ...string) (got []sse.Event) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		answer := r.open(ctx, t, http.MethodGet, "/bus/shop/*", "", append(header, "Accept", sse.Type)...)
		defer answer.Body.Close()
		require.Equal(t, sse.Type, answer.Header.Get("Content-Type"))
		err := sse.Read(answer.Body, func(e sse.Event) error {
			if got = append(got, e); len(got) == 1 && during != nil {
				during()
			}
			if len(got) == n {
				return enough
			}
			return nil
		})
		require.ErrorIs(t, err, enough)
		return got
	}
	got := read(2, func() { r.call(t, http.MethodDelete, "/bus/shop/web", "") })
	require.Equal(t, zenohrest.EventPut, got[0].Name)
	require.Equal(t, zenohrest.EventDelete, got[1].Name)
	var e zenohrest.Element
	require.NoError(t, json.Unmarshal([]byte(got[0].Data), &e))
	require.Equal(t, "shop/web", e.Key)
	require.Equal(t, "1", string(e.Value))
	require.Equal(t, got[1:], read(1, nil, "Last-Event-ID", got[0].ID))
	require.Equal(t, zenohrest.EventAnew, read(1, nil, "Last-Event-ID", "1000000")[0].Name)
}

func TestAnApplicationsTokenReadsItsOwnKeys(t *testing.T) {
	t.Parallel()
	r := newRouter(t)
	r.call(t, http.MethodPut, "/bus/shop/web", "1")
	for path, status := range map[string]int{"/bus/shop/web": 200, "/bus/shop/**": 200, "/bus/**": 403, "/bus/other/web": 403} {
		answer, body := r.call(t, http.MethodGet, path, "", "Authorization", "Bearer "+r.tokens.For("shop"))
		require.Equal(t, status, answer.StatusCode, path+body)
	}
	answer, _ := r.call(t, http.MethodPut, "/bus/shop/web", "2", "Authorization", "Bearer "+r.tokens.For("shop"))
	require.Equal(t, http.StatusUnauthorized, answer.StatusCode, "it only reads")
	answer, _ = r.call(t, http.MethodGet, "/bus/shop/web", "", "Authorization", "Bearer "+bus.Tokens{Key: "x"}.For("shop"))
	require.Equal(t, http.StatusUnauthorized, answer.StatusCode)
}
