package prometheusrule

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/telemetry/rules"
)

// TestInCluster: the server is known by the cluster's own certificate, and a token that was renewed is the one sent.
func TestInCluster(t *testing.T) {
	t.Parallel()
	var sent []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, r.Header.Get("Authorization"))
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	host, port, err := net.SplitHostPort(u.Host)
	require.NoError(t, err)
	env := func(name string) string {
		return map[string]string{"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}[name]
	}
	account := t.TempDir()
	write := func(name string, text []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(account, name), text, 0o600))
	}
	_, err = inCluster(account, env)
	require.ErrorContains(t, err, "ca.crt")
	write("ca.crt", []byte("none"))
	_, err = inCluster(account, env)
	require.ErrorContains(t, err, "no certificate")
	write("ca.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	where, err := inCluster(account, env)
	require.NoError(t, err)
	s := New(where, "littoral", nil)
	require.ErrorContains(t, s.Put(t.Context(), rules.Group{Name: "a"}), "try again", "there is no token yet")
	for _, token := range []string{"one", "two\n"} {
		write("token", []byte(token))
		require.NoError(t, s.Put(t.Context(), rules.Group{Name: "a"}))
	}
	require.Equal(t, []string{"Bearer one", "Bearer two"}, sent)
	_, err = inCluster(account, func(string) string { return "" })
	require.ErrorContains(t, err, "no cluster")
}
