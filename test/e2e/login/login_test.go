// Package login_test signs people in, by a browser and by a device, at two issuers: the laptop's own, and dex, which
// "make e2e-login" builds. What holds for one must hold for the other.
package login_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/auth/session"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/settings"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/inprocess"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// provider is an issuer under test.
type provider struct {
	url       string
	settings  map[string]string // that a site with this issuer has
	config    auth.Config
	endsToo   bool // it has an end_session endpoint
	passwords map[string]string
}

const sessionKey = "0123456789abcdef0123456789abcdef"

// system is the functions with an issuer.
type system struct {
	*httptest.Server
	provider
}

// start serves the functions at a listener whose address the issuer was told before.
func start(t *testing.T, make func(t *testing.T, base string) provider) *system {
	t.Helper()
	var inner http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { inner.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	p := make(t, server.URL)
	p.config.Session.Key = sessionKey
	inner = functionsFor(t, p)
	return &system{server, p}
}

func functionsFor(t *testing.T, p provider) http.Handler {
	t.Helper()
	require.NoError(t, p.config.Check())
	routes, _, err := inprocess.Mount(function.Platform{
		DB: storetest.New(t), Auth: auth.NewVerifier(p.config, http.DefaultClient, nil),
		Settings: settings.Map(p.settings).Or(settings.Map(map[string]string{
			"RULES_BACKEND": "files", "RULES_DIR": t.TempDir(), "OBJECTS_URL": "file://" + t.TempDir(),
		})),
	})
	require.NoError(t, err)
	return routes
}

// browser keeps cookies and follows redirects, as a browser does; it sends the headers that one sends.
type browser struct {
	t    *testing.T
	http *http.Client
	base string
}

func newBrowser(t *testing.T, base string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	return &browser{t, &http.Client{Jar: jar, Timeout: 20 * time.Second}, base}
}

func (b *browser) do(method, address string, form url.Values, headers ...string) (*http.Response, string) {
	b.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(b.t.Context(), method, address, body)
	require.NoError(b.t, err)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := b.http.Do(r)
	require.NoError(b.t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(b.t, err)
	return answer, string(text)
}

// cookie is the value of a cookie at Littoral.
func (b *browser) cookie(name string) string {
	u, err := url.Parse(b.base)
	require.NoError(b.t, err)
	for _, c := range b.http.Jar.Cookies(u) {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

// own are the headers of a page of ours that changes something.
func (b *browser) own() []string {
	return []string{"Origin", b.base, "Sec-Fetch-Site", "same-origin", session.CSRFHeader, b.cookie(session.CSRFCookie)}
}

// fill submits the form on a page, with what a person types into fields of these names.
func (b *browser) fill(page *http.Response, text string, typed map[string]string) (*http.Response, string) {
	b.t.Helper()
	root, err := html.Parse(strings.NewReader(text))
	require.NoError(b.t, err)
	var form *html.Node
	values := url.Values{}
	attribute := func(n *html.Node, name string) string {
		for _, a := range n.Attr {
			if a.Key == name {
				return a.Val
			}
		}
		return ""
	}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch {
		case n.Data == "form" && form == nil:
			form = n
		case n.Data == "input" && attribute(n, "name") != "":
			values.Set(attribute(n, "name"), attribute(n, "value"))
		}
	}
	require.NotNil(b.t, form, "no form on %s: %s", page.Request.URL, text)
	for name, value := range typed {
		values.Set(name, value)
	}
	to, err := page.Request.URL.Parse(attribute(form, "action"))
	require.NoError(b.t, err)
	return b.do(http.MethodPost, to.String(), values, "Origin", page.Request.URL.Scheme+"://"+page.Request.URL.Host)
}

// signIn signs a person in and returns where the browser ends up.
func (b *browser) signIn(s *system, user, back string) *http.Response {
	b.t.Helper()
	page, text := b.do(http.MethodGet, s.URL+"/auth/login?return="+url.QueryEscape(back), nil)
	require.Equal(b.t, http.StatusOK, page.StatusCode, text)
	page, text = b.password(s, page, text, user)
	require.NotContains(b.t, text, "no longer valid")
	return page
}

func (b *browser) password(s *system, page *http.Response, text, user string) (*http.Response, string) {
	b.t.Helper()
	name, password := "username", "password"
	if strings.Contains(text, `name="login"`) { // dex
		name = "login"
		user += "@example.org"
	}
	return b.fill(page, text, map[string]string{name: user, password: s.passwords[strings.TrimSuffix(user, "@example.org")]})
}

// who is what Littoral says of the browser.
func (b *browser) who(headers ...string) (w struct {
	SignedIn, Cookie     bool
	Subject, Name, Login string
	Roles                []string
	Expires              time.Time
	Refused              string
},
) {
	b.t.Helper()
	answer, text := b.do(http.MethodGet, b.base+"/auth/session", nil, headers...)
	require.Equal(b.t, http.StatusOK, answer.StatusCode, text)
	require.NoError(b.t, json.Unmarshal([]byte(text), &w))
	return w
}

// everywhere runs a test at each issuer that is here.
func everywhere(t *testing.T, test func(t *testing.T, s *system)) {
	t.Helper()
	t.Parallel()
	t.Run("the laptop's issuer", func(t *testing.T) {
		t.Parallel()
		test(t, start(t, laptop))
	})
	t.Run("dex", func(t *testing.T) {
		t.Parallel()
		test(t, start(t, dex))
	})
}

func TestSignIn(t *testing.T) {
	everywhere(t, func(t *testing.T, s *system) {
		for _, user := range []string{"viewer", "operator", "admin"} {
			b := newBrowser(t, s.URL)
			require.False(t, b.who().SignedIn)
			require.Equal(t, "/auth/login", b.who().Login)

			page := b.signIn(s, user, "/console/#/events")
			require.Equal(t, "/console/", page.Request.URL.Path, "it goes on where it wanted to")
			who := b.who()
			require.True(t, who.SignedIn && who.Cookie, "%+v", who)
			require.Equal(t, []string{user}, who.Roles)
			require.Equal(t, user, who.Name)
			require.WithinDuration(t, time.Now(), who.Expires, 25*time.Hour)

			answer, text := b.do(http.MethodGet, s.URL+"/jobmanager/groups", nil)
			require.Equal(t, http.StatusOK, answer.StatusCode, text)
			answer, text = b.do(http.MethodPost, s.URL+"/jobmanager/groups", url.Values{"a": {"b"}}, b.own()...)
			if user == "viewer" {
				require.Equal(t, http.StatusForbidden, answer.StatusCode, text)
				require.Contains(t, text, "operator")
			} else {
				require.Equal(t, http.StatusUnprocessableEntity, answer.StatusCode, "past all checks: %s", text)
			}
		}
	})
}

// TestTheSessionCannotBeRead: by a script, or by anybody who sees the cookie.
func TestTheSessionCannotBeRead(t *testing.T) {
	everywhere(t, func(t *testing.T, s *system) {
		b := newBrowser(t, s.URL)
		var set []*http.Cookie
		b.http.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
			if r.Response != nil {
				set = append(set, r.Response.Cookies()...)
			}
			return nil
		}
		b.signIn(s, "admin", "/console/")
		var found *http.Cookie
		for _, c := range set {
			if c.Name == session.Cookie {
				found = c
			}
		}
		require.NotNil(t, found)
		require.True(t, found.HttpOnly)
		require.Equal(t, http.SameSiteLaxMode, found.SameSite)
		require.False(t, found.Secure, "there is no https here")
		require.NotContains(t, found.Value, "eyJ", "no JSON web token in the clear")
		require.LessOrEqual(t, len(found.Value), 3936)
	})
}

func TestAPageOfOthersChangesNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, s *system) {
		b := newBrowser(t, s.URL)
		b.signIn(s, "admin", "/console/")
		token := b.cookie(session.CSRFCookie)
		for name, headers := range map[string][]string{
			"a form of another site":            {"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"},
			"another site that has the token":   {"Origin", "https://evil.example", session.CSRFHeader, token},
			"another origin of the same site":   {"Origin", s.URL, "Sec-Fetch-Site", "same-site", session.CSRFHeader, token},
			"a sandboxed page":                  {"Origin", "null", session.CSRFHeader, token},
			"a page without the token":          {"Origin", s.URL, "Sec-Fetch-Site", "same-origin"},
			"a page with a token of its own":    {"Origin", s.URL, "Sec-Fetch-Site", "same-origin", session.CSRFHeader, "guess"},
			"a request that no browser sent":    {session.CSRFHeader, token},
			"an address that was only followed": {"Origin", s.URL, "Sec-Fetch-Site", "none", session.CSRFHeader, token},
		} {
			for _, route := range []string{"/jobmanager/groups", "/auth/refresh", "/auth/logout"} {
				answer, text := b.do(http.MethodPost, s.URL+route, url.Values{}, headers...)
				require.Equal(t, http.StatusForbidden, answer.StatusCode, "%s %s: %s", name, route, text)
			}
		}
		require.True(t, b.who().SignedIn, "still")
	})
}

