// Package auth authenticates callers: it verifies OIDC access tokens and carries the caller through the context.
//
// Tokens are JWTs of any OIDC issuer; issuer, audience, expiry and signature are checked with zitadel/oidc. The
// issuer's keys are fetched on first use and shared through the store, so a cold function rarely asks the issuer at
// all.
package auth

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"

	"github.com/littoral-project/littoral/shared/problem"
)

// Config is read from the environment by envconfig.
type Config struct {
	Issuer   string `envconfig:"OIDC_ISSUER"`   // expected "iss"; empty refuses every token
	Audience string `envconfig:"OIDC_AUDIENCE"` // expected in "aud"
	JWKSURL  string `envconfig:"OIDC_JWKS_URL"` // where the keys are; empty = found by discovery
}

// clockSkew is how far the issuer's clock may be ahead of or behind ours.
const clockSkew = 10 * time.Second

// Principal is a verified caller.
type Principal struct {
	Subject string
	Roles   []Role
	AgentID string // claim "icos_agent_id": when set, the caller may act only as this agent
}

// Can reports whether the caller may do what needs role.
func (p Principal) Can(role Role) bool {
	return slices.ContainsFunc(p.Roles, func(r Role) bool { return r.Grants(role) })
}

// Verifier checks access tokens. The zero value refuses all.
type Verifier struct {
	config Config
	keys   *keys
}

// NewVerifier returns a verifier that has not dialled anyone yet. The store may be nil.
func NewVerifier(c Config, httpClient *http.Client, store KeyStore) *Verifier {
	return &Verifier{config: c, keys: newKeys(c, httpClient, store)}
}

// algorithms lists what an issuer may sign with: all those of RFC 7518 and 8037 that need a private key for it.
func algorithms() []string {
	return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
}

type claims struct {
	oidc.TokenClaims
	Roles       []string `json:"roles"`
	RealmAccess struct {
		Roles []string `json:"roles"`
	} `json:"realm_access"`
	AgentID string `json:"icos_agent_id"`
}

// Verify returns the caller named by the token. The error is Unauthenticated for a bad token and Unavailable when the
// issuer's keys cannot be had.
func (v *Verifier) Verify(ctx context.Context, token string) (Principal, error) {
	var c claims
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
	if oidc.CheckExpiration(&c, -clockSkew) != nil {
		return Principal{}, refused("it has expired", nil)
	}
	if nbf := c.NotBefore.AsTime(); !nbf.IsZero() && time.Now().Add(clockSkew).Before(nbf) {
		return Principal{}, refused("it is not valid yet", nil)
	}
	err = oidc.CheckSignature(ctx, token, payload, &c, algorithms(), v.keys)
	if problem.KindOf(err) == problem.Unavailable {
		return Principal{}, err
	}
	if err != nil {
		return Principal{}, refused("its signature does not verify", err)
	}
	p := Principal{Subject: c.Subject, AgentID: c.AgentID}
	for _, name := range append(c.Roles, c.RealmAccess.Roles...) {
		if r := Role(name); slices.Contains(Roles(), r) && !slices.Contains(p.Roles, r) {
			p.Roles = append(p.Roles, r)
		}
	}
	return p, nil
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
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return Principal{}, problem.New(problem.Unauthenticated, "send an access token: Authorization: Bearer <token>")
	}
	return v.Verify(r.Context(), strings.TrimSpace(token))
}

// Authenticate verifies the bearer token of r and checks that its holder has the role.
func (v *Verifier) Authenticate(r *http.Request, role Role) (Principal, error) {
	if role == Open {
		return Principal{}, nil
	}
	p, err := v.Bearer(r)
	if err != nil {
		return Principal{}, err
	}
	if !p.Can(role) {
		return Principal{}, problem.New(problem.Forbidden, "this needs the role %q", role)
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
