package victorialogs_test

import (
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/logs"
	"github.com/littoral-project/littoral/shared/logs/logstest"
	"github.com/littoral-project/littoral/shared/logs/victorialogs"
	"github.com/littoral-project/littoral/shared/loopback"
)

// setting is the variable with the path of the server that "make e2e-logs" builds.
const setting = "LITTORAL_VICTORIALOGS"

func TestConformance(t *testing.T) {
	t.Parallel()
	program := os.Getenv(setting)
	if program == "" {
		t.Skip("a real VictoriaLogs is not built: make e2e-logs")
	}
	address, err := loopback.Free(t.Context())
	require.NoError(t, err)
	server := exec.Command(program, "-httpListenAddr="+address.String(), "-storageDataPath="+t.TempDir(), "-loggerLevel=ERROR")
	server.Stderr = os.Stderr
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	})
	remote, err := logs.NewRemote("http://"+address.String(), http.Header{}, http.DefaultClient)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := remote.Call(t.Context(), "health", nil, "", nil)
		return err == nil
	}, 30*time.Second, 20*time.Millisecond)
	logstest.Run(t, func(t *testing.T) logs.Store {
		t.Helper()
		return victorialogs.New(remote)
	})
}