func TestASessionIsRefreshedWithoutAVisit(t *testing.T) {
	everywhere(t, func(t *testing.T, s *system) {
		b := newBrowser(t, s.URL)
		b.signIn(s, "operator", "/console/")
		before := b.cookie(session.Cookie)
		for range 2 {
			answer, text := b.do(http.MethodPost, s.URL+"/auth/refresh", url.Values{}, b.own()...)
			require.Equal(t, http.StatusNoContent, answer.StatusCode, text)
			require.NotEqual(t, before, b.cookie(session.Cookie))
			require.Equal(t, []string{"operator"}, b.who().Roles)
			before = b.cookie(session.Cookie)
		}
	})
}

func TestSignOut(t *testing.T) {
	everywhere(t, func(t *testing.T, s *system) {
		b := newBrowser(t, s.URL)
		b.signIn(s, "viewer", "/console/")
		answer, text := b.do(http.MethodPost, s.URL+"/auth/logout", url.Values{}, b.own()...)
		require.Equal(t, http.StatusOK, answer.StatusCode, text)
		require.False(t, b.who().SignedIn)
		require.Empty(t, b.cookie(session.Cookie))
		var left struct{ Location string }
		require.NoError(t, json.Unmarshal([]byte(text), &left))
		if !s.endsToo {
			require.Equal(t, "/console/", left.Location)
			return
		}
		page, text := b.do(http.MethodGet, left.Location, nil)
		require.Equal(t, "/console/", page.Request.URL.Path, text)
		page, _ = b.do(http.MethodGet, s.URL+"/auth/login", nil)
		require.NotEqual(t, "/console/", page.Request.URL.Path, "the issuer asks for a password again")
	})
}

