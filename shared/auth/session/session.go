// Package session carries the tokens of a signed-in browser in one cookie, which only Littoral can read.
//
// Nothing is stored on the server, since functions sleep: the cookie is encrypted and authenticated (AES-256-GCM) with a
// key that all functions share, holds the tokens themselves, and is checked like a token that is sent as a bearer. A
// second cookie, which scripts of our own pages can read, holds a random text that they send back as a header with
// everything that changes something: pages of others can read neither.
package session

import (
	"bytes"
	"compress/flate"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/littoral-project/littoral/shared/problem"
)

// Config is read from the environment by envconfig.
type Config struct {
	Key    string `envconfig:"SESSION_KEY"`        // a random text of 32 characters or more; empty = no cookies are taken
	Former string `envconfig:"SESSION_KEY_FORMER"` // accepted beside it while the key is being changed
	Public string `envconfig:"PUBLIC_URL"`         // where browsers find us; empty = where the request says it was sent
}

// The cookies, and the header that repeats the second one. With https their names begin with Secure, with which a
// browser takes them from this very host only.
const (
	Cookie     = "littoral_session"
	CSRFCookie = "littoral_csrf"
	CSRFHeader = "X-CSRF-Token"
	Secure     = "__Host-"
)

// Longest is how long a session may last, however often its tokens are refreshed.
const Longest = 24 * time.Hour

// mostOfCookie is what browsers keep of a cookie with its name and attributes, less some room for those.
const mostOfCookie = 4096 - 160

// shortestKey is the least length of a key, in characters.
const shortestKey = 32

// Session is what the cookie carries.
type Session struct {
	Access  string    `json:"a"`           // token, for the functions
	Refresh string    `json:"r,omitempty"` // token, for the issuer
	ID      string    `json:"i,omitempty"` // token, which tells the issuer whom to sign out
	CSRF    string    `json:"c"`           // what the header must repeat
	Began   time.Time `json:"b"`
}

// Sealer seals and opens sessions. A nil one opens none.
type Sealer struct {
	public    *url.URL
	now, then cipher.AEAD // then may be nil
}

// New returns a Sealer, nil when no key is set.
func New(c Config) (*Sealer, error) {
	if c.Key == "" {
		return nil, nil
	}
	s := &Sealer{}
	for _, one := range []struct {
		name, key string
		into      *cipher.AEAD
	}{{"SESSION_KEY", c.Key, &s.now}, {"SESSION_KEY_FORMER", c.Former, &s.then}} {
		if one.key == "" {
			continue
		}
		if len(one.key) < shortestKey {
			return nil, fmt.Errorf("%s has fewer than %d characters", one.name, shortestKey)
		}
		derived, err := hkdf.Key(sha256.New, []byte(one.key), nil, "littoral session v1", 32)
		if err != nil {
			return nil, err
		}
		block, err := aes.NewCipher(derived)
		if err != nil {
			return nil, err
		}
		if *one.into, err = cipher.NewGCM(block); err != nil {
			return nil, err
		}
	}
	if c.Public != "" {
		u, err := url.Parse(c.Public)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("PUBLIC_URL %q is not scheme://host", c.Public)
		}
		s.public = u
	}
	return s, nil
}

// Random returns 32 random bytes as text.
func Random() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(raw)
}

// Seal encrypts v for a purpose; Open takes it for that purpose only. Tokens are text of 64 characters, so packing them
// saves the quarter that decides whether they fit into a cookie.
func (s *Sealer) Seal(purpose string, v any) (string, error) {
	if s == nil {
		return "", problem.New(problem.NotFound, "nobody can sign in here: SESSION_KEY is not set")
	}
	plain, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		return "", err
	}
	_, _ = w.Write(plain) // into memory
	_ = w.Close()
	nonce := make([]byte, s.now.NonceSize())
	_, _ = rand.Read(nonce) // see Random
	return base64.RawURLEncoding.EncodeToString(s.now.Seal(nonce, nonce, packed.Bytes(), []byte(purpose))), nil
}

// errSealed says that a text is not one that this server sealed.
var errSealed = errors.New("was not sealed here")

// mostPlain bounds what a sealed text may unpack to.
const mostPlain = 64 << 10

