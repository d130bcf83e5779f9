package localpg

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// archive returns a file of the repository: a jar with a .txz in it, here with programs that only fail.
func archive(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o755))
	for _, program := range []string{"postgres", "initdb", "pg_ctl"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", program), []byte("#!/bin/sh\nexit 1\n"), 0o755))
	}
	packed := filepath.Join(dir, "postgres.txz")
	if out, err := exec.Command("tar", "-cJf", packed, "-C", dir, "bin").CombinedOutput(); err != nil {
		t.Skipf("no tar with xz here, so there is no archive to download: %s", out)
	}
	txz, err := os.ReadFile(packed)
	require.NoError(t, err)
	var jar bytes.Buffer
	z := zip.NewWriter(&jar)
	f, err := z.Create("postgres-linux-x86_64.txz")
	require.NoError(t, err)
	_, err = f.Write(txz)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return jar.Bytes()
}

func TestDownloadFrom(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // the library leaves a log there
	jar := archive(t)
	sum := sha256.Sum256(jar)
	repository := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.Contains(r.URL.Path, "/"+string(downloaded)+"/"):
			w.WriteHeader(http.StatusNotFound)
		case strings.HasSuffix(r.URL.Path, ".sha256"):
			_, _ = w.Write([]byte(hex.EncodeToString(sum[:])))
		default:
			_, _ = w.Write(jar)
		}
	}))
	defer repository.Close()
	into := filepath.Join(t.TempDir(), "postgres")
	require.NoError(t, downloadFrom(t.Context(), repository.URL, into), "the programs count, not that they start")
	require.True(t, complete(filepath.Join(into, "bin")))

	require.Error(t, downloadFrom(t.Context(), "http://127.0.0.1:1", filepath.Join(t.TempDir(), "postgres")))
}

func TestMissing_saysWhatToInstall(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, missing("", nil), "sudo apt-get install postgresql")
	require.ErrorContains(t, missing("13", errors.New("no network")), "apt-get install postgresql-13")
	require.ErrorContains(t, missing("13", errors.New("no network")), "no network")
	require.NotContains(t, missing("", nil).Error(), "%!")
}

func TestFind(t *testing.T) {
	t.Parallel()
	dir, ok := find("")
	require.True(t, ok, "the tests of this package have started one")
	major := versionOf(dir)
	require.NotEmpty(t, major)
	same, ok := find(major)
	require.True(t, ok)
	require.Equal(t, major, versionOf(same))
	_, ok = find("1")
	require.False(t, ok)
}
