package telemetry_test

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/loopback"
)

// toolsDir is the directory with prometheus, promtool and alertmanager, built by "make e2e-telemetry".
const toolsDir = "LITTORAL_TELEMETRY_TOOLS"

// tool returns the path of a tool; without tools the test is skipped.
func tool(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv(toolsDir)
	if dir == "" {
		t.Skip("the real Prometheus and Alertmanager are not built: make e2e-telemetry")
	}
	return filepath.Join(dir, name)
}

// process is a server that ends with the test. If the test fails, its log is shown.
type process struct {
	URL string

	mu  sync.Mutex
	log bytes.Buffer
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

// serve runs a server of the Prometheus family and waits until it is ready.
func serve(t testing.TB, name, address string, args ...string) *process {
	t.Helper()
	p := &process{URL: "http://" + address}
	command := exec.Command(tool(t, name), append(args, "--web.listen-address="+address)...)
	command.Stdout, command.Stderr = p, p
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
		if t.Failed() {
			p.mu.Lock()
			defer p.mu.Unlock()
			t.Logf("%s:\n%s", name, p.log.Bytes())
		}
	})
	require.Eventually(t, func() bool {
		resp, err := http.Get(p.URL + "/-/ready")
		if err != nil {
			return false
		}
		return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	}, patience, 20*time.Millisecond, "%s is not ready", name)
	return p
}

func free(t testing.TB) string {
	t.Helper()
	address, err := loopback.Free(t.Context())
	require.NoError(t, err)
	return address.String()
}

func write(t testing.TB, path, text string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// example returns a file of infra/examples with the addresses and credentials replaced by those of the test.
func example(t testing.TB, name string, here map[string]string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../infra/examples", name))
	require.NoError(t, err)
	replaced := string(text)
	for there, own := range here {
		require.Contains(t, replaced, there, name)
		replaced = strings.ReplaceAll(replaced, there, own)
	}
	return replaced
}

// ruleFile is the path of the rules that the rules API knows under the name.
func (w *world) ruleFile(name string) string { return filepath.Join(w.rules, name+".yaml") }

// promtool checks a rule file written by the functions.
func (w *world) promtool(name string) {
	w.t.Helper()
	path := w.ruleFile(name)
	require.FileExists(w.t, path)
	out, err := exec.Command(tool(w.t, "promtool"), "check", "rules", "--lint=all", "--lint-fatal", path).CombinedOutput()
	require.NoError(w.t, err, "%s", out)
	require.Contains(w.t, string(out), "1 rules found")
}
