// Command base pushes the base of all images and prints its reference: Mozilla's certificate authorities, a user that
// is not root, and nothing else. It has a seventh of the size of a base with time zones, which no function needs, and
// needs no downloads except Go modules.
//
//	base registry.example.com/littoral/base
//	base                                        # $KO_DOCKER_REPO/base, as in "make deploy"
//
// The list of authorities is part of the version of the module, so the same source gives the same digest everywhere. A
// cluster with its own authorities mounts them and sets SSL_CERT_FILE or SSL_CERT_DIR.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// certificates is the first path that Go and others try.
const certificates = "etc/ssl/certs/ca-certificates.crt"

// nobody is the user of a process if its pod does not set one.
const nobody = "65532:65532"

// platforms are those of clusters and of edge devices; ko's setting KO_DEFAULTPLATFORMS selects for which of them an
// image is built.
var platforms = []v1.Platform{
	{OS: "linux", Architecture: "amd64"},
	{OS: "linux", Architecture: "arm64"},
	{OS: "linux", Architecture: "arm", Variant: "v7"},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	to := os.Getenv("KO_DOCKER_REPO") + "/base"
	if len(os.Args) > 1 {
		to = os.Args[1]
	}
	pushed, err := push(ctx, to)
	if err != nil {
		fmt.Fprintln(os.Stderr, "base:", err)
		os.Exit(1)
	}
	fmt.Println(pushed)
}

// push returns the reference of the pushed image. It uses the credentials of docker login.
func push(ctx context.Context, to string) (name.Digest, error) {
	repository, err := name.NewRepository(to)
	if err != nil {
		return name.Digest{}, err
	}
	index, err := base()
	if err != nil {
		return name.Digest{}, err
	}
	digest, err := index.Digest()
	if err != nil {
		return name.Digest{}, err
	}
	// Also with a tag, since some registries delete untagged images.
	credentials := remote.WithAuthFromKeychain(authn.DefaultKeychain)
	if err := remote.WriteIndex(repository.Tag("latest"), index, remote.WithContext(ctx), credentials); err != nil {
		return name.Digest{}, fmt.Errorf("push: %w", err)
	}
	return repository.Digest(digest.String()), nil
}

// base is the same image for each platform, since it contains no program.
func base() (v1.ImageIndex, error) {
	layer, err := layer()
	if err != nil {
		return nil, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, platform := range platforms {
		image, err := mutate.ConfigFile(mutate.MediaType(empty.Image, types.OCIManifestSchema1), &v1.ConfigFile{
			OS: platform.OS, Architecture: platform.Architecture, Variant: platform.Variant,
			Config: v1.Config{User: nobody},
		})
		if err != nil {
			return nil, err
		}
		image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &platform},
		})
	}
	return index, nil
}

// layer contains the list without timestamps, so it is always the same. Such a file cannot express Mozilla's conditions
// on the trust in some authorities; the files of distributions cannot either.
func layer() (v1.Layer, error) {
	var list, archive bytes.Buffer
	for root := range bundle.Roots() {
		if err := pem.Encode(&list, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	w := tar.NewWriter(&archive)
	err := w.WriteHeader(&tar.Header{Name: certificates, Mode: 0o444, Size: int64(list.Len())})
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(list.Bytes()); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }
	return tarball.LayerFromOpener(open,
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression))
}
