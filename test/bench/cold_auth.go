package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/littoral-project/littoral/infra/runner/issuer"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/auth/login"
	"github.com/littoral-project/littoral/shared/auth/session"
)

const (
	benchSessionKey = "a session key for benchmarks only"
	benchOrigin     = "http://127.0.0.1" // where raw requests say they are sent to
)

// signInCases are of the functions that sign people in. A code works once and these requests are sent many times, so the
// callback is that of a person who refused.
var signInCases = map[string]maker{
	"auth-login":    get("", "/auth/login"),
	"auth-provider": get("", "/auth/provider"),
	"auth-session":  get("viewer", "/auth/session"),
	"auth-callback": func(_ context.Context, s *scene) (ask, error) {
		_, begun, err := s.begin()
		if err != nil {
			return ask{}, err
		}
		to, err := url.Parse(begun.Header.Get("Location"))
		if err != nil {
			return ask{}, err
		}
		back := url.Values{"state": {to.Query().Get("state")}, "error": {"access_denied"}}
		return ask{method: http.MethodGet, path: login.CallbackPath + "?" + back.Encode(), header: cookies(begun)}, nil
	},
	"auth-refresh": signedIn("/auth/refresh"),
	"auth-logout":  signedIn("/auth/logout"),
}

// begin is a browser's first step.
func (s *scene) begin() (*login.Party, *http.Response, error) {
	w := s.system.world
	verifier := auth.NewVerifier(auth.Config{
		Issuer: w.oidc, Audience: audience, Session: session.Config{Key: benchSessionKey},
	}, http.DefaultClient, nil)
	party := login.New(login.Config{
		ClientID: issuer.Console, Secret: w.issuer.Credentials(issuer.Console).ClientSecret, Scopes: []string{"openid"},
	}, http.DefaultClient, verifier)
	r := httptest.NewRequest(http.MethodGet, benchOrigin+login.LoginPath, nil)
	begun := httptest.NewRecorder()
	err := party.Begin(begun, r, "")
	return party, begun.Result(), err
}

// signedIn makes a request by which a signed-in browser changes something.
func signedIn(path string) maker {
	return func(ctx context.Context, s *scene) (ask, error) {
		party, begun, err := s.begin()
		if err != nil {
			return ask{}, err
		}
		callback, err := s.typePassword(ctx, begun.Header.Get("Location"))
		if err != nil {
			return ask{}, err
		}
		r := httptest.NewRequest(http.MethodGet, callback, nil)
		r.Header = cookies(begun)
		finished := httptest.NewRecorder()
		if err := party.Finish(finished, r); err != nil {
			return ask{}, err
		}
		header := cookies(finished.Result())
		header.Set("Origin", benchOrigin)
		for _, c := range finished.Result().Cookies() {
			if c.Name == session.CSRFCookie {
				header.Set(session.CSRFHeader, c.Value)
			}
		}
		return ask{method: http.MethodPost, path: path, header: header}, nil
	}
}

// typePassword signs the viewer in at the issuer, and returns where he is sent.
func (s *scene) typePassword(ctx context.Context, authorize string) (string, error) {
	var page *url.URL
	client := &http.Client{CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		page = r.URL
		return http.ErrUseLastResponse
	}}
	send := func(method, address string, form url.Values) error {
		r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form.Encode()))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		return answer.Body.Close()
	}
	if err := send(http.MethodGet, authorize, nil); err != nil {
		return "", err
	}
	if page == nil {
		return "", errors.New("the issuer shows no login page")
	}
	err := send(http.MethodPost, page.String(), url.Values{
		"request": {page.Query().Get("request")}, "username": {"viewer"}, "password": {s.system.world.issuer.Password("viewer")},
	})
	return page.String(), err
}

// cookies is the header with which a browser sends the cookies of an answer back.
func cookies(answer *http.Response) http.Header {
	r := &http.Request{Header: http.Header{}}
	for _, c := range answer.Cookies() {
		r.AddCookie(c)
	}
	return r.Header
}
