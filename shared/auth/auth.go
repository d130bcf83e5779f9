// Package auth authenticates callers: it verifies OIDC access tokens and carries the caller through the context.
//
// A token is sent as a bearer, or by a browser in the cookie of package session; both are checked alike.
//
// Tokens are JWTs of any OIDC issuer; issuer, audience, expiry and signature are checked with zitadel/oidc. The
// issuer's keys are fetched on first use and shared through the store, so a cold function rarely asks the issuer at
// all.
package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"

	"github.com/littoral-project/littoral/shared/auth/session"
	"github.com/littoral-project/littoral/shared/problem"
)

// Config is read from the environment by envconfig.
type Config struct {
	Issuer   string `envconfig:"OIDC_ISSUER"`   // expected "iss"; empty refuses every token
	Audience string `envconfig:"OIDC_AUDIENCE"` // expected in "aud"
	JWKSURL  string `envconfig:"OIDC_JWKS_URL"` // where the keys are; empty = found by discovery

	// For an issuer that knows groups and no roles: the claim with the groups of a person, and the role of each group.
	// A group that is not listed grants nothing, whatever its name is.
	GroupsClaim string            `envconfig:"OIDC_GROUPS_CLAIM" default:"groups"`
	GroupRoles  map[string]string `envconfig:"OIDC_GROUP_ROLES"` // group:role,group:role

	Session session.Config
}

// ClockSkew is how far the issuer's clock may be ahead of or behind ours.
const ClockSkew = 10 * time.Second

// Principal is a verified caller.
type Principal struct {
	Subject string
	Name    string // for people to read; empty for a machine
	Roles   []Role
	AgentID string // claim "icos_agent_id": when set, the caller may act only as this agent

	// Application is set for an application's own token (bus.Tokens): it may read what is published about itself, no more.
	Application string
}

// Can reports whether the caller may do what needs role.
func (p Principal) Can(role Role) bool {
	return slices.ContainsFunc(p.Roles, func(r Role) bool { return r.Grants(role) })
}

// Must returns Forbidden if the caller may not do what needs role.
func (p Principal) Must(role Role) error {
	if !p.Can(role) {
		return problem.New(problem.Forbidden, "this needs the role %q", role)
	}
	return nil
}

// Verifier checks access tokens. The zero value refuses all.
type Verifier struct {
	config   Config
	keys     *keys
	sessions *session.Sealer
}

// NewVerifier returns a verifier that has not dialled anyone yet. The store may be nil. It panics when the configuration of
// sessions is of no use: Config.Check tells that before.
func NewVerifier(c Config, httpClient *http.Client, store KeyStore) *Verifier {
	sessions, err := session.New(c.Session)
	if err != nil {
		panic(err)
	}
	return &Verifier{config: c, keys: newKeys(c, httpClient, store), sessions: sessions}
}

// Check returns an error for settings that nobody could be verified by.
func (c Config) Check() error {
	_, err := session.New(c.Session)
	for group, role := range c.GroupRoles {
		if !slices.Contains(Roles(), Role(role)) {
			err = errors.Join(err, fmt.Errorf("OIDC_GROUP_ROLES: there is no role %q for the group %q", role, group))
		}
	}
	return err
}

// Sessions seals and opens the cookies of browsers; nil when there are none.
func (v *Verifier) Sessions() *session.Sealer { return v.sessions }

// Issuer is whose tokens are taken.
func (v *Verifier) Issuer() string { return v.config.Issuer }

// Audience is whom the tokens must be meant for.
func (v *Verifier) Audience() string { return v.config.Audience }

// algorithms lists what an issuer may sign with: all those of RFC 7518 and 8037 that need a private key for it.
func algorithms() []string {
	return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
}

// said is the claims of a token that say who somebody is and what he may do. They are looked up by their exact names at their
// exact places: encoding/json would take "ROLES" for "roles", and an issuer may let people write claims of their own.
type said map[string]json.RawMessage

// list returns the texts of a claim, which may also be one text.
func (s said) list(name string) (texts []string) {
	var one string
	if json.Unmarshal(s[name], &texts) != nil && json.Unmarshal(s[name], &one) == nil {
		texts = []string{one}
	}
	return texts
}

func (s said) text(names ...string) (text string) {
	for _, name := range names {
		if json.Unmarshal(s[name], &text) == nil && text != "" {
			return text
		}
	}
	return ""
}

// roles lists those of the claims "roles" and "realm_access.roles", and those of the groups.
func (s said) roles(c Config) (roles []Role) {
	var realm said
	_ = json.Unmarshal(s["realm_access"], &realm) // otherwise there are none
	names := append(s.list("roles"), realm.list("roles")...)
	if len(c.GroupRoles) > 0 && c.GroupsClaim != "" {
		for _, group := range s.list(c.GroupsClaim) {
			names = append(names, c.GroupRoles[group])
		}
	}
	for _, name := range names {
		if r := Role(name); slices.Contains(Roles(), r) && !slices.Contains(roles, r) {
			roles = append(roles, r)
		}
	}
	return roles
}

