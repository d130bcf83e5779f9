package knative_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/littoral-project/littoral/shared/auth"
)

// TestTheConsoleFromZero opens the console in a browser while everything sleeps, through the real ingress, and waits until
// an application that is handed in afterwards is on the screen.
func TestTheConsoleFromZero(t *testing.T) {
	w := newWorld(t)
	modules, err := filepath.Abs(filepath.Join(here, "bin", "tools", "browser"))
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(modules, "node_modules")); err != nil {
		t.Skip("there is no browser to drive: make e2e-console installs what it takes")
	}
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("there is no chromium")
	}
	transport, ok := w.client(auth.Viewer).Transport.(*oauth2.Transport)
	require.True(t, ok)
	token, err := transport.Source.Token()
	require.NoError(t, err)
	w.asleep()
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join(here, "test", "e2e", "console", "cluster.mjs"))
	cmd.Env = append(os.Environ(), "LITTORAL_SERVER="+w.Base, "LITTORAL_MODULES="+modules, "LITTORAL_TOKEN="+token.AccessToken,
		"APPLICATION=e2e-console", "SHOT="+filepath.Join(here, "bin", "console-cluster.png"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var submitted time.Time
	steps := map[string]bool{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		step, ms, _ := strings.Cut(lines.Text(), " ")
		steps[step] = true
		t.Logf("%s after %s ms", step, ms)
		switch step {
		case "watching":
			submitted = time.Now()
			w.submit(t, application("e2e-console"))
		case "seen":
			t.Logf("seen %s after it was handed in, from zero", time.Since(submitted).Round(time.Second/10))
		}
	}
	require.NoError(t, cmd.Wait())
	require.True(t, steps["usable"] && steps["seen"], "%v", steps)
}
