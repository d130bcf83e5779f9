package issuer_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zitadel/oidc/v3/pkg/client"

	"github.com/littoral-project/littoral/infra/runner/issuer"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/problem"
)

const audience = "littoral"

// serve starts an issuer with its key in dir, at the path where the laptop host mounts it.
func serve(t *testing.T, dir string, now func() time.Time) (*issuer.Issuer, string) {
	t.Helper()
	mux := http.NewServeMux()
	host := httptest.NewServer(mux)
	t.Cleanup(host.Close)
	at := host.URL + "/oidc"
	i, err := issuer.New(issuer.Options{
		URL: at, Dir: dir, Audience: audience, Now: now,
		Clients: append(issuer.People(), issuer.AgentClient("nuvlabox/0f3a")),
	})
	require.NoError(t, err)
	mux.Handle("/oidc/", i.Handler())
	return i, at
}

func verifier(at string) *auth.Verifier {
	return auth.NewVerifier(auth.Config{Issuer: at, Audience: audience}, http.DefaultClient, nil)
}

func TestTokensOfEveryClientVerify(t *testing.T) {
	t.Parallel()
	i, at := serve(t, t.TempDir(), nil)
	v := verifier(at)

	for name, row := range map[string]struct {
		client string
		want   auth.Principal
	}{
		"the admin":              {"admin", auth.Principal{Subject: "admin", Roles: []auth.Role{auth.Admin}}},
		"an operator":            {"operator", auth.Principal{Subject: "operator", Roles: []auth.Role{auth.Operator}}},
		"a viewer":               {"viewer", auth.Principal{Subject: "viewer", Roles: []auth.Role{auth.Viewer}}},
		"an agent bound to none": {"agent", auth.Principal{Subject: "agent", Roles: []auth.Role{auth.Agent}}},
		"an agent bound to its id, which holds a slash": {"agent:nuvlabox/0f3a", auth.Principal{
			Subject: "agent:nuvlabox/0f3a", Roles: []auth.Role{auth.Agent}, AgentID: "nuvlabox/0f3a",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made, expires, err := i.Token(t.Context(), row.client)
			require.NoError(t, err)
			require.WithinDuration(t, time.Now().Add(time.Hour), expires, time.Minute)
			got, err := v.Verify(t.Context(), made)
			require.NoError(t, err)
			require.Equal(t, row.want, got)

			fetched, err := i.Credentials(row.client).Token(t.Context())
			require.NoError(t, err, "the same by client_credentials over HTTP")
			require.WithinDuration(t, time.Now().Add(time.Hour), fetched.Expiry, time.Minute)
			got, err = v.Verify(t.Context(), fetched.AccessToken)
			require.NoError(t, err)
			require.Equal(t, row.want, got)
		})
	}
}

func TestATokenForAnotherServiceIsOfNoUseHere(t *testing.T) {
	t.Parallel()
	i, at := serve(t, t.TempDir(), nil)
	config := i.Credentials("operator")
	config.EndpointParams = url.Values{"audience": {"elsewhere"}}
	token, err := config.Token(t.Context())
	require.NoError(t, err)

	_, err = verifier(at).Verify(t.Context(), token.AccessToken)
	require.ErrorContains(t, err, "another audience")
	there := auth.NewVerifier(auth.Config{Issuer: at, Audience: "elsewhere"}, http.DefaultClient, nil)
	_, err = there.Verify(t.Context(), token.AccessToken)
	require.NoError(t, err)
}

func TestTokensAreRefused(t *testing.T) {
	t.Parallel()
	i, at := serve(t, t.TempDir(), nil)
	token, _, err := i.Token(t.Context(), "admin")
	require.NoError(t, err)
	other, otherAt := serve(t, t.TempDir(), nil)
	foreign, _, err := other.Token(t.Context(), "admin")
	require.NoError(t, err)
	old, oldAt := serve(t, t.TempDir(), func() time.Time { return time.Now().Add(-issuer.Lifetime - time.Minute) })
	expired, _, err := old.Token(t.Context(), "admin")
	require.NoError(t, err)
	impostor, err := issuer.New(issuer.Options{URL: at, Dir: t.TempDir(), Audience: audience, Clients: issuer.People()})
	require.NoError(t, err)
	forged, _, err := impostor.Token(t.Context(), "admin")
	require.NoError(t, err)

	for name, row := range map[string]struct {
		config auth.Config
		token  string
		why    string
	}{
		"an hour later":                {auth.Config{Issuer: oldAt, Audience: audience}, expired, "expired"},
		"meant for someone else":       {auth.Config{Issuer: at, Audience: "another"}, token, "another audience"},
		"of another issuer":            {auth.Config{Issuer: at, Audience: audience}, foreign, "another issuer"},
		"at another issuer's door":     {auth.Config{Issuer: otherAt, Audience: audience}, token, "another issuer"},
		"signed with a key of its own": {auth.Config{Issuer: at, Audience: audience}, forged, "signature"},
		"cut short":                    {auth.Config{Issuer: at, Audience: audience}, token[:len(token)-9], "signature"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := auth.NewVerifier(row.config, http.DefaultClient, nil).Verify(t.Context(), row.token)
			require.ErrorContains(t, err, row.why)
			require.Equal(t, problem.Unauthenticated, problem.KindOf(err))
		})
	}
}

func TestKeySurvivesRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	options := issuer.Options{URL: "http://127.0.0.1:1/oidc", Dir: dir, Audience: audience, Clients: issuer.People()}
	before, err := issuer.New(options)
	require.NoError(t, err)
	token, _, err := before.Token(t.Context(), "viewer")
	require.NoError(t, err)

	after, err := issuer.New(options)
	require.NoError(t, err)
	keys := httptest.NewServer(after.Handler())
	t.Cleanup(keys.Close)
	c := auth.Config{Issuer: options.URL, Audience: audience, JWKSURL: keys.URL + "/oidc/keys"}
	got, err := auth.NewVerifier(c, http.DefaultClient, nil).Verify(t.Context(), token)
	require.NoError(t, err)
	require.Equal(t, "viewer", got.Subject)
	require.Equal(t, before.Credentials("viewer").ClientSecret, after.Credentials("viewer").ClientSecret)

	info, err := os.Stat(filepath.Join(dir, "signing-key.pem"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestTokenEndpointRefusals(t *testing.T) {
	t.Parallel()
	i, at := serve(t, t.TempDir(), nil)
	secret := i.Credentials("viewer").ClientSecret

	for name, row := range map[string]struct {
		method string
		form   url.Values
		status int
		says   string
	}{
		"a wrong secret":    {"POST", grant("viewer", "guess"), 401, "invalid_client"},
		"no secret":         {"POST", grant("viewer", ""), 401, "invalid_client"},
		"someone's secret":  {"POST", grant("admin", secret), 401, "invalid_client"},
		"an unknown client": {"POST", grant("nobody", i.Credentials("nobody").ClientSecret), 401, "invalid_client"},
		"no grant type":     {"POST", url.Values{"client_id": {"viewer"}, "client_secret": {secret}}, 400, "invalid_request"},
		"a grant that needs a login": {"POST", url.Values{
			"grant_type": {"authorization_code"}, "client_id": {"viewer"}, "client_secret": {secret},
		}, 400, "unauthorized_client"},
		"a secret in the query": {"GET", grant("viewer", secret), 405, "takes POST"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target, body := at+"/token", strings.NewReader(row.form.Encode())
			if row.method == http.MethodGet {
				target, body = target+"?"+row.form.Encode(), strings.NewReader("")
			}
			status, text := send(t, row.method, target, body)
			require.Equal(t, row.status, status, text)
			require.Contains(t, text, row.says)
		})
	}
}

// TestNoWebPageIsAClient: the package of the protocol lets pages of every origin read its answers, unless told otherwise.
func TestNoWebPageIsAClient(t *testing.T) {
	t.Parallel()
	i, at := serve(t, t.TempDir(), nil)
	for method, body := range map[string]string{
		http.MethodPost: grant("viewer", i.Credentials("viewer").ClientSecret).Encode(), http.MethodOptions: "",
	} {
		r, err := http.NewRequestWithContext(t.Context(), method, at+"/token", strings.NewReader(body))
		require.NoError(t, err)
		r.Header = http.Header{
			"Content-Type": {"application/x-www-form-urlencoded"},
			"Origin":       {"http://page.example"}, "Access-Control-Request-Method": {http.MethodPost},
		}
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		for name := range answer.Header {
			require.NotContains(t, name, "Access-Control", method)
		}
	}
}

func grant(id, secret string) url.Values {
	return url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}}
}

func send(t *testing.T, method, target string, body *strings.Reader) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, target, body)
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { require.NoError(t, answer.Body.Close()) }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(text)
}

func TestDiscoveryIsWhatClientsExpect(t *testing.T) {
	t.Parallel()
	_, at := serve(t, t.TempDir(), nil)
	found, err := client.Discover(t.Context(), at, http.DefaultClient)
	require.NoError(t, err)
	require.Equal(t, at, found.Issuer)
	require.Equal(t, at+"/keys", found.JwksURI)
	require.Equal(t, at+"/token", found.TokenEndpoint)
	require.Equal(t, at+"/authorize", found.AuthorizationEndpoint)
	require.Equal(t, at+"/device_authorization", found.DeviceAuthorizationEndpoint)
	require.Equal(t, at+"/end_session", found.EndSessionEndpoint)
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	twice := append(issuer.People(), issuer.AgentClient("a"), issuer.AgentClient("a"))
	broken := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(broken, "signing-key.pem"), []byte("not a key"), 0o600))

	for name, row := range map[string]struct {
		options issuer.Options
		says    string
	}{
		"a URL without a host":  {issuer.Options{URL: "oidc"}, "host"},
		"a client named twice":  {issuer.Options{URL: "http://a/oidc", Clients: twice}, "twice"},
		"a file that is no key": {issuer.Options{URL: "http://a/oidc", Dir: broken}, "remove it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if row.options.Dir == "" {
				row.options.Dir = t.TempDir()
			}
			_, err := issuer.New(row.options)
			require.ErrorContains(t, err, row.says)
		})
	}
}