// Verify returns the caller named by the token. The error is Unauthenticated for a bad token and Unavailable when the
// issuer's keys cannot be had.
func (v *Verifier) Verify(ctx context.Context, token string) (Principal, error) {
	var c oidc.TokenClaims
	payload, err := oidc.ParseToken(token, &c)
	if err != nil {
		return Principal{}, refused("it cannot be read", err)
	}
	if v.config.Issuer == "" || oidc.CheckIssuerWithISSVerifier(&c, v.config.Issuer, nil) != nil {
		return Principal{}, refused("it comes from another issuer", nil)
	}
	if oidc.CheckAudience(&c, v.config.Audience) != nil {
		return Principal{}, refused("it is meant for another audience", nil)
	}
	if oidc.CheckExpiration(&c, -ClockSkew) != nil {
		return Principal{}, refused("it has expired", nil)
	}
	if nbf := c.NotBefore.AsTime(); !nbf.IsZero() && time.Now().Add(ClockSkew).Before(nbf) {
		return Principal{}, refused("it is not valid yet", nil)
	}
	err = oidc.CheckSignature(ctx, token, payload, &c, algorithms(), v.keys)
	if problem.KindOf(err) == problem.Unavailable {
		return Principal{}, err
	}
	if err != nil {
		return Principal{}, refused("its signature does not verify", err)
	}
	var says said
	if err := json.Unmarshal(payload, &says); err != nil {
		return Principal{}, refused("it cannot be read", err)
	}
	return Principal{
		Subject: c.Subject, Name: says.text("preferred_username", "name", "email"), AgentID: says.text("icos_agent_id"),
		Roles: says.roles(v.config),
	}, nil
}

// Expiry is when a token ends; the zero time when it does not say so. It does not check the signature.
func Expiry(token string) time.Time {
	var c oidc.TokenClaims
	if _, err := oidc.ParseToken(token, &c); err != nil {
		return time.Time{}
	}
	return c.Expiration.AsTime()
}

// MeantFor reports whether a token names the audience. It does not check the signature: it is for a token that we are
// about to send.
func MeantFor(token, audience string) bool {
	var c oidc.TokenClaims
	_, err := oidc.ParseToken(token, &c)
	return err == nil && oidc.CheckAudience(&c, audience) == nil
}

func refused(why string, cause error) error {
	return problem.Wrap(problem.Unauthenticated, cause, "the access token was refused: %s", why)
}

// Bearer returns the caller named by the bearer token of r. Errors are those of Verify.
func (v *Verifier) Bearer(r *http.Request) (Principal, error) {
	token, err := bearer(r)
	if err != nil {
		return Principal{}, err
	}
	return v.Verify(r.Context(), token)
}

func bearer(r *http.Request) (string, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", problem.New(problem.Unauthenticated, "send an access token: Authorization: Bearer <token>")
	}
	return strings.TrimSpace(token), nil
}

// Sent returns the access token that r carries: as a bearer, else in the session cookie of a browser, if what it asks for
// cannot be the doing of a page of others. The error is Unauthenticated, or Forbidden for such a page.
func (v *Verifier) Sent(r *http.Request) (token string, err error) {
	if v != nil && r.Header.Get("Authorization") == "" {
		if s, ok := v.sessions.Of(r); ok {
			return s.Access, v.sessions.Check(r, s)
		}
	}
	return bearer(r)
}

// Carries reports whether r carries anything that its sender could be known by.
func (v *Verifier) Carries(r *http.Request) bool {
	if r.Header.Get("Authorization") != "" || v == nil {
		return r.Header.Get("Authorization") != ""
	}
	_, signedIn := v.sessions.Of(r)
	return signedIn
}

// Caller returns the caller named by the token that r carries. Errors are those of Sent and Verify.
func (v *Verifier) Caller(r *http.Request) (Principal, error) {
	token, err := v.Sent(r)
	if err != nil {
		return Principal{}, err
	}
	return v.Verify(r.Context(), token)
}

// Authenticate returns the caller named by the token that r carries, if he has the role.
func (v *Verifier) Authenticate(r *http.Request, role Role) (Principal, error) {
	if role == Open {
		return Principal{}, nil
	}
	p, err := v.Caller(r)
	if err != nil {
		return Principal{}, err
	}
	if err := p.Must(role); err != nil {
		return Principal{}, err
	}
	return p, nil
}

type contextKey struct{}

// With returns ctx with the caller.
func With(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// From returns the caller; the zero Principal when there is none.
func From(ctx context.Context) Principal {
	p, _ := ctx.Value(contextKey{}).(Principal)
	return p
}

// ErrNotYou is returned when a caller bound to one agent acts as another.
var ErrNotYou = errors.New("token is bound to another agent")

// ActAs checks that the caller may act as the agent: a token bound to an agent id may act only as that one.
func ActAs(ctx context.Context, agent string) error {
	if p := From(ctx); p.AgentID != "" && p.AgentID != agent {
		return problem.Wrap(problem.Forbidden, ErrNotYou, "this token may act only as agent %q", p.AgentID)
	}
	return nil
}
