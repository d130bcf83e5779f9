// Command base pushes the base of all images and prints its reference: Mozilla's certificate authorities, a user that
// is not root, and nothing else. It is a seventh of the size of one with time zones, which no function needs, and
// nothing but Go modules is fetched.
//
//	base registry.example.com/littoral/base
//	base                                        # $KO_DOCKER_REPO/base, as "make deploy" has it
//
// The list of authorities belongs to the version of the module, so the same source gives the same digest anywhere. A
// cluster with authorities of its own mounts them and names them in SSL_CERT_FILE or SSL_CERT_DIR.
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

// certificates is where Go and others look first.
const certificates = "etc/ssl/certs/ca-certificates.crt"

// nobody is who a process runs as where its pod does not say.
const nobody = "65532:65532"

// platforms are those of clusters and of the devices at their edge; ko's setting KO_DEFAULTPLATFORMS says for which of
// them an image is built.
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

// push returns the reference of what it has pushed. Credentials are those that docker login has left.
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
	// By a tag as well, since some registries drop what has none.
	credentials := remote.WithAuthFromKeychain(authn.DefaultKeychain)
	if err := remote.WriteIndex(repository.Tag("latest"), index, remote.WithContext(ctx), credentials); err != nil {
		return name.Digest{}, fmt.Errorf("push: %w", err)
	}
	return repository.Digest(digest.String()), nil
}

// base is the same image for each platform, as nothing in it is a program.
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

// layer holds the list, and no times, so that it is the same whenever it is made. Such a file cannot hold the conditions
// under which Mozilla trusts some of the authorities, as those of distributions do not either.
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
