// Package login signs people in at the OpenID Connect issuer: authorization code with PKCE, state and nonce, refreshed
// until the session ends, and signed out at the issuer too. The protocol is zitadel/oidc's.
//
// What one visit to the issuer has to remember (state, nonce, the PKCE verifier, where to go on) is in a sealed cookie of
// its own, so that the function which begins it and the one which ends it share nothing but a key.
package login

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/pkg/client/rp"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"golang.org/x/oauth2"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/auth/session"
	"github.com/littoral-project/littoral/shared/problem"
)

// Config is read from the environment by envconfig.
type Config struct {
	ClientID  string   `envconfig:"LOGIN_CLIENT_ID"`                            // ours at the issuer; empty = nobody can sign in by a browser
	Secret    string   `envconfig:"LOGIN_CLIENT_SECRET"`                        // empty for a public client
	Scopes    []string `envconfig:"LOGIN_SCOPES" default:"openid,profile"`      // add offline_access where the issuer gives no refresh token otherwise
	CLIScopes []string `envconfig:"LOGIN_CLI_SCOPES"`                           // that the command line asks for; empty = LOGIN_SCOPES
	CLI       string   `envconfig:"LOGIN_CLI_CLIENT_ID" default:"littoral-cli"` // the public client of the command line
}

// Paths that a browser is sent to.
const (
	CallbackPath = "/auth/callback"
	LoginPath    = "/auth/login"
	home         = "/console/"
)

// attempt is one visit to the issuer.
type attempt struct {
	State, Nonce, Verifier, Return string
	Began                          time.Time
}

const (
	attemptCookie  = "littoral_login_" // and the beginning of its state: several windows may try at once
	attemptPurpose = "login"
	attemptLasts   = 10 * time.Minute
	ofState        = 8 // characters of the state in the name
)

// Party is Littoral as the issuer's client.
type Party struct {
	config   Config
	http     *http.Client
	verifier *auth.Verifier
	sessions *session.Sealer
}

// New returns a party that has not dialled yet.
func New(c Config, client *http.Client, v *auth.Verifier) *Party {
	return &Party{config: c, http: client, verifier: v, sessions: v.Sessions()}
}

// Offered reports whether people can sign in by a browser.
func (p *Party) Offered() bool { return p.sessions != nil && p.config.ClientID != "" }

func (p *Party) dial(ctx context.Context, r *http.Request, nonce string) (rp.RelyingParty, error) {
	if !p.Offered() {
		return nil, problem.New(problem.NotFound, "nobody can sign in by a browser here: LOGIN_CLIENT_ID or SESSION_KEY is not set")
	}
	callback := p.sessions.Origin(r).JoinPath(CallbackPath).String()
	party, err := rp.NewRelyingPartyOIDC(ctx, p.verifier.Issuer(), p.config.ClientID, p.config.Secret, callback, p.config.Scopes,
		rp.WithHTTPClient(p.http), rp.WithSigningAlgsFromDiscovery(),
		rp.WithVerifierOpts(rp.WithNonce(func(context.Context) string { return nonce }), rp.WithIssuedAtOffset(auth.ClockSkew)))
	if err != nil {
		return nil, problem.Wrap(problem.Unavailable, err, "the issuer cannot be reached")
	}
	return party, nil
}

// Begin sends the browser to the issuer, from where it comes back to CallbackPath and then goes on to a path of ours.
func (p *Party) Begin(w http.ResponseWriter, r *http.Request, back string) error {
	party, err := p.dial(r.Context(), r, "")
	if err != nil {
		return err
	}
	a := attempt{
		State: session.Random(), Nonce: session.Random(), Verifier: oauth2.GenerateVerifier(), Return: ours(back), Began: time.Now(),
	}
	sealed, err := p.sessions.Seal(attemptPurpose, a)
	if err != nil {
		return err
	}
	p.set(w, r, a.State, sealed, int(attemptLasts.Seconds()))
	to := rp.AuthURL(a.State, party, rp.WithCodeChallenge(oidc.NewSHACodeChallenge(a.Verifier)),
		rp.AuthURLOpt(rp.WithURLParam("nonce", a.Nonce)))
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, to, http.StatusFound)
	return nil
}

