package issuer

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/crypto"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// VerifyAuthRequest finds the client of a request for a code.
func (s *server) VerifyAuthRequest(_ context.Context, r *op.Request[oidc.AuthRequest]) (*op.ClientRequest[oidc.AuthRequest], error) {
	p, ok := s.issuer.party(r.Data.ClientID)
	switch {
	case !ok:
		return nil, oidc.ErrInvalidRequest().WithDescription("there is no client %q that people sign in by", r.Data.ClientID)
	case r.Data.RequestParam != "":
		return nil, oidc.ErrRequestNotSupported()
	}
	return &op.ClientRequest[oidc.AuthRequest]{Request: r, Client: p}, nil
}

// Authorize sends the browser to the login page, or back with a code when somebody is signed in here already.
func (s *server) Authorize(_ context.Context, r *op.ClientRequest[oidc.AuthRequest]) (*op.Redirect, error) {
	a := r.Data
	if a.CodeChallenge == "" || a.CodeChallengeMethod != oidc.CodeChallengeMethodS256 {
		return op.NewRedirect(refusal(a, s.issuer.options.URL, "invalid_request", "PKCE with S256 is needed")), nil
	}
	id := s.issuer.visits.await(a)
	if g, ok := s.issuer.signedIn(r.Header); ok && !slices.Contains(a.Prompt, oidc.PromptLogin) {
		if to, ok := s.issuer.back(id, g.User, g.Session); ok {
			return op.NewRedirect(to), nil
		}
	}
	if slices.Contains(a.Prompt, oidc.PromptNone) {
		return op.NewRedirect(refusal(a, s.issuer.options.URL, "login_required", "nobody is signed in")), nil
	}
	return op.NewRedirect(r.Client.LoginURL(id)), nil
}

// back is the address that the browser goes to with its code.
func (i *Issuer) back(id, user, session string) (string, bool) {
	a, code, ok := i.visits.allow(id, user, session)
	if !ok {
		return "", false
	}
	return with(a.request.RedirectURI, url.Values{
		"code": {code}, "state": {a.request.State}, "iss": {i.options.URL},
	}), true
}

func refusal(a *oidc.AuthRequest, issuer, code, why string) string {
	return with(a.RedirectURI, url.Values{
		"error": {code}, "error_description": {why}, "state": {a.State}, "iss": {issuer},
	})
}

