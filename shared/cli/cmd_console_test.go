package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConsole_opensThePageSignedIn(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(home, "token-admin"), []byte("secret\n"), 0o600))
	var opened string
	var out bytes.Buffer
	sh := Shell{
		Stdout: &out, Stderr: &out,
		Getenv: func(key string) string { return map[string]string{"LITTORAL_HOME": home}[key] },
		Open:   func(_ context.Context, address string) error { opened = address; return nil },
	}
	require.Zero(t, sh.Run(t.Context(), []string{"console"}))
	require.Equal(t, "http://127.0.0.1:8080/console/#token=secret", opened)
	require.NotContains(t, out.String(), "secret", "a token is not for the screen when a browser could be opened")

	out.Reset()
	sh.Open = func(context.Context, string) error { return errors.New("there is no browser") }
	require.Zero(t, sh.Run(t.Context(), []string{"console"}))
	require.Equal(t, "http://127.0.0.1:8080/console/#token=secret\n", out.String())

	out.Reset()
	require.Zero(t, sh.Run(t.Context(), []string{"--server", "https://littoral.example/", "console", "--print"}))
	require.Equal(t, "https://littoral.example/console/\n", out.String(), "the laptop's token goes to no other server")
}
