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
	"sync"
	"syscall"
	"testing"
	"time"

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
			t.Parallel()
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
	p := start(t, program, database, "OIDC_ISSUER="+nowhere)
	defer p.end()
	held := images.Resident(p.pid)
	require.Positive(t, held, "%s", p.log)
	return held
}

const nowhere = "http://127.0.0.1:9"

// process is a function's program that runs.
type process struct {
	url string
	pid int
	log *bytes.Buffer
	end func()
}

// start runs a function's program until the test ends, and returns when it is ready.
func start(t *testing.T, program, database string, settings ...string) process {
	t.Helper()
	address, err := loopback.Free(t.Context())
	require.NoError(t, err)
	p := process{url: "http://" + address.String(), log: &bytes.Buffer{}}
	cmd := exec.Command(program)
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), fmt.Sprintf("PORT=%d", address.Port()), "DATABASE_URL=" + database, "K_SINK=" + nowhere,
		"OIDC_AUDIENCE=littoral", "PROMETHEUS_ADDRESS=" + nowhere,
		"OBJECTS_URL=file://" + t.TempDir(), "RULES_API_URL=" + nowhere, "RULES_BACKEND=files", "RULES_DIR=" + t.TempDir(),
	}, settings...)
	cmd.Stdout, cmd.Stderr = p.log, p.log
	require.NoError(t, cmd.Start())
	p.pid = cmd.Process.Pid
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // whoever waits for it to be ready says what it said
	}()
	p.end = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		<-ended
	})
	t.Cleanup(p.end)
	for deadline := time.After(time.Minute); !ready(p.url); {
		select {
		case <-ended:
			require.Fail(t, "it ended before it was ready", "%s", p.log)
		case <-deadline:
			p.end()
			require.Fail(t, "it is not ready", "%s", p.log)
		case <-time.After(5 * time.Millisecond):
		}
	}
	return p
}

// ready tells whether the function answers that it is.
func ready(url string) bool {
	r, err := http.Get(url + function.ReadyPath)
	if err != nil {
		return false
	}
	defer func() { _ = r.Body.Close() }()
	return r.StatusCode == http.StatusOK
}
