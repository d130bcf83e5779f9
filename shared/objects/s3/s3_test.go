package s3_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/objects"
	"github.com/littoral-project/littoral/shared/objects/objectstest"
	"github.com/littoral-project/littoral/shared/objects/s3"
)

// serverSetting names the S3 server that "make e2e-s3" builds.
const serverSetting = "LITTORAL_S3_SERVER"

const accessKey, secretKey = "littoral", "a-secret-of-the-test"

// serve runs a real S3 server with no bucket in it and returns its address.
func serve(t *testing.T, dir string) string {
	t.Helper()
	program := os.Getenv(serverSetting)
	if program == "" {
		t.Skip("a real S3 server is not built: make e2e-s3")
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	var log bytes.Buffer
	server := exec.Command(program, "--access", accessKey, "--secret", secretKey, "--port", address,
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
	url := "http://" + address
	require.Eventually(t, func() bool {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(r)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err == nil
	}, 30*time.Second, 20*time.Millisecond)
	return url
}

func TestStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url := serve(t, dir)
	var n atomic.Int64
	objectstest.Run(t, func(t *testing.T) objects.Store {
		t.Helper()
		bucket := fmt.Sprintf("bucket-%d", n.Add(1))
		require.NoError(t, os.Mkdir(dir+"/"+bucket, 0o700)) // which is a bucket to this server
		return s3.New(s3.Config{
			Bucket: bucket, Prefix: "littoral/", Endpoint: url, PathStyle: true, AccessKey: accessKey, SecretKey: secretKey,
		}, http.DefaultClient)
	})
}

func TestAWrongKeyIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url := serve(t, dir)
	require.NoError(t, os.Mkdir(dir+"/bucket", 0o700))
	s := s3.New(s3.Config{Bucket: "bucket", Endpoint: url, PathStyle: true, AccessKey: accessKey, SecretKey: "another"},
		http.DefaultClient)
	require.ErrorContains(t, s.Put(t.Context(), "k", []byte("x")), "SignatureDoesNotMatch")
}
