package issuer

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"slices"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/littoral-project/littoral/shared/auth"
)

// User is a person who may sign in.
type User struct {
	Name  string // and the subject of the tokens
	Roles []auth.Role
}

// Users returns three people, each called as the only role.
func Users() []User {
	return []User{
		{"viewer", []auth.Role{auth.Viewer}}, {"operator", []auth.Role{auth.Operator}}, {"admin", []auth.Role{auth.Admin}},
	}
}

// Password returns the password of a user, which is the same as long as the key is.
func (i *Issuer) Password(user string) string {
	mac := hmac.New(sha256.New, i.key.seed)
	mac.Write([]byte("password of " + user))
	text := strings.ToLower(base32.StdEncoding.EncodeToString(mac.Sum(nil)[:10])) // 80 bits, to be typed
	return strings.Join([]string{text[:4], text[4:8], text[8:12], text[12:]}, "-")
}

// user returns who has the name and the password. Nobody learns from the time it takes which of them is wrong.
func (i *Issuer) user(name, password string) (User, bool) {
	same := subtle.ConstantTimeCompare([]byte(i.Password(name)), []byte(strings.TrimSpace(password))) == 1
	at := slices.IndexFunc(i.options.Users, func(u User) bool { return u.Name == name })
	if !same || at < 0 {
		return User{}, false
	}
	return i.options.Users[at], true
}

func (i *Issuer) named(name string) (User, bool) {
	at := slices.IndexFunc(i.options.Users, func(u User) bool { return u.Name == name })
	if at < 0 {
		return User{}, false
	}
	return i.options.Users[at], true
}

// The clients that people sign in by.
const (
	Console = "littoral-console" // has a secret
	CLI     = "littoral-cli"     // public, on any port of the loopback interface
)

// party is a client that people sign in by.
type party struct {
	id        string
	public    bool
	redirects []string
	after     []string // where to go after signing out
	grants    []oidc.GrantType
	login     string
}

// party returns such a client.
func (i *Issuer) party(id string) (*party, bool) {
	p := &party{id: id, login: i.options.URL + loginPath}
	switch id {
	case Console:
		for _, base := range i.options.Console {
			p.redirects = append(p.redirects, base+"/auth/callback")
			p.after = append(p.after, base+"/console/")
		}
		p.grants = []oidc.GrantType{oidc.GrantTypeCode, oidc.GrantTypeRefreshToken}
	case CLI:
		p.public = true
		p.redirects = []string{"http://127.0.0.1/callback", "http://localhost/callback", "http://[::1]/callback"}
		p.grants = []oidc.GrantType{oidc.GrantTypeCode, oidc.GrantTypeRefreshToken, oidc.GrantTypeDeviceCode}
	default:
		return nil, false
	}
	return p, true
}

func (p *party) GetID() string                    { return p.id }
func (p *party) RedirectURIs() []string           { return p.redirects }
func (p *party) PostLogoutRedirectURIs() []string { return p.after }
func (p *party) ApplicationType() op.ApplicationType {
	if p.public {
		return op.ApplicationTypeNative
	}
	return op.ApplicationTypeWeb
}

func (p *party) AuthMethod() oidc.AuthMethod {
	if p.public {
		return oidc.AuthMethodNone
	}
	return oidc.AuthMethodBasic
}

func (p *party) ResponseTypes() []oidc.ResponseType {
	return []oidc.ResponseType{oidc.ResponseTypeCode}
}
func (p *party) GrantTypes() []oidc.GrantType        { return p.grants }
func (p *party) LoginURL(request string) string      { return p.login + "?request=" + request }
func (p *party) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeJWT }
func (p *party) IDTokenLifetime() time.Duration      { return Lifetime }
func (p *party) DevMode() bool                       { return false }
func (p *party) RestrictAdditionalIdTokenScopes() func([]string) []string {
	return func(s []string) []string { return s }
}

func (p *party) RestrictAdditionalAccessTokenScopes() func([]string) []string {
	return func(s []string) []string { return s }
}
func (p *party) IsScopeAllowed(string) bool           { return false }
func (p *party) IDTokenUserinfoClaimsAssertion() bool { return true }
func (p *party) ClockSkew() time.Duration             { return 0 }
