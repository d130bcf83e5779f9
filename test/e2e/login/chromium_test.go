package login_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAPersonSignsInWithChromium at the console of each issuer, and out again.
func TestAPersonSignsInWithChromium(t *testing.T) {
	modules := os.Getenv("LITTORAL_MODULES")
	if modules == "" {
		t.Skip("LITTORAL_MODULES names no folder with playwright-core: make e2e-console")
	}
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("there is no chromium on this machine")
	}
	everywhere(t, func(t *testing.T, s *system) {
		name := "operator"
		if !s.endsToo { // dex, which knows people by their mail
			name += "@example.org"
		}
		run := exec.CommandContext(t.Context(), "node", "chromium.mjs")
		run.Env = append(os.Environ(), "LITTORAL_SERVER="+s.URL, "SIGN_IN_NAME="+name, "SIGN_IN_PASSWORD="+s.passwords["operator"])
		said, err := run.CombinedOutput()
		require.NoError(t, err, "%s", said)
	})
}
