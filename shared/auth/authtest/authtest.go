// Package authtest signs tokens as an issuer does, and publishes the keys that prove them.
package authtest

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
)

// NewKey makes a key, which takes longer than most tests.
func NewKey(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	return key
}

// Keys is what an issuer publishes of a key and its id.
func Keys(key *rsa.PrivateKey, id string) jose.JSONWebKeySet {
	return jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: id, Algorithm: "RS256", Use: "sig"}}}
}

// Sign returns a token with the claims and the changes to them, of which a nil value removes one.
func Sign(t testing.TB, key *rsa.PrivateKey, id string, claims, changes map[string]any) string {
	t.Helper()
	return SignBy(t, jose.RS256, key, id, claims, changes)
}

// SignBy does what Sign does by any algorithm, with a key for that.
func SignBy(t testing.TB, algorithm jose.SignatureAlgorithm, key any, id string, claims, changes map[string]any) string {
	t.Helper()
	all := maps.Clone(claims)
	maps.Copy(all, changes)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	payload, err := json.Marshal(all)
	require.NoError(t, err)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	require.NoError(t, err)
	signed, err := signer.Sign(payload)
	require.NoError(t, err)
	text, err := signed.CompactSerialize()
	require.NoError(t, err)
	return text
}
