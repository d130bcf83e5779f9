// Package logserver starts a real log store for tests.
package logserver

import (
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/logs"
	"github.com/littoral-project/littoral/shared/loopback"
)

// setting is the variable with the path of the server that "make e2e-logs" and "make e2e-collector" build.
const setting = "LITTORAL_VICTORIALOGS"

// VictoriaLogs starts a server that ends with the test, and returns its address and how to ask it. Without one the test is skipped.
func VictoriaLogs(t *testing.T) (address string, remote *logs.Remote) {
	t.Helper()
	program := os.Getenv(setting)
	if program == "" {
		t.Skip("a real VictoriaLogs is not built: make e2e-logs or make e2e-collector")
	}
	at, err := loopback.Free(t.Context())
	require.NoError(t, err)
	server := exec.Command(program, "-httpListenAddr="+at.String(), "-storageDataPath="+t.TempDir(), "-loggerLevel=ERROR")
	server.Stderr = os.Stderr
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	})
	address = "http://" + at.String()
	remote, err = logs.NewRemote(address, http.Header{}, http.DefaultClient)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := remote.Call(t.Context(), "health", nil, "", nil)
		return err == nil
	}, 30*time.Second, 20*time.Millisecond)
	return address, remote
}
