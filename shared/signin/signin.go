// Package signin gets access tokens for somebody at a terminal, keeps them in a file that only he can read, and renews
// them: by a code typed into a browser on any machine (device flow, RFC 8628), by a browser on this machine (authorization
// code with PKCE to a loopback address, RFC 8252), or as a machine (client credentials).
package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// Client says which issuer to ask, and as whom.
type Client struct {
	Issuer   string   `json:"issuer"`
	ID       string   `json:"clientId"`
	Secret   string   `json:"clientSecret,omitempty"` // of a machine
	Scopes   []string `json:"scopes,omitempty"`
	Audience string   `json:"audience,omitempty"` // that a machine asks for
}

// Login is what is kept for one server.
type Login struct {
	Client

	Access  string    `json:"accessToken"`
	Refresh string    `json:"refreshToken,omitempty"`
	Expires time.Time `json:"expires"`
}

// endpoints is what of the discovery document is needed.
type endpoints struct {
	Issuer        string `json:"issuer"`
	Authorization string `json:"authorization_endpoint"`
	Token         string `json:"token_endpoint"`
	Device        string `json:"device_authorization_endpoint"`
	Revocation    string `json:"revocation_endpoint"`
}

// mostOfDocument bounds what is read of an issuer.
const mostOfDocument = 1 << 20

func discover(ctx context.Context, h *http.Client, issuer string) (e endpoints, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration", nil)
	if err != nil {
		return e, err
	}
	answer, err := h.Do(r)
	if err != nil {
		return e, fmt.Errorf("the issuer cannot be reached: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return e, fmt.Errorf("the issuer %s answers %s", issuer, answer.Status)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, mostOfDocument)).Decode(&e); err != nil {
		return e, fmt.Errorf("the issuer's description cannot be read: %w", err)
	}
	if e.Issuer != issuer {
		return e, fmt.Errorf("the issuer %s calls itself %s", issuer, e.Issuer)
	}
	return e, nil
}

func (c Client) oauth(e endpoints) *oauth2.Config {
	return &oauth2.Config{
		ClientID: c.ID, ClientSecret: c.Secret, Scopes: c.Scopes,
		Endpoint: oauth2.Endpoint{
			AuthURL: e.Authorization, TokenURL: e.Token, DeviceAuthURL: e.Device, AuthStyle: oauth2.AuthStyleInParams,
		},
	}
}

func (c Client) saved(t *oauth2.Token) *Login {
	return &Login{Client: c, Access: t.AccessToken, Refresh: t.RefreshToken, Expires: t.Expiry}
}

// Device signs in by a code that a person types into a browser. show is told the address and the code.
func Device(ctx context.Context, h *http.Client, c Client, show func(address, code string)) (*Login, error) {
	e, err := discover(ctx, h, c.Issuer)
	if err != nil {
		return nil, err
	}
	if e.Device == "" {
		return nil, errors.New("the issuer has no device flow: use --browser")
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, h)
	config := c.oauth(e)
	verifier := oauth2.GenerateVerifier() // some issuers take PKCE here too
	asked, err := config.DeviceAuth(ctx, oauth2.S256ChallengeOption(verifier))
	if err != nil {
		return nil, fmt.Errorf("the issuer gives no code: %w", err)
	}
	address := asked.VerificationURIComplete
	if address == "" {
		address = asked.VerificationURI
	}
	show(address, asked.UserCode)
	token, err := config.DeviceAccessToken(ctx, asked, oauth2.VerifierOption(verifier))
	if err != nil {
		return nil, refused(err)
	}
	return c.saved(token), nil
}

// Browser signs in by a browser on this machine, which is told the address to open. It comes back to a port of the
// loopback interface.
func Browser(ctx context.Context, h *http.Client, c Client, open func(address string)) (*Login, error) {
	e, err := discover(ctx, h, c.Issuer)
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	config := c.oauth(e)
	config.RedirectURL = "http://" + listener.Addr().String() + "/callback"
	state, verifier := oauth2.GenerateVerifier(), oauth2.GenerateVerifier()
	codes := make(chan url.Values, 1)
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			query := r.URL.Query()
			if r.URL.Path != "/callback" || query.Get("state") != state {
				http.Error(w, "this is not for you", http.StatusNotFound)
				return
			}
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			text := "You are signed in. You can close this page."
			if why := query.Get("error"); why != "" {
				text = "You were not signed in: " + why
			}
			_, _ = fmt.Fprintf(w, "<!doctype html><html lang=en><title>Littoral</title><p>%s", html.EscapeString(text))
			select {
			case codes <- query:
			default: // it was here before
			}
		}),
	}
	go func() { _ = server.Serve(listener) }()
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second) // for the page to reach the browser
		defer cancel()
		_ = server.Shutdown(last)
	}()
	open(config.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier)))
	var query url.Values
	select {
	case query = <-codes:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if why := query.Get("error"); why != "" {
		return nil, fmt.Errorf("the issuer signed nobody in: %s %s", why, query.Get("error_description"))
	}
	if from := query.Get("iss"); from != "" && from != c.Issuer { // RFC 9207
		return nil, errors.New("the answer is of another issuer")
	}
	token, err := config.Exchange(context.WithValue(ctx, oauth2.HTTPClient, h), query.Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		return nil, refused(err)
	}
	return c.saved(token), nil
}

