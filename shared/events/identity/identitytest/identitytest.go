// Package identitytest plays a cluster that issues and proves tokens of ServiceAccounts.
package identitytest

import (
	"crypto/rsa"
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/auth/authtest"
	"github.com/littoral-project/littoral/shared/events/identity"
)

const issuer = "https://kubernetes.default.svc"

// Cluster is an API server as far as tokens go, and the volume that a pod in the namespace littoral has from it.
type Cluster struct {
	t      testing.TB
	key    *rsa.PrivateKey
	server *httptest.Server
	dir    string
}

// New starts an API server, which ends with the test.
func New(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{t: t, key: authtest.NewKey(t), dir: t.TempDir()}
	mine := c.Token(nil)
	c.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/openid/v1/jwks" || r.Header.Get("Authorization") != "Bearer "+mine {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_ = json.NewEncoder(w).Encode(authtest.Keys(c.key, "k"))
	}))
	t.Cleanup(c.server.Close)
	c.Write("api", mine)
	c.Write("broker", "for the Broker")
	c.Write("ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.server.Certificate().Raw})))
	return c
}

// Write puts a file into the volume.
func (c *Cluster) Write(name, text string) {
	c.t.Helper()
	require.NoError(c.t, os.WriteFile(filepath.Join(c.dir, name), []byte(text+"\n"), 0o600))
}

// Token is what a Trigger of the namespace littoral delivers with, but for the changes.
func (c *Cluster) Token(changes map[string]any) string {
	c.t.Helper()
	return authtest.Sign(c.t, c.key, "k", map[string]any{
		"iss": issuer, "sub": "system:serviceaccount:littoral:place-oidc", "aud": []string{"littoral-events"},
		"exp": time.Now().Add(time.Hour).Unix(),
	}, changes)
}

// Config is how a pod finds its volume.
func (c *Cluster) Config() identity.Config {
	c.t.Helper()
	at, err := url.Parse(c.server.URL)
	require.NoError(c.t, err)
	host, port, err := net.SplitHostPort(at.Host)
	require.NoError(c.t, err)
	return identity.Config{Dir: c.dir, Audience: "littoral-events", Host: host, Port: port}
}

// Stop ends the API server.
func (c *Cluster) Stop() { c.server.Close() }
