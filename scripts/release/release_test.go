package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/stretchr/testify/require"
)

const version = "v1.2.3-try"

// TestARelease: a small one, twice. "make release-check" compares whole ones, which takes long.
func TestARelease(t *testing.T) { //nolint:paralleltest // it runs in the root of the tree
	t.Chdir("../..")
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	keyFile := filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600))
	// In place of ko, which takes minutes to build: each image is the base of all images.
	ko := filepath.Join(dir, "ko")
	require.NoError(t, os.WriteFile(ko, []byte("#!/bin/sh\nexec sed \"s|ko://[^ ]*|$KO_DEFAULTBASEIMAGE|\"\n"), 0o700)) //nolint:gosec // a program
	out := func(name string) string {
		to := filepath.Join(dir, name)
		require.NoError(t, run(t.Context(), []string{
			"-version", version, "-dirty", "-parts", "littoral-probe,images", "-systems", "linux/amd64", "-overlays", "lighthouse",
			"-images", "registry.example/littoral", "-ko", ko, "-key", keyFile, "-out", to,
		}))
		return to
	}
	one := out("one")
	sums := read(t, one, checksums)
	require.Equal(t, sums, read(t, out("two"), checksums), "the same commit gives the same bytes")

	for line := range strings.Lines(sums) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		require.Equal(t, sum, fmt.Sprintf("%x", sha256.Sum256([]byte(read(t, one, name)))), name)
	}
	signature, err := base64.StdEncoding.DecodeString(read(t, one, checksums+".sig"))
	require.NoError(t, err)
	digest := sha256.Sum256([]byte(sums))
	require.True(t, ecdsa.VerifyASN1(&key.PublicKey, digest[:], signature))

	archive := "littoral-probe_" + version + "_linux_amd64"
	require.ElementsMatch(t, []string{"LICENSE", "README.md", "littoral-probe", "probe.service"}, members(t, filepath.Join(one, archive+".tar.gz")))
	var provenance struct {
		Subject       []subject
		PredicateType string
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, one, "provenance.intoto.json")), &provenance))
	require.Equal(t, "https://slsa.dev/provenance/v1", provenance.PredicateType)
	for _, s := range provenance.Subject {
		require.Contains(t, sums, s.Digest["sha256"]+"  "+s.Name+"\n")
	}
	file, err := os.Open(filepath.Join(one, archive+".spdx.json"))
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	sbom, err := spdxjson.Read(file)
	require.NoError(t, err)
	require.Greater(t, len(sbom.Packages), 2)

	text := read(t, one, "littoral-lighthouse.yaml")
	require.NotContains(t, text, "ko://")
	require.NotContains(t, text, built)
	image := regexp.MustCompile(`image: registry\.example/littoral/base@(sha256:[0-9a-f]{64})`).FindStringSubmatch(text)
	require.NotNil(t, image)
	require.Less(t, strings.Index(text, "kind: Namespace"), strings.Index(text, "kind: Job"), "in the order of stages")
	require.Contains(t, text, `argocd.argoproj.io/sync-wave: "2"`)
	require.Contains(t, text, "app.kubernetes.io/version: "+version)
	images, err := layout.ImageIndexFromPath(filepath.Join(one, "images"))
	require.NoError(t, err)
	index, err := images.IndexManifest()
	require.NoError(t, err)
	require.Len(t, index.Manifests, 1)
	require.Equal(t, image[1], index.Manifests[0].Digest.String())
	require.Equal(t, "registry.example/littoral/base:"+version, index.Manifests[0].Annotations["org.opencontainers.image.ref.name"])
}

func TestPlugins(t *testing.T) {
	t.Parallel()
	r := &release{version: version, out: t.TempDir(), at: "https://example.com"}
	require.NoError(t, r.plugins(map[string]string{"linux/arm64": "aa", "windows/amd64": "bb"}))
	krew := read(t, r.out, "littoral.krew.yaml")
	for _, part := range []string{"sha256: aa", "sha256: bb", "bin: littoral.exe", "uri: https://example.com/" + version + "/littoral_" + version + "_windows_amd64.zip"} {
		require.Contains(t, krew, part)
	}
	formula := read(t, r.out, "kn-littoral.rb")
	require.Contains(t, formula, `if OS.linux? && Hardware::CPU.arm?`)
	require.NotContains(t, formula, "bb", "Homebrew is not on Windows")
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"-version", "1.2"}, {"-version", "v1.2"}, {"-version", "v01.2.3"}} {
		require.ErrorContains(t, run(t.Context(), args), "version")
	}
	_, err := signer(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = signer("main.go")
	require.ErrorContains(t, err, "no ECDSA key")
}

func read(t *testing.T, folder, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	require.NoError(t, err)
	return string(text)
}

func members(t *testing.T, path string) (names []string) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	z, err := gzip.NewReader(file)
	require.NoError(t, err)
	archive := tar.NewReader(z)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		require.NoError(t, err)
		names = append(names, h.Name)
	}
}
