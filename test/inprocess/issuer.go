package inprocess

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/auth"
)

// Audience is what the tokens of an Issuer are meant for.
const Audience = "littoral"

// Issuer signs access tokens and serves the key that proves them.
type Issuer struct {
	server *httptest.Server
	signer jose.Signer
}

// Claims are what a token says.
type Claims = map[string]any

// One key for all tests of a process: making one takes longer than most tests.
var testKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// NewIssuer starts an issuer that ends with the test.
func NewIssuer(t testing.TB) *Issuer {
	t.Helper()
	key, err := testKey()
	require.NoError(t, err)
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "k1"}}, nil)
	require.NoError(t, err)
	keys := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
		{Key: key.Public(), KeyID: "k1", Algorithm: "RS256", Use: "sig"},
	}}
	i := &Issuer{signer: signer}
	i.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(keys)
	}))
	t.Cleanup(i.server.Close)
	return i
}

// Config is how a verifier finds this issuer.
func (i *Issuer) Config() auth.Config {
	return auth.Config{Issuer: i.server.URL, Audience: Audience, JWKSURL: i.server.URL + "/keys"}
}

// Verifier returns a verifier of this issuer's tokens.
func (i *Issuer) Verifier() *auth.Verifier {
	return auth.NewVerifier(i.Config(), i.server.Client(), nil)
}

// Token returns a token of a caller called as its role, valid for an hour.
func (i *Issuer) Token(t testing.TB, role auth.Role) string {
	t.Helper()
	return i.TokenWith(t, Claims{"sub": string(role), "roles": []string{string(role)}})
}

// TokenWith returns a token with the claims; those that are not given are those of a valid token without a role, and a
// nil value removes one.
func (i *Issuer) TokenWith(t testing.TB, changes Claims) string {
	t.Helper()
	now := time.Now()
	c := Claims{
		"iss": i.server.URL, "sub": "somebody", "aud": []string{Audience},
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	payload, err := json.Marshal(c)
	require.NoError(t, err)
	signed, err := i.signer.Sign(payload)
	require.NoError(t, err)
	text, err := signed.CompactSerialize()
	require.NoError(t, err)
	return text
}
