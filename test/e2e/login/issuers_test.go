package login_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"

	"github.com/littoral-project/littoral/infra/runner/issuer"
	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/loopback"
)

// laptop is the issuer of the laptop host.
func laptop(t *testing.T, base string) provider {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	i, err := issuer.New(issuer.Options{
		URL: server.URL + "/oidc", Dir: dir, Audience: "littoral", Clients: issuer.People(),
		Users: issuer.Users(), Console: []string{base},
	})
	require.NoError(t, err)
	mux.Handle("/oidc/", i.Handler())
	client := i.Credentials(issuer.Console)
	p := provider{
		url: server.URL + "/oidc", endsToo: true, passwords: map[string]string{},
		config:   auth.Config{Issuer: server.URL + "/oidc", Audience: "littoral"},
		settings: map[string]string{"LOGIN_CLIENT_ID": client.ClientID, "LOGIN_CLIENT_SECRET": client.ClientSecret, "DIR": dir},
	}
	for _, user := range issuer.Users() {
		p.passwords[user.Name] = i.Password(user.Name)
	}
	return p
}

// dex is a real issuer, which knows groups and no roles. Its passwords are hashed cheaply, since nobody attacks them here.
func dex(t *testing.T, base string) provider {
	t.Helper()
	dir := os.Getenv("LITTORAL_DEX")
	if dir == "" {
		t.Skip("LITTORAL_DEX names no directory with dex: make e2e-login")
	}
	for range 5 {
		if p, ok := startDex(t, dir, base); ok {
			return p
		}
	}
	t.Fatal("dex does not start")
	return provider{}
}

// startDex starts dex on a free port. It reports false if somebody else has taken that port meanwhile, as a parallel test may.
func startDex(t *testing.T, dir, base string) (provider, bool) {
	t.Helper()
	free, err := loopback.Free(t.Context())
	require.NoError(t, err)
	address := free.String()
	at := "http://" + address + "/" + rand.Text() // so that nobody is taken for this one
	p := provider{
		url: at, passwords: map[string]string{},
		config: auth.Config{
			Issuer: at, Audience: "littoral-console", GroupsClaim: "groups",
			GroupRoles: map[string]string{"sea-viewers": "viewer", "sea-operators": "operator", "sea-admins": "admin"},
		},
		settings: map[string]string{
			"LOGIN_CLIENT_ID": "littoral-console", "LOGIN_CLIENT_SECRET": "secret of the console",
			"LOGIN_SCOPES": "openid,profile,groups,offline_access", "LOGIN_CLI_CLIENT_ID": "littoral-cli",
			"LOGIN_CLI_SCOPES": "openid,profile,groups,offline_access,audience:server:client_id:littoral-console",
		},
	}
	var people strings.Builder
	for _, user := range []string{"viewer", "operator", "admin"} {
		p.passwords[user] = "password of " + user
		hash, err := bcrypt.GenerateFromPassword([]byte(p.passwords[user]), 10) // dex takes no cheaper one
		require.NoError(t, err)
		fmt.Fprintf(&people, `
  - {email: %[1]s@example.org, hash: %[2]q, username: %[1]s, name: %[1]s, preferredUsername: %[1]s, emailVerified: true, userID: id-of-%[1]s, groups: [sea-%[1]ss, admin]}`,
			user, hash)
	}
	config := fmt.Sprintf(`
issuer: %[1]s
storage: {type: memory}
web: {http: %[2]s}
frontend: {dir: %[3]s}
oauth2: {skipApprovalScreen: true, responseTypes: [code], passwordConnector: local, grantTypes: [authorization_code, refresh_token, password, "urn:ietf:params:oauth:grant-type:device_code"]}
logger: {level: error}
enablePasswordDB: true
staticClients:
  - {id: littoral-console, name: Littoral, secret: secret of the console, redirectURIs: [%[4]s/auth/callback], trustedPeers: [littoral-cli]}
  - {id: littoral-cli, name: Littoral's command line, public: true}
staticPasswords:%[5]s
`, p.url, address, filepath.Join(dir, "web"), base, people.String())
	file := filepath.Join(t.TempDir(), "dex.yaml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	var said bytes.Buffer
	command := exec.CommandContext(t.Context(), filepath.Join(dir, "dex"), "serve", file)
	command.Stdout, command.Stderr = &said, &said
	require.NoError(t, command.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait()
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
		if t.Failed() {
			t.Log(said.String())
		}
	})
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		select {
		case <-ended:
			t.Logf("dex ended: %s", said.String())
			return p, false
		case <-time.After(20 * time.Millisecond):
		}
		if answer, err := http.Get(p.url + "/.well-known/openid-configuration"); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return p, true
			}
		}
	}
	return p, false
}

// challenge is the S256 challenge of a PKCE verifier.
func challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