// Machine gets a token by client credentials.
func Machine(ctx context.Context, h *http.Client, c Client) (*Login, error) {
	e, err := discover(ctx, h, c.Issuer)
	if err != nil {
		return nil, err
	}
	config := clientcredentials.Config{ClientID: c.ID, ClientSecret: c.Secret, TokenURL: e.Token, EndpointParams: url.Values{}}
	if c.Audience != "" {
		config.EndpointParams.Set("audience", c.Audience)
	}
	token, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, h))
	if err != nil {
		return nil, refused(err)
	}
	return c.saved(token), nil
}

// ErrOver means that the issuer does not renew a login any more.
var ErrOver = errors.New("the login is over")

// renew returns the login with a fresh access token.
func renew(ctx context.Context, h *http.Client, l *Login) (*Login, error) {
	if l.Secret != "" {
		return Machine(ctx, h, l.Client)
	}
	if l.Refresh == "" {
		return nil, fmt.Errorf("%w: the issuer gave no refresh token", ErrOver)
	}
	e, err := discover(ctx, h, l.Issuer)
	if err != nil {
		return nil, err
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, h)
	token, err := l.oauth(e).TokenSource(ctx, &oauth2.Token{RefreshToken: l.Refresh}).Token()
	var refusal *oauth2.RetrieveError
	if errors.As(err, &refusal) && refusal.Response.StatusCode < http.StatusInternalServerError {
		return nil, fmt.Errorf("%w: %w", ErrOver, refused(err))
	}
	if err != nil {
		return nil, err
	}
	return l.saved(token), nil
}

// Revoke tells the issuer that the refresh token is not needed any more, if it can be told.
func Revoke(ctx context.Context, h *http.Client, l *Login) error {
	if l.Refresh == "" {
		return nil
	}
	e, err := discover(ctx, h, l.Issuer)
	if err != nil || e.Revocation == "" {
		return err
	}
	form := url.Values{"token": {l.Refresh}, "token_type_hint": {"refresh_token"}, "client_id": {l.ID}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.Revocation, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := h.Do(r)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// refused shortens an error of the token endpoint to what a person can use.
func refused(err error) error {
	var refusal *oauth2.RetrieveError
	if errors.As(err, &refusal) && refusal.ErrorCode != "" {
		return fmt.Errorf("the issuer gives no token: %s %s", refusal.ErrorCode, refusal.ErrorDescription)
	}
	return err
}
