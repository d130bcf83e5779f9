package main

import (
	"archive/tar"
	"crypto/x509"
	"io"
	"log"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/test/images"
)

// server is a registry and its address.
func server(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	address, err := url.Parse(s.URL)
	require.NoError(t, err)
	return address.Host
}

func TestEveryPlatformFindsCertificatesAndRunsAsNobody(t *testing.T) {
	pushed, err := push(t.Context(), server(t)+"/littoral/base")
	require.NoError(t, err)
	index, err := remote.Index(pushed, remote.WithContext(t.Context()))
	require.NoError(t, err)
	for _, platform := range platforms {
		t.Run(platform.String(), func(t *testing.T) {
			image, err := remote.Image(pushed, remote.WithContext(t.Context()), remote.WithPlatform(platform))
			require.NoError(t, err)
			config, err := image.ConfigFile()
			require.NoError(t, err)
			require.Equal(t, nobody, config.Config.User)

			unpacked := mutate.Extract(image)
			defer func() { require.NoError(t, unpacked.Close()) }()
			files := tar.NewReader(unpacked)
			file, err := files.Next()
			require.NoError(t, err)
			require.Equal(t, certificates, file.Name)
			require.EqualValues(t, 0o444, file.Mode, "whoever runs may read it")
			text, err := io.ReadAll(files)
			require.NoError(t, err)
			require.True(t, x509.NewCertPool().AppendCertsFromPEM(text))
			_, err = files.Next()
			require.ErrorIs(t, err, io.EOF, "nothing else is in it")
		})
	}
	layer, err := layer()
	require.NoError(t, err)
	size, err := layer.Size()
	require.NoError(t, err)
	require.LessOrEqual(t, float64(size)/1e6, images.Base, "MB")
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, len(platforms))
}

func TestTheSameSourceGivesTheSameDigest(t *testing.T) {
	var digests []string
	for range 2 {
		pushed, err := push(t.Context(), server(t)+"/base")
		require.NoError(t, err)
		digests = append(digests, pushed.DigestStr())
	}
	require.Equal(t, digests[0], digests[1])
}

func TestWhatIsNoRepositoryIsRefused(t *testing.T) {
	_, err := push(t.Context(), "Not A Repository")
	var bad *name.ErrBadName
	require.ErrorAs(t, err, &bad)
}