func with(address string, more url.Values) string {
	u, err := url.Parse(address)
	if err != nil {
		return address // op has compared it with those that are allowed
	}
	query := u.Query()
	for key, values := range more {
		query[key] = values
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// CodeExchange gives tokens for a code.
func (s *server) CodeExchange(_ context.Context, r *op.ClientRequest[oidc.AccessTokenRequest]) (*op.Response, error) {
	a, err := s.issuer.visits.redeem(r.Data.Code, r.Client.GetID())
	if err != nil {
		return nil, err
	}
	if a.request.RedirectURI != r.Data.RedirectURI {
		return nil, oidc.ErrInvalidGrant().WithDescription("redirect_uri is not that of the code")
	}
	challenge := &oidc.CodeChallenge{Challenge: a.request.CodeChallenge, Method: a.request.CodeChallengeMethod}
	if err := op.AuthorizeCodeChallenge(r.Data.CodeVerifier, challenge); err != nil {
		return nil, err
	}
	return s.issuer.answer(a.grant, a.request.Nonce)
}

// RefreshToken gives fresh tokens for a refresh token, which stays the same: two tabs may come with it at once.
func (s *server) RefreshToken(_ context.Context, r *op.ClientRequest[oidc.RefreshTokenRequest]) (*op.Response, error) {
	g, err := s.issuer.unseal(refreshPurpose, r.Data.RefreshToken)
	if err != nil || g.Client != r.Client.GetID() {
		return nil, oidc.ErrInvalidGrant().WithDescription("the refresh token is of no use (any more)")
	}
	return s.issuer.answer(g, "")
}

// DeviceAuthorization begins a sign-in on a device without a browser.
func (s *server) DeviceAuthorization(_ context.Context, r *op.ClientRequest[oidc.DeviceAuthorizationRequest]) (*op.Response, error) {
	if !op.ValidateGrantType(r.Client, oidc.GrantTypeDeviceCode) {
		return nil, oidc.ErrUnauthorizedClient()
	}
	d := s.issuer.visits.begin(r.Client.GetID(), r.Data.Scopes)
	page := s.issuer.options.URL + devicePath
	return op.NewResponse(&oidc.DeviceAuthorizationResponse{
		DeviceCode: d.code, UserCode: d.userCode, VerificationURI: page,
		VerificationURIComplete: with(page, url.Values{"user_code": {d.userCode}}),
		ExpiresIn:               int(deviceLasts.Seconds()), Interval: int(deviceEvery.Seconds()),
	}), nil
}

// DeviceToken answers a device that asks whether it was allowed.
func (s *server) DeviceToken(_ context.Context, r *op.ClientRequest[oidc.DeviceAccessTokenRequest]) (*op.Response, error) {
	g, err := s.issuer.visits.poll(r.Data.DeviceCode, r.Client.GetID())
	if err != nil {
		return nil, err
	}
	return s.issuer.answer(g, "")
}

// Revocation ends the session of a refresh token. To one that is of no use the answer is the same (RFC 7009 §2.2).
func (s *server) Revocation(_ context.Context, r *op.ClientRequest[oidc.RevocationRequest]) (*op.Response, error) {
	if g, err := s.issuer.unseal(refreshPurpose, r.Data.Token); err == nil && g.Client == r.Client.GetID() {
		s.issuer.visits.finish(g.Session)
	}
	return op.NewResponse(nil), nil
}

// EndSession signs out whom the ID token names, and sends the browser back to the client.
func (s *server) EndSession(ctx context.Context, r *op.Request[oidc.EndSessionRequest]) (*op.Redirect, error) {
	verifier := op.NewIDTokenHintVerifier(s.issuer.options.URL, publicKeys{s.issuer.key})
	claims, err := op.VerifyIDTokenHint[*oidc.IDTokenClaims](ctx, r.Data.IdTokenHint, verifier)
	if err != nil && claims == nil { // an expired one will do
		return nil, oidc.ErrInvalidRequest().WithDescription("id_token_hint says who is to be signed out: send a valid one")
	}
	session, _ := claims.Claims["sid"].(string)
	s.issuer.visits.finish(session)
	to := s.issuer.options.URL + loginPath
	if p, ok := s.issuer.party(claims.ClientID); ok && slices.Contains(p.after, r.Data.PostLogoutRedirectURI) {
		to = r.Data.PostLogoutRedirectURI
		if r.Data.State != "" {
			to = with(to, url.Values{"state": {r.Data.State}})
		}
	}
	back := op.NewRedirect(to)
	back.Header.Set("Set-Cookie", s.issuer.cookie("", -1).String())
	return back, nil
}

// publicKeys is our own key, as op wants it for checking our own signatures.
type publicKeys struct{ *signingKey }

func (k publicKeys) VerifySignature(_ context.Context, token *jose.JSONWebSignature) ([]byte, error) {
	return token.Verify(&k.private.PublicKey)
}

const refreshPurpose = "refresh token"

// answer makes the tokens of a grant.
func (i *Issuer) answer(g grant, nonce string) (*op.Response, error) {
	user, ok := i.named(g.User)
	if !ok {
		return nil, oidc.ErrInvalidGrant().WithDescription("there is no user %q any more", g.User)
	}
	access, expires, err := i.sign(Client{ID: user.Name, Roles: user.Roles, through: g.Client}, nil)
	if err != nil {
		return nil, err
	}
	now := i.options.Now()
	answer := &oidc.AccessTokenResponse{
		AccessToken: access, TokenType: oidc.BearerToken,
		ExpiresIn: uint64(expires.Sub(now).Seconds()), // positive: it was just made
		Scope:     g.Scopes,
	}
	refresh := g
	refresh.Expires = now.Add(refreshLasts)
	answer.RefreshToken = i.seal(refreshPurpose, refresh)
	if !slices.Contains(g.Scopes, oidc.ScopeOpenID) {
		return op.NewResponse(answer), nil
	}
	claims := oidc.NewIDTokenClaims(i.options.URL, user.Name, []string{g.Client}, expires, g.At, nonce, "", nil, g.Client, 0)
	claims.IssuedAt, claims.PreferredUsername, claims.Claims = oidc.FromTime(now), user.Name, map[string]any{"sid": g.Session}
	if claims.AccessTokenHash, err = oidc.ClaimHash(access, jose.RS256); err != nil {
		return nil, err
	}
	answer.IDToken, err = crypto.Sign(claims, i.signer)
	return op.NewResponse(answer), err
}

const (
	cookieName    = "littoral_issuer"
	cookiePurpose = "signed in"
)

// signedIn reads who is signed in here, by the cookie of the issuer.
func (i *Issuer) signedIn(h http.Header) (grant, bool) {
	c, err := (&http.Request{Header: h}).Cookie(cookieName)
	if err != nil {
		return grant{}, false
	}
	g, err := i.unseal(cookiePurpose, c.Value)
	return g, err == nil
}

func (i *Issuer) cookie(value string, age time.Duration) *http.Cookie {
	seconds := int(age.Seconds())
	if age < 0 {
		seconds = -1
	}
	return &http.Cookie{
		Name: cookieName, Value: value, Path: pathOf(i.options.URL) + "/", MaxAge: seconds, HttpOnly: true,
		Secure: strings.HasPrefix(i.options.URL, "https:"), SameSite: http.SameSiteLaxMode,
	}
}
