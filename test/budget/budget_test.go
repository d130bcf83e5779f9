// Package budget_test holds every function to the size and the memory that its class may have.
package budget_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/loopback"
	"github.com/littoral-project/littoral/shared/store/storetest"
	"github.com/littoral-project/littoral/test/images"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestEveryFunctionIsWithinItsBudget(t *testing.T) {
	programs, err := images.Build(t.Context(), t.TempDir(), func(string) bool { return true })
	require.NoError(t, err)
	database := storetest.URL(t)
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		t.Run(name, func(t *testing.T) {
			_, program, err := images.Weigh(programs[name])
			require.NoError(t, err)
			limits := images.Limits(name)
			started := memory(t, programs[name], database)
			t.Logf("%.2f of %g MB of image, %.1f of %g MiB of memory", program+images.Base, limits.Image, started, limits.Started)
			require.LessOrEqual(t, program+images.Base, limits.Image, "MB of image")
			require.LessOrEqual(t, started, limits.Started, "MiB of memory")
		})
	}
}

// TestTheAgentOfAMachineIsSmall: it is put on edge devices as one static program.
func TestTheAgentOfAMachineIsSmall(t *testing.T) {
	const most = 15e6 // bytes
	program := filepath.Join(t.TempDir(), "edge")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "../../infra/agents/edge")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	info, err := os.Stat(program)
	require.NoError(t, err)
	t.Logf("%.1f MB of %.0f", float64(info.Size())/1e6, most/1e6)
	require.LessOrEqual(t, float64(info.Size()), most)
}

// memory starts the program and returns what it holds once it has answered with what it has read of Postgres.
func memory(t *testing.T, program, database string) float64 {
	t.Helper()
	address, err := loopback.Free(t.Context())
	require.NoError(t, err)

	const nowhere = "http://127.0.0.1:9"
	var log bytes.Buffer
	cmd := exec.Command(program)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), fmt.Sprintf("PORT=%d", address.Port()), "DATABASE_URL=" + database, "K_SINK=" + nowhere,
		"OIDC_ISSUER=" + nowhere, "OIDC_AUDIENCE=littoral", "PROMETHEUS_ADDRESS=" + nowhere,
		"OBJECTS_URL=file://" + t.TempDir(), "RULES_API_URL=" + nowhere, "RULES_BACKEND=files", "RULES_DIR=" + t.TempDir(),
	}
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait() // it was killed
	}()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		r, err := http.Get("http://" + address.String() + function.ReadyPath) // it answers or is not there
		if assert.NoError(c, err) {
			defer func() { _ = r.Body.Close() }()
			assert.Equal(c, http.StatusOK, r.StatusCode)
		}
	}, 20*time.Second, 5*time.Millisecond)
	held := images.Resident(cmd.Process.Pid)
	require.Positive(t, held, "%s", log.Bytes())
	return held
}
