package inprocess

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/auth/authtest"
)

// Audience is what the tokens of an Issuer are meant for.
const Audience = "littoral"

const keyID = "k1"

// Issuer signs access tokens and serves the key that proves them.
type Issuer struct {
	server *httptest.Server
	key    *rsa.PrivateKey
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
	i := &Issuer{key: key}
	i.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(authtest.Keys(key, keyID))
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
	return authtest.Sign(t, i.key, keyID, Claims{
		"iss": i.server.URL, "sub": "somebody", "aud": []string{Audience},
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}, changes)
}