// Open decrypts what Seal made, with the present key or the former one.
func (s *Sealer) Open(purpose, text string, into any) error {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if s == nil || err != nil {
		return errSealed
	}
	for _, key := range []cipher.AEAD{s.now, s.then} {
		if key == nil || len(raw) < key.NonceSize() {
			continue
		}
		packed, err := key.Open(nil, raw[:key.NonceSize()], raw[key.NonceSize():], []byte(purpose))
		if err != nil {
			continue
		}
		plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), mostPlain))
		if err != nil {
			return errSealed
		}
		return json.Unmarshal(plain, into)
	}
	return errSealed
}

const purpose = "session"

// Set gives the browser the session. An ID token that does not fit is left out: then the issuer asks whether to sign out.
func (s *Sealer) Set(w http.ResponseWriter, r *http.Request, it Session) error {
	sealed, err := s.Seal(purpose, it)
	if err == nil && len(sealed) > mostOfCookie && it.ID != "" {
		it.ID = ""
		sealed, err = s.Seal(purpose, it)
	}
	if err != nil {
		return err
	}
	if len(sealed) > mostOfCookie {
		return problem.New(problem.Forbidden, "the issuer's tokens do not fit into a cookie: it should put fewer claims into them")
	}
	left := time.Until(it.Began.Add(Longest))
	s.set(w, r, Cookie, sealed, left, true)
	s.set(w, r, CSRFCookie, it.CSRF, left, false)
	return nil
}

// Clear takes the session back.
func (s *Sealer) Clear(w http.ResponseWriter, r *http.Request) {
	s.set(w, r, Cookie, "", -1, true)
	s.set(w, r, CSRFCookie, "", -1, false)
}

func (s *Sealer) set(w http.ResponseWriter, r *http.Request, name, value string, lasts time.Duration, hidden bool) {
	age := int(lasts.Seconds())
	if lasts <= 0 {
		age = -1
	}
	secure := s.Origin(r).Scheme == "https"
	http.SetCookie(w, &http.Cookie{
		Name: nameOf(name, secure), Value: value, Path: "/", MaxAge: age, HttpOnly: hidden, Secure: secure,
		SameSite: http.SameSiteLaxMode,
	})
}

func nameOf(name string, secure bool) string {
	if secure {
		return Secure + name
	}
	return name
}

// Origin is where the browser believes to be: PUBLIC_URL, else what the request and the gateway before us say. No page
// of others can make a browser say otherwise.
func (s *Sealer) Origin(r *http.Request) *url.URL {
	if s != nil && s.public != nil {
		return &url.URL{Scheme: s.public.Scheme, Host: s.public.Host}
	}
	o := &url.URL{Scheme: "http", Host: r.Host}
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		o.Scheme = "https"
	}
	if host := r.Header.Get("X-Forwarded-Host"); host != "" {
		o.Host = host
	}
	return o
}

// Of returns the session that the request carries; ok is false when it carries none that can be opened.
func (s *Sealer) Of(r *http.Request) (it Session, ok bool) {
	if s == nil {
		return it, false
	}
	c, err := r.Cookie(nameOf(Cookie, s.Origin(r).Scheme == "https"))
	if err != nil || s.Open(purpose, c.Value, &it) != nil || time.Since(it.Began) > Longest {
		return Session{}, false
	}
	return it, true
}

// Check refuses a request that a page of others may have made the browser send: a browser sends cookies unasked. What
// only reads is not checked, since no page can read the answers of others. The error is Forbidden.
func (s *Sealer) Check(r *http.Request, it Session) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return nil
	}
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	own := s.Origin(r).String()
	switch {
	case site != "" && site != "same-origin":
		return problem.New(problem.Forbidden, "the page that sent this is not one of ours: it is %s", problem.Brief(site, 20))
	case origin != "" && origin != own:
		return problem.New(problem.Forbidden, "the page that sent this is of %s and not of %s", problem.Brief(origin, 100), own)
	case site == "" && origin == "":
		return problem.New(problem.Forbidden, "with a session cookie, a change needs the header Origin or Sec-Fetch-Site, as browsers send them")
	case it.CSRF == "" || subtle.ConstantTimeCompare([]byte(r.Header.Get(CSRFHeader)), []byte(it.CSRF)) != 1:
		return problem.New(problem.Forbidden, "with a session cookie, a change needs the header %s with the value of the cookie %s",
			CSRFHeader, CSRFCookie)
	}
	return nil
}