// TestACallbackIsOfThisBrowser: nobody can make a browser use a code of his own, or one twice.
func TestACallbackIsOfThisBrowser(t *testing.T) {
	everywhere(t, func(t *testing.T, s *system) {
		mine, other := newBrowser(t, s.URL), newBrowser(t, s.URL)
		var callback string
		mine.http.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
			if r.URL.Path == "/auth/callback" {
				callback = r.URL.String()
				return http.ErrUseLastResponse
			}
			return nil
		}
		mine.signIn(s, "admin", "/console/")
		require.NotEmpty(t, callback)
		answer, text := other.do(http.MethodGet, callback, nil)
		require.Equal(t, http.StatusForbidden, answer.StatusCode, text)
		require.False(t, other.who().SignedIn)

		for name, change := range map[string]func(url.Values){
			"another state":  func(q url.Values) { q.Set("state", q.Get("state")[:8]+"-changed") },
			"no state":       func(q url.Values) { q.Del("state") },
			"another issuer": func(q url.Values) { q.Set("iss", "https://evil.example") },
			"another code":   func(q url.Values) { q.Set("code", "guess") },
		} {
			fresh := newBrowser(t, s.URL)
			fresh.http.Jar = mine.http.Jar
			u, err := url.Parse(callback)
			require.NoError(t, err)
			q := u.Query()
			change(q)
			u.RawQuery = q.Encode()
			answer, text := fresh.do(http.MethodGet, u.String(), nil)
			require.GreaterOrEqual(t, answer.StatusCode, 400, "%s: %s", name, text)
			require.Less(t, answer.StatusCode, 500, "%s: %s", name, text)
			require.False(t, fresh.who().SignedIn, name)
		}
	})
}

