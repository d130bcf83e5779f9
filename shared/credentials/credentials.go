// Package credentials gets access tokens for calls to other services: a fixed one, or by the client credentials grant
// of OAuth 2.0 (RFC 6749 §4.4) with the audience that the called service expects.
package credentials

import (
	"context"
	"net/http"
	"net/url"
	"sync"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/littoral-project/littoral/shared/problem"
)

// Config is read from the environment by envconfig.
type Config struct {
	ClientID     string   `envconfig:"OIDC_CLIENT_ID"`
	ClientSecret string   `envconfig:"OIDC_CLIENT_SECRET"`
	TokenURL     string   `envconfig:"OIDC_TOKEN_URL"`
	Scopes       []string `envconfig:"OIDC_SCOPES"`
}

// Source hands out tokens and keeps each until it expires. The zero Config gives none.
type Source struct {
	config Config
	http   *http.Client

	mu     sync.Mutex
	tokens map[string]oauth2.TokenSource // by audience
}

// New returns a source that has not dialled yet.
func New(c Config, client *http.Client) *Source {
	return &Source{config: c, http: client, tokens: map[string]oauth2.TokenSource{}}
}

// Configured reports whether there is anything to get tokens with.
func (s *Source) Configured() bool { return s.config.TokenURL != "" && s.config.ClientID != "" }

// Token returns a token for the audience. The error is Unavailable.
func (s *Source) Token(_ context.Context, audience string) (string, error) {
	if !s.Configured() {
		return "", problem.New(problem.Unavailable,
			"no client is set to get access tokens with (OIDC_CLIENT_ID, OIDC_TOKEN_URL)")
	}
	token, err := s.of(audience).Token()
	if err != nil {
		return "", problem.Wrap(problem.Unavailable, err, "the token issuer gives no access token")
	}
	return token.AccessToken, nil
}

func (s *Source) of(audience string) oauth2.TokenSource {
	s.mu.Lock()
	defer s.mu.Unlock()
	if source, ok := s.tokens[audience]; ok {
		return source
	}
	c := clientcredentials.Config{
		ClientID: s.config.ClientID, ClientSecret: s.config.ClientSecret, TokenURL: s.config.TokenURL,
		Scopes: s.config.Scopes, EndpointParams: url.Values{},
	}
	if audience != "" {
		c.EndpointParams.Set("audience", audience)
	}
	// A token outlives the call that asked for it, so the call's own context would end its renewal; the client has a
	// time limit of its own.
	source := c.TokenSource(context.WithValue(context.Background(), oauth2.HTTPClient, s.http))
	s.tokens[audience] = source
	return source
}