func (p *Party) set(w http.ResponseWriter, r *http.Request, state, value string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: attemptCookie + state[:ofState], Value: value, Path: CallbackPath, MaxAge: age,
		HttpOnly: true, Secure: p.sessions.Origin(r).Scheme == "https", SameSite: http.SameSiteLaxMode,
	})
}

// ours returns a path of ours: the wish, unless a browser might take it for the address of somebody else.
func ours(wish string) string {
	u, err := url.Parse(wish)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(wish, "/") || strings.HasPrefix(wish, "//") ||
		strings.ContainsAny(wish, "\\\r\n\t") {
		return home
	}
	return wish
}

// Finish takes the browser back from the issuer and gives it a session.
func (p *Party) Finish(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer") // the address has the code in it
	a, err := p.attempt(w, r)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	if said := query.Get("error"); said != "" {
		// A person who has changed his mind is to see the page that he came from, and why nobody is signed in there.
		why := problem.Brief(strings.TrimSpace(said+": "+query.Get("error_description")), 200)
		http.Redirect(w, r, home+"#refused="+url.QueryEscape(why), http.StatusSeeOther)
		return nil
	}
	if from := query.Get("iss"); from != "" && from != p.verifier.Issuer() { // RFC 9207
		return problem.New(problem.Malformed, "the answer is of another issuer")
	}
	party, err := p.dial(r.Context(), r, a.Nonce)
	if err != nil {
		return err
	}
	tokens, err := rp.CodeExchange[*oidc.IDTokenClaims](r.Context(), query.Get("code"), party, rp.WithCodeVerifier(a.Verifier))
	if err != nil {
		return p.failed(err, "the issuer's code gives no session: begin again at "+LoginPath)
	}
	it := session.Session{CSRF: session.Random(), Began: time.Now()}
	if err := p.store(r.Context(), &it, tokens.Token); err != nil {
		return err
	}
	if err := p.sessions.Set(w, r, it); err != nil {
		return err
	}
	http.Redirect(w, r, a.Return, http.StatusSeeOther)
	return nil
}

// attempt returns the visit that the browser comes back from, which it does once.
func (p *Party) attempt(w http.ResponseWriter, r *http.Request) (a attempt, err error) {
	if !p.Offered() {
		_, err := p.dial(r.Context(), r, "")
		return a, err
	}
	state := r.URL.Query().Get("state")
	if len(state) < ofState {
		return a, problem.New(problem.Malformed, "this address is for the issuer to send browsers to; sign in at %s", LoginPath)
	}
	kept, err := r.Cookie(attemptCookie + state[:ofState])
	if err != nil || p.sessions.Open(attemptPurpose, kept.Value, &a) != nil || time.Since(a.Began) > attemptLasts ||
		subtle.ConstantTimeCompare([]byte(a.State), []byte(state)) != 1 {
		return a, problem.New(problem.Forbidden, "this browser did not begin that, or too long ago; sign in at %s", LoginPath)
	}
	p.set(w, r, state, "", -1)
	return a, nil
}

// store puts the issuer's tokens into the session, if ours take the access token.
func (p *Party) store(ctx context.Context, it *session.Session, t *oauth2.Token) error {
	if _, err := p.verifier.Verify(ctx, t.AccessToken); err != nil {
		return err
	}
	id, _ := t.Extra("id_token").(string)
	it.Access, it.Refresh, it.ID = t.AccessToken, cmp.Or(t.RefreshToken, it.Refresh), cmp.Or(id, it.ID)
	return nil
}

