package cli_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/cli"
)

// TestContexts: a server is found by its name; a server that is named otherwise goes before the context in use.
func TestContexts(t *testing.T) {
	t.Parallel()
	asked := ""
	serve := func(name string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked = name
			_, _ = w.Write([]byte(`[{"name":"east","address":"https://east.example"},{"name":"west","address":"192.0.2.1"}]`))
		}))
		t.Cleanup(s.Close)
		return s
	}
	shore, harbour := serve("shore"), serve("harbour")
	config := t.TempDir()
	env := map[string]string{"XDG_CONFIG_HOME": config, "LITTORAL_HOME": t.TempDir()}
	run := func(want int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		sh := cli.Shell{Stdout: &out, Stderr: &out, Getenv: func(name string) string { return env[name] }}
		require.Equal(t, want, sh.Run(context.Background(), args), "%v: %s", args, &out)
		return out.String()
	}
	run(0, "--server", shore.URL, "context", "add", "shore")
	run(0, "--server", harbour.URL, "context", "add", "harbour")
	run(2, "context", "add", "nowhere")
	run(1, "context", "use", "nowhere")
	run(0, "context", "use", "harbour")
	list := run(0, "context", "list")
	require.Contains(t, list, "*         harbour   "+harbour.URL)

	where := func(args ...string) string {
		t.Helper()
		run(0, append(args, "get", "controllers")...)
		return asked
	}
	require.Equal(t, "harbour", where())
	require.Equal(t, "shore", where("--context", "shore"))
	require.Equal(t, "shore", where("--server", shore.URL))
	env["LITTORAL_CONTEXT"] = "shore"
	require.Equal(t, "shore", where())
	env["LITTORAL_SERVER"] = harbour.URL
	require.Equal(t, "harbour", where())
	delete(env, "LITTORAL_SERVER")
	delete(env, "LITTORAL_CONTEXT")
	run(2, "--server", shore.URL, "--context", "shore", "get", "controllers")
	require.Contains(t, run(1, "--context", "nowhere", "get", "controllers"), "littoral context list")

	run(0, "context", "add", "--lighthouse", shore.URL)
	require.Contains(t, run(0, "context", "list"), "http://192.0.2.1")
	run(0, "context", "remove", "harbour")
	require.NotContains(t, run(0, "context", "list"), "*")

	info, err := os.Stat(filepath.Join(config, "littoral", "contexts.json"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.Equal(t, 4, strings.Count(run(0, "context", "list"), "\n"))
}
