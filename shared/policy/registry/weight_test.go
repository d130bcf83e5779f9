package registry_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRegistry_staysLight: functions that only read policies must contain neither a PromQL parser nor a database
// driver.
func TestRegistry_staysLight(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".", "../remediation").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, heavy := range []string{"github.com/prometheus/prometheus", "google.golang.org/protobuf"} {
		require.NotContains(t, string(out), heavy, "the registry and what carries out remediations must stay light")
	}
	out, err = exec.CommandContext(t.Context(), "go", "list", "-deps", ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, dep := range strings.Fields(string(out)) {
		require.NotEqual(t, "github.com/jackc/pgx/v5", dep)
	}
}