// failed tells a refusal by the issuer from an issuer that is away.
func (p *Party) failed(err error, why string) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.Response != nil && refused.Response.StatusCode >= http.StatusInternalServerError {
		return problem.Wrap(problem.Unavailable, err, "the issuer cannot answer now")
	}
	var away *url.Error
	if errors.As(err, &away) {
		return problem.Wrap(problem.Unavailable, err, "the issuer cannot be reached")
	}
	return problem.Wrap(problem.Unauthenticated, err, "%s", why)
}

// Refresh gives the browser fresh tokens without a visit to the issuer. A session that the issuer refuses is over.
func (p *Party) Refresh(w http.ResponseWriter, r *http.Request) error {
	it, ok := p.sessions.Of(r)
	if !ok {
		return problem.New(problem.Unauthenticated, "there is no session; sign in at %s", LoginPath)
	}
	if err := p.sessions.Check(r, it); err != nil {
		return err
	}
	fresh, err := p.Exchange(r.Context(), r, it.Refresh)
	if problem.KindOf(err) == problem.Unauthenticated {
		p.sessions.Clear(w, r)
	}
	if err != nil {
		return err
	}
	if err := p.store(r.Context(), &it, fresh); err != nil {
		return err
	}
	return p.sessions.Set(w, r, it)
}

// Exchange asks the issuer for an access token with a refresh token.
func (p *Party) Exchange(ctx context.Context, r *http.Request, refresh string) (*oauth2.Token, error) {
	if refresh == "" {
		return nil, problem.New(problem.Unauthenticated, "the issuer gave no refresh token: LOGIN_SCOPES may lack offline_access; sign in at %s",
			LoginPath)
	}
	party, err := p.dial(ctx, r, "")
	if err != nil {
		return nil, err
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, p.http)
	fresh, err := party.OAuthConfig().TokenSource(ctx, &oauth2.Token{RefreshToken: refresh}).Token()
	if err != nil {
		return nil, p.failed(err, "the issuer does not take the refresh token any more; sign in at "+LoginPath)
	}
	return fresh, nil
}

// Password asks the issuer for tokens with a name and a password (RFC 6749 §4.3), which newer issuers do not take.
func (p *Party) Password(ctx context.Context, r *http.Request, name, password string) (*oauth2.Token, error) {
	party, err := p.dial(ctx, r, "")
	if err != nil {
		return nil, err
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, p.http)
	token, err := party.OAuthConfig().PasswordCredentialsToken(ctx, name, password)
	if err != nil {
		return nil, p.failed(err, "the issuer knows nobody by this name and password")
	}
	return token, nil
}

// Revoke tells the issuer that a refresh token is not needed any more, if the issuer can be told.
func (p *Party) Revoke(ctx context.Context, r *http.Request, refresh string) error {
	party, err := p.dial(ctx, r, "")
	if err != nil || party.GetRevokeEndpoint() == "" {
		return err
	}
	if err := rp.RevokeToken(ctx, party, refresh, "refresh_token"); err != nil {
		return problem.Wrap(problem.Unavailable, err, "the issuer cannot be told")
	}
	return nil
}

// End takes the session back and returns where the browser is to go to be signed out at the issuer too; home when the
// issuer has no such place, or cannot be reached.
func (p *Party) End(w http.ResponseWriter, r *http.Request) (to string, err error) {
	it, ok := p.sessions.Of(r)
	if !ok {
		return home, nil
	}
	if err := p.sessions.Check(r, it); err != nil {
		return "", err
	}
	p.sessions.Clear(w, r)
	party, err := p.dial(r.Context(), r, "")
	if err != nil || party.GetEndSessionEndpoint() == "" {
		return home, nil // the session is over here, whoever is away
	}
	end, err := url.Parse(party.GetEndSessionEndpoint())
	if err != nil {
		return home, nil
	}
	query := end.Query()
	query.Set("client_id", p.config.ClientID)
	query.Set("post_logout_redirect_uri", p.sessions.Origin(r).JoinPath(home).String())
	if it.ID != "" {
		query.Set("id_token_hint", it.ID)
	}
	end.RawQuery = query.Encode()
	return end.String(), nil
}
