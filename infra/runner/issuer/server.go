package issuer

import (
	"context"
	"crypto/subtle"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// endpoints are what is served; the op package leaves out those that are nil.
var endpoints = op.Endpoints{
	Authorization:       op.NewEndpoint("authorize"),
	DeviceAuthorization: op.NewEndpoint("device_authorization"),
	EndSession:          op.NewEndpoint("end_session"),
	Revocation:          op.NewEndpoint("revoke"),
	Token:               op.NewEndpoint("token"),
	JwksURI:             op.NewEndpoint("keys"),
}

// server answers the requests that the op package has routed and parsed; op refuses requests for everything that is not
// implemented here.
type server struct {
	op.UnimplementedServer
	issuer *Issuer
}

func newHandler(i *Issuer) http.Handler {
	protocol := op.RegisterServer(&server{issuer: i}, endpoints, op.WithServerCORSOptions(nil)) // no web page is a client
	token, pages := endpoints.Token.Relative(), newPages(i)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store") // RFC 6749 §5.1: no cache may store a token
		if r.URL.Path == token && r.Method != http.MethodPost {
			w.Header().Set("Allow", "POST") // §3.2: a secret in the query would end up in logs
			http.Error(w, "the token endpoint takes POST", http.StatusMethodNotAllowed)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, 1<<16)
		switch r.URL.Path {
		case loginPath, devicePath:
			pages.ServeHTTP(w, r)
		default:
			protocol.ServeHTTP(w, r)
		}
	})
	return http.StripPrefix(pathOf(i.options.URL), h)
}

func pathOf(issuerURL string) string {
	u, err := url.Parse(issuerURL)
	if err != nil {
		return "" // New has checked that it is valid
	}
	return strings.TrimSuffix(u.Path, "/")
}

func (s *server) Health(context.Context, *op.Request[struct{}]) (*op.Response, error) {
	return op.NewResponse(op.Status{Status: "ok"}), nil
}

func (s *server) Discovery(context.Context, *op.Request[struct{}]) (*op.Response, error) {
	at := s.issuer.options.URL
	return op.NewResponse(&oidc.DiscoveryConfiguration{
		Issuer:                      at,
		AuthorizationEndpoint:       endpoints.Authorization.Absolute(at),
		DeviceAuthorizationEndpoint: endpoints.DeviceAuthorization.Absolute(at),
		EndSessionEndpoint:          endpoints.EndSession.Absolute(at),
		RevocationEndpoint:          endpoints.Revocation.Absolute(at),
		TokenEndpoint:               endpoints.Token.Absolute(at),
		JwksURI:                     endpoints.JwksURI.Absolute(at),
		GrantTypesSupported: []oidc.GrantType{
			oidc.GrantTypeCode, oidc.GrantTypeRefreshToken, oidc.GrantTypeDeviceCode, oidc.GrantTypeClientCredentials,
		},
		ResponseTypesSupported:            []string{string(oidc.ResponseTypeCode)},
		CodeChallengeMethodsSupported:     []oidc.CodeChallengeMethod{oidc.CodeChallengeMethodS256},
		ScopesSupported:                   []string{oidc.ScopeOpenID, oidc.ScopeProfile, oidc.ScopeOfflineAccess},
		SubjectTypesSupported:             []string{"public"},
		IDTokenSigningAlgValuesSupported:  []string{string(jose.RS256)},
		TokenEndpointAuthMethodsSupported: []oidc.AuthMethod{oidc.AuthMethodBasic, oidc.AuthMethodPost, oidc.AuthMethodNone},
		ClaimsSupported: []string{
			"iss", "sub", "aud", "exp", "iat", "nonce", "sid", "preferred_username", "roles", "icos_agent_id",
		},
	}), nil
}

func (s *server) Keys(context.Context, *op.Request[struct{}]) (*op.Response, error) {
	return op.NewResponse(s.issuer.key.public()), nil
}

// VerifyClient gives the same answer for an unknown client and a wrong secret, in constant time.
func (s *server) VerifyClient(_ context.Context, r *op.Request[op.ClientCredentials]) (op.Client, error) {
	if p, ok := s.issuer.party(r.Data.ClientID); ok && p.public && r.Data.ClientSecret == "" {
		return p, nil
	}
	want := s.issuer.key.secret(r.Data.ClientID)
	same := subtle.ConstantTimeCompare([]byte(want), []byte(r.Data.ClientSecret)) == 1
	if p, ok := s.issuer.party(r.Data.ClientID); ok && !p.public && same {
		return p, nil
	}
	c, known := s.issuer.clients[r.Data.ClientID]
	if !same || !known {
		err := oidc.ErrInvalidClient().WithDescription("unknown client or wrong secret")
		return nil, op.NewStatusError(err, http.StatusUnauthorized)
	}
	return machine{client: c}, nil
}

// ClientCredentialsExchange supports the parameter audience, like Auth0 and ZITADEL: a token for another service is
// then not valid for Littoral's own API.
func (s *server) ClientCredentialsExchange(
	_ context.Context, r *op.ClientRequest[oidc.ClientCredentialsRequest],
) (*op.Response, error) {
	c := s.issuer.clients[r.Client.GetID()]
	token, expires, err := s.issuer.sign(c, r.Form["audience"])
	if err != nil {
		return nil, err
	}
	return op.NewResponse(&oidc.AccessTokenResponse{
		AccessToken: token,
		TokenType:   oidc.BearerToken,
		ExpiresIn:   uint64(expires.Sub(s.issuer.options.Now()).Seconds()), // positive: it was just made
	}), nil
}

// machine adapts a Client to the interface of the op package. For a machine client op only calls the methods below; the
// embedded nil interface would panic on the others, which are for logins.
type machine struct {
	op.Client
	client Client
}

func (m machine) GetID() string               { return m.client.ID }
func (m machine) AuthMethod() oidc.AuthMethod { return oidc.AuthMethodBasic }
func (m machine) GrantTypes() []oidc.GrantType {
	return []oidc.GrantType{oidc.GrantTypeClientCredentials}
}
