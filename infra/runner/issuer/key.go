package issuer

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-jose/go-jose/v4"

	"github.com/littoral-project/littoral/shared/durable"
)

const (
	keyFile = "signing-key.pem"
	pemType = "PRIVATE KEY" // PKCS #8
	keyBits = 2048
)

// signingKey is an RSA key, since ICOS components verify only RSA signatures. It serves as op.SigningKey, and its
// public half as op.Key.
type signingKey struct {
	private *rsa.PrivateKey
	id      string // derived from the public half, so a new key has a new id
	seed    []byte // of the client secrets, so that this file is the only one to keep
}

// loadKey returns the key in dir, and creates it if there is none.
func loadKey(dir string) (*signingKey, error) {
	path := filepath.Join(dir, keyFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return createKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != pemType {
		return nil, fmt.Errorf("signing key: %s holds no PEM block %q; remove it and a new key is made", path, pemType)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("signing key: %s: %w", path, err)
	}
	private, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("signing key: %s is not an RSA key", path)
	}
	if err := os.Chmod(path, 0o600); err != nil { // copying the home may have widened the permissions
		return nil, fmt.Errorf("signing key: %w", err)
	}
	return newKey(private, block.Bytes), nil
}

func createKey(path string) (*signingKey, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	private, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der})
	if err := durable.WriteFile(path, text, 0o600); err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	return newKey(private, der), nil
}

func newKey(private *rsa.PrivateKey, der []byte) *signingKey {
	public := sha256.Sum256(x509.MarshalPKCS1PublicKey(&private.PublicKey))
	seed := sha256.Sum256(der)
	return &signingKey{private: private, id: hex.EncodeToString(public[:8]), seed: seed[:]}
}

// secret returns the secret of a client, which is the same as long as the key is.
func (k *signingKey) secret(clientID string) string {
	mac := hmac.New(sha256.New, k.seed)
	mac.Write([]byte(clientID))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (k *signingKey) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (k *signingKey) Key() any                                    { return k.private }
func (k *signingKey) ID() string                                  { return k.id }

// public returns the public half of the key.
func (k *signingKey) public() jose.JSONWebKeySet {
	return jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{
		Key: &k.private.PublicKey, KeyID: k.id, Algorithm: string(jose.RS256), Use: "sig",
	}}}
}
