package login_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// icosShell is the published client of the ICOS shell, call by call: its paths end in a slash where its generated code has
// one, a descriptor goes as JSON under "content", it stops with DELETE, and it sends a refresh token as api_key.
type icosShell struct {
	t    *testing.T
	base string
	key  string
}

func (c *icosShell) call(method, path, body string) (int, string, http.Header) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.base+"/api/v3"+path, strings.NewReader(body))
	require.NoError(c.t, err)
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "OpenAPI-Generator/1.0.0/go")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		r.Header["api_key"] = []string{c.key} // as it is spelled; a header's case says nothing
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(c.t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(c.t, err)
	return answer.StatusCode, string(text), answer.Header
}

func content(t *testing.T, name string) string {
	t.Helper()
	text, err := json.Marshal(map[string]string{"content": "name: " + name + `
components:
  - name: web
    type: kubernetes
    requirements: {cpu: 10m, memory: 16Mi}
    manifests: [{name: web, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: web}}}]
`})
	require.NoError(t, err)
	return string(text)
}

// refreshToken signs the user in and returns what the shell sends as api_key. A machine's token has none.
func refreshToken(t *testing.T, s *system, user string) string {
	t.Helper()
	b := newBrowser(t, s.URL)
	b.http.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == "/auth/callback" {
			return http.ErrUseLastResponse
		}
		return nil
	}
	// The code goes to the issuer here, as it would from any program with the client's secret.
	const verifier = "a verifier of at least forty-three characters, long enough"
	authorize := s.provider.url + "/authorize?" + url.Values{
		"client_id": {s.settings["LOGIN_CLIENT_ID"]}, "response_type": {"code"}, "redirect_uri": {s.URL + "/auth/callback"},
		"scope": {"openid"}, "state": {"state"}, "code_challenge_method": {"S256"}, "code_challenge": {challenge(verifier)},
	}.Encode()
	page, text := b.do(http.MethodGet, authorize, nil)
	answer, _ := b.password(s, page, text, user)
	to, err := url.Parse(answer.Header.Get("Location"))
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.provider.url+"/token", strings.NewReader(url.Values{
		"grant_type": {"authorization_code"}, "code": {to.Query().Get("code")}, "redirect_uri": {s.URL + "/auth/callback"},
		"code_verifier": {verifier},
	}.Encode()))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(url.QueryEscape(s.settings["LOGIN_CLIENT_ID"]), url.QueryEscape(s.settings["LOGIN_CLIENT_SECRET"]))
	tokens, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = tokens.Body.Close() }()
	var got struct {
		Refresh string `json:"refresh_token"`
	}
	require.NoError(t, json.NewDecoder(tokens.Body).Decode(&got))
	require.NotEmpty(t, got.Refresh)
	return got.Refresh
}