func TestWhereABrowserGoesOnIsOurs(t *testing.T) {
	t.Parallel()
	s := start(t, laptop)
	for _, back := range []string{"https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "console", "/a\nb"} {
		b := newBrowser(t, s.URL)
		page := b.signIn(s, "viewer", back)
		require.Equal(t, s.URL+"/console/", page.Request.URL.String(), back)
	}
}

// TestTheKeyCanBeChanged: sessions of the former key are read, and sealed anew with the present one.
func TestTheKeyCanBeChanged(t *testing.T) {
	t.Parallel()
	var inner http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { inner.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	p := laptop(t, server.URL)
	p.config.Session.Key = sessionKey
	inner = functionsFor(t, p)
	s := &system{server, p}
	b := newBrowser(t, s.URL)
	b.signIn(s, "viewer", "/console/")

	const next = "ffffffffffffffffffffffffffffffff"
	p.config.Session.Key, p.config.Session.Former = next, sessionKey
	inner = functionsFor(t, p)
	require.True(t, b.who().SignedIn)
	answer, text := b.do(http.MethodPost, s.URL+"/auth/refresh", url.Values{}, b.own()...)
	require.Equal(t, http.StatusNoContent, answer.StatusCode, text)

	p.config.Session.Former = ""
	inner = functionsFor(t, p)
	require.True(t, b.who().SignedIn)

	p.config.Session.Key = "another key of thirty-two letters"
	inner = functionsFor(t, p)
	require.False(t, b.who().SignedIn)
	answer, _ = b.do(http.MethodGet, s.URL+"/jobmanager/groups", nil)
	require.Equal(t, http.StatusUnauthorized, answer.StatusCode)
}

// TestBehindHTTPS: PUBLIC_URL says so, the cookie is for this host alone and never goes over plain HTTP.
func TestBehindHTTPS(t *testing.T) {
	t.Parallel()
	sealer, err := session.New(session.Config{Key: sessionKey, Public: "https://littoral.example"})
	require.NoError(t, err)
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "http://function/", nil)
	require.NoError(t, sealer.Set(w, r, session.Session{Access: "a", CSRF: "c", Began: time.Now()}))
	cookies := w.Result().Cookies()
	require.Len(t, cookies, 2)
	for _, c := range cookies {
		require.True(t, c.Secure)
		require.True(t, strings.HasPrefix(c.Name, "__Host-"), c.Name)
		require.Equal(t, "/", c.Path)
		require.Empty(t, c.Domain)
		r.AddCookie(c)
	}
	got, ok := sealer.Of(r)
	require.True(t, ok)
	require.Equal(t, "a", got.Access)

	plain := httptest.NewRequest(http.MethodGet, "http://function/", nil)
	plain.AddCookie(&http.Cookie{Name: session.Cookie, Value: cookies[0].Value})
	_, ok = sealer.Of(plain)
	require.False(t, ok, "another host of the domain may have set one without the prefix")
}
