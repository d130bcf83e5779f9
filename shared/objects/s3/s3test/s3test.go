// Package s3test runs a real S3 server for a test.
package s3test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/loopback"
	"github.com/littoral-project/littoral/shared/objects/s3"
)

// serverSetting is the variable with the path of the S3 server that "make e2e-s3" builds.
const serverSetting = "LITTORAL_S3_SERVER"

const accessKey, secretKey = "littoral", "a-secret-of-the-test"

// Server is an S3 server that ends with its test.
type Server struct {
	dir, url string
	buckets  atomic.Int64
}

// Start starts a server. If it has not been built, the test is skipped with a hint how to build it.
func Start(t testing.TB) *Server {
	t.Helper()
	dir := t.TempDir()
	program := os.Getenv(serverSetting)
	if program == "" {
		t.Skip("a real S3 server is not built: make e2e-s3")
	}
	address, err := loopback.Free(t.Context())
	require.NoError(t, err)
	var log bytes.Buffer
	server := exec.Command(program, "--access", accessKey, "--secret", secretKey, "--port", address.String(),
		"posix", "--sidecar", t.TempDir(), dir)
	server.Stdout, server.Stderr = &log, &log
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
		if t.Failed() {
			t.Logf("the S3 server: %s", log.String())
		}
	})
	url := "http://" + address.String()
	require.Eventually(t, func() bool {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(r)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err == nil
	}, 30*time.Second, 20*time.Millisecond)
	return &Server{dir: dir, url: url}
}

// Bucket creates a new bucket and returns its configuration.
func (s *Server) Bucket(t testing.TB) s3.Config {
	t.Helper()
	bucket := fmt.Sprintf("bucket-%d", s.buckets.Add(1))
	require.NoError(t, os.Mkdir(filepath.Join(s.dir, bucket), 0o700)) // this server treats a directory as a bucket
	return s3.Config{
		Bucket: bucket, Prefix: "littoral/", Endpoint: s.url, PathStyle: true, AccessKey: accessKey, SecretKey: secretKey,
	}
}