// TestThePublishedShell: every call of its client, word for word.
func TestThePublishedShell(t *testing.T) {
	t.Parallel()
	s := start(t, laptop)
	nobody := &icosShell{t: t, base: s.URL}
	viewer := &icosShell{t: t, base: s.URL, key: refreshToken(t, s, "viewer")}
	operator := &icosShell{t: t, base: s.URL, key: refreshToken(t, s, "operator")}
	admin := &icosShell{t: t, base: s.URL, key: refreshToken(t, s, "admin")}

	status, _, _ := nobody.call(http.MethodGet, "/healthcheck", "")
	require.Equal(t, http.StatusOK, status)

	// The lighthouse.
	status, text, _ := nobody.call(http.MethodGet, "/controller/", "")
	require.Equal(t, http.StatusNoContent, status, text)
	harbour := `{"name":"controller_1","address":"192.0.2.1"}`
	status, _, _ = nobody.call(http.MethodPost, "/controller/", harbour)
	require.Equal(t, http.StatusUnauthorized, status)
	status, _, _ = operator.call(http.MethodPost, "/controller/", harbour)
	require.Equal(t, http.StatusForbidden, status, "only a controller registers itself")
	status, text, _ = admin.call(http.MethodPost, "/controller/", harbour)
	require.Equal(t, http.StatusCreated, status, text)
	status, _, _ = admin.call(http.MethodPost, "/controller/", harbour)
	require.Equal(t, http.StatusAccepted, status)
	status, text, _ = nobody.call(http.MethodGet, "/controller/", "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, `"name":"controller_1","address":"192.0.2.1"`)
	for _, wrong := range []string{`{}`, `{"name":"a","address":"http://u:p@x"}`, `{"name":"a","address":"ftp://x"}`, `{"name":"a","address":"a b"}`} {
		status, text, _ = admin.call(http.MethodPost, "/controller/", wrong)
		require.Equal(t, http.StatusUnprocessableEntity, status, "%s: %s", wrong, text)
	}

	// Deployments.
	status, text, _ = viewer.call(http.MethodGet, "/deployment/", "")
	require.Equal(t, http.StatusNoContent, status, text)
	status, _, _ = nobody.call(http.MethodPost, "/deployment/", content(t, "shop"))
	require.Equal(t, http.StatusUnauthorized, status)
	status, _, _ = viewer.call(http.MethodPost, "/deployment/", content(t, "shop"))
	require.Equal(t, http.StatusForbidden, status)
	status, text, header := operator.call(http.MethodPost, "/deployment/", content(t, "shop"))
	require.Equal(t, http.StatusCreated, status, text)
	var app struct{ ID, Name string }
	require.NoError(t, json.Unmarshal([]byte(text), &app))
	require.Equal(t, "/api/v3/deployment/"+app.ID, header.Get("Location"))
	status, text, _ = viewer.call(http.MethodGet, "/deployment/", "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, app.ID)
	status, text, _ = viewer.call(http.MethodGet, "/deployment/"+app.ID, "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, `"shop"`)
	status, _, _ = viewer.call(http.MethodGet, "/deployment/1", "")
	require.Equal(t, http.StatusBadRequest, status)
	status, _, _ = viewer.call(http.MethodGet, "/deployment/0b7e5b0e-7d0e-4c55-9f0e-1f1d3a0f6c11", "")
	require.Equal(t, http.StatusNotFound, status)
	status, text, _ = operator.call(http.MethodPut, "/deployment/"+app.ID, strings.Replace(content(t, "shop"), "16Mi", "32Mi", 1))
	require.Equal(t, http.StatusOK, status, text)
	for _, step := range [][2]string{
		{http.MethodDelete, "/stop"}, {http.MethodPut, "/start"}, {http.MethodPut, "/stop"}, {http.MethodPost, "/start"},
	} {
		status, text, _ = operator.call(step[0], "/deployment/"+app.ID+step[1], "")
		require.Equal(t, http.StatusOK, status, "%s: %s", step, text)
	}
	status, text, _ = operator.call(http.MethodDelete, "/deployment/"+app.ID, "")
	require.Equal(t, http.StatusOK, status, text)
	for _, wrong := range []string{`{"content":7}`, `{"content":""}`, `{"content":"a: ["}`, `{"content":"name: x"}`} {
		status, text, _ = operator.call(http.MethodPost, "/deployment/", wrong)
		require.Contains(t, []int{http.StatusBadRequest, http.StatusUnprocessableEntity}, status, "%s: %s", wrong, text)
	}

	// The rest of the page.
	status, text, _ = viewer.call(http.MethodGet, "/resource/1", "")
	require.Equal(t, http.StatusNotFound, status, text)
	status, text, _ = nobody.call(http.MethodGet, "/user/login?username=viewer&password=secret", "")
	require.Equal(t, http.StatusNotImplemented, status)
	require.Contains(t, text, "SHELL_QUERY_LOGIN")
	for _, path := range []string{"/metrics/train", "/metrics/predict"} {
		status, text, _ = operator.call(http.MethodPost, path, "{}")
		require.Equal(t, http.StatusUnprocessableEntity, status, text)
	}
	status, text, _ = operator.call(http.MethodPost, "/metrics/train", `{"telemetry_metric":"up"}`)
	require.Equal(t, http.StatusAccepted, status, text)
	status, _, _ = viewer.call(http.MethodGet, "/user/logout", "")
	require.Equal(t, http.StatusOK, status)
	status, text, _ = viewer.call(http.MethodGet, "/deployment/", "")
	require.Equal(t, http.StatusUnauthorized, status, "the refresh token was revoked: %s", text)
	viewer.key = "guess"
	status, _, _ = viewer.call(http.MethodGet, "/deployment/", "")
	require.Equal(t, http.StatusUnauthorized, status)
}

// TestAPasswordInTheAddress: the documented login, where a site has turned it on and the issuer takes passwords, as dex does.
func TestAPasswordInTheAddress(t *testing.T) {
	t.Parallel()
	if os.Getenv("LITTORAL_DEX") == "" {
		t.Skip("the laptop's issuer takes no passwords from clients: make e2e-login tries dex")
	}
	s := start(t, func(t *testing.T, base string) provider {
		p := dex(t, base)
		p.settings["SHELL_QUERY_LOGIN"] = "true"
		return p
	})
	c := &icosShell{t: t, base: s.URL}
	status, text, header := c.call(http.MethodGet, "/user/login?"+url.Values{
		"username": {"operator@example.org"}, "password": {s.passwords["operator"]},
	}.Encode(), "")
	require.Equal(t, http.StatusOK, status, text)
	_, err := time.Parse(time.RFC3339, header.Get("X-Expires-After"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(text), &c.key))
	status, text, _ = c.call(http.MethodPost, "/deployment/", content(t, "shop"))
	require.Equal(t, http.StatusCreated, status, text)
	status, _, _ = c.call(http.MethodGet, "/user/login?username=operator@example.org&password=guess", "")
	require.Equal(t, http.StatusBadRequest, status)
}
