package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// built is the repository that images have while they are built. Its registry is in this process: whoever builds reaches it as
// a proxy, so that its name, which becomes part of the images, is the same in each run.
const built = "images.localhost/littoral"

// stages are those of a deployment, in their order: functions before what wakes them. For Argo CD each is a wave, which comes
// when the former is ready.
var stages = []string{"infra", "migrate", "functions", "triggers", "routes"}

// manifests builds the images of the overlays into a layout of OCI, and writes the manifests that name them by digest.
func (r *release) manifests(ctx context.Context) error {
	store, err := os.MkdirTemp("", "littoral-images-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(store) }()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with this call
	if err != nil {
		return err
	}
	images := &http.Server{ReadHeaderTimeout: time.Minute, Handler: ourselves(registry.New(
		registry.Logger(log.New(io.Discard, "", 0)), registry.WithBlobHandler(registry.NewDiskBlobHandler(store)),
	))}
	go func() { _ = images.Serve(listener) }()
	defer func() { _ = images.Close() }()
	proxy := "http://" + listener.Addr().String()

	base, err := r.through(ctx, proxy, "", nil, "go", "run", "./scripts/deploy/base", built+"/base")
	if err != nil {
		return err
	}
	here := &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return url.Parse(proxy) }}
	for _, overlay := range r.overlays {
		rendered, err := r.render(filepath.Join("knative", "overlays", overlay))
		if err != nil {
			return fmt.Errorf("overlay %s: %w", overlay, err)
		}
		resolved, err := r.through(ctx, proxy, base, rendered, r.ko, "resolve", "--base-import-paths", "--sbom=spdx", "-f", "-")
		if err != nil {
			return fmt.Errorf("overlay %s: %w", overlay, err)
		}
		if err := r.export(resolved, here); err != nil {
			return fmt.Errorf("overlay %s: %w", overlay, err)
		}
		text := strings.ReplaceAll(resolved, built, r.images)
		if strings.Contains(text, "ko://") {
			return fmt.Errorf("overlay %s: some image was not built", overlay)
		}
		if err := r.write("littoral-"+overlay+".yaml", []byte(text)); err != nil {
			return err
		}
		images, err := imagesOf(string(rendered), resolved)
		if err == nil {
			err = r.installers(overlay, text, rendered, images)
		}
		if err != nil {
			return fmt.Errorf("overlay %s: %w", overlay, err)
		}
	}
	return nil
}

// ourselves answers calls of our registry, and forwards others: a proxy of Go modules may be asked without TLS, too.
func ourselves(images http.Handler) http.Handler {
	others := &httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}, ErrorLog: log.New(io.Discard, "", 0)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(built, r.Host+"/"):
			images.ServeHTTP(w, r)
		case r.URL.IsAbs():
			others.ServeHTTP(w, r)
		default:
			http.NotFound(w, r)
		}
	})
}

// render is the overlay as "make deploy" applies it, in the order of its stages.
func (r *release) render(folder string) ([]byte, error) {
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, err
	}
	all := objects.Resources()
	slices.SortStableFunc(all, func(x, y *resource.Resource) int {
		return stage(x) - stage(y)
	})
	var b bytes.Buffer
	for _, o := range all {
		if stage(o) < 0 {
			return nil, fmt.Errorf("%s %s is of no stage", o.GetKind(), o.GetName())
		}
		text, err := r.finished(o)
		if err != nil {
			return nil, err
		}
		b.WriteString("---\n")
		b.Write(text)
	}
	return b.Bytes(), nil
}

// finished is an object with what a release adds to it.
func (r *release) finished(o *resource.Resource) ([]byte, error) {
	annotations := o.GetAnnotations()
	annotations["argocd.argoproj.io/sync-wave"] = strconv.Itoa(stage(o))
	if o.GetKind() == "Job" {
		maps.Copy(annotations, hooks)
	}
	if err := o.SetAnnotations(annotations); err != nil {
		return nil, err
	}
	labels := o.GetLabels()
	labels["app.kubernetes.io/version"] = r.version // for the doctor; a pod's template has none, so nothing restarts for it
	if err := o.SetLabels(labels); err != nil {
		return nil, err
	}
	return o.AsYAML()
}

func stage(o *resource.Resource) int {
	return slices.Index(stages, o.GetLabels()["littoral.dev/stage"])
}

// through runs a program with the registry of this process as its proxy.
func (r *release) through(ctx context.Context, proxy, base string, stdin []byte, program string, args ...string) (string, error) {
	folder, err := filepath.Abs("bin/images")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(cmd.Environ(), "HTTP_PROXY="+proxy, "http_proxy="+proxy, "NO_PROXY=", "no_proxy=",
		"KO_DOCKER_REPO="+built, "KO_DEFAULTBASEIMAGE="+base, "KO_DEFAULTPLATFORMS="+strings.Join(r.platforms(), ","),
		"KOCACHE="+folder, "GOFLAGS=")
	cmd.Stdin = bytes.NewReader(stdin)
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		text := failure.String()
		return "", fmt.Errorf("%s: %w: %s", program, err, text[max(0, len(text)-2000):])
	}
	return strings.TrimSpace(string(out)), nil
}

// platforms are those of the images.
func (r *release) platforms() []string {
	return slices.DeleteFunc([]string{"linux/amd64", "linux/arm64"}, func(p string) bool { return !r.wanted(p) })
}

var reference = regexp.MustCompile(regexp.QuoteMeta(built) + `/[a-z0-9./-]+@sha256:[0-9a-f]{64}`)

// layout is the folder of images.
func (r *release) layout() (layout.Path, error) {
	folder := filepath.Join(r.out, "images")
	path, err := layout.FromPath(folder)
	if err != nil {
		return layout.Write(folder, empty.Index)
	}
	return path, nil
}

// keep adds an image to the layout under its name, and pushes it if that is wanted.
func (r *release) keep(image v1.Image, as string) error {
	path, err := r.layout()
	if err != nil {
		return err
	}
	final, err := name.NewTag(as)
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	match := func(d v1.Descriptor) bool { return d.Digest == digest }
	named := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": final.Name()})
	if err := path.ReplaceImage(image, match, named); err != nil || !r.push {
		return err
	}
	if err := remote.Write(final, image, remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("push %s: %w", final, err)
	}
	return nil
}

// export adds the images that the manifests name to the layout of the release.
func (r *release) export(manifests string, through http.RoundTripper) error {
	path, err := r.layout()
	if err != nil {
		return err
	}
	named := reference.FindAllString(manifests, -1)
	slices.Sort(named)
	for _, one := range slices.Compact(named) {
		ref, err := name.NewDigest(one)
		if err != nil {
			return err
		}
		described, err := remote.Get(ref, remote.WithTransport(through))
		if err != nil {
			return err
		}
		final, err := name.NewTag(strings.Replace(ref.Context().Name(), built, r.images, 1) + ":" + r.version)
		if err != nil {
			return err
		}
		as := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": final.Name()})
		match := func(d v1.Descriptor) bool { return d.Digest == described.Digest }
		if described.MediaType.IsIndex() {
			index, err := described.ImageIndex()
			if err != nil {
				return err
			}
			if err := path.ReplaceIndex(index, match, as); err != nil {
				return err
			}
			if r.push {
				err = remote.WriteIndex(final, index, remote.WithAuthFromKeychain(authn.DefaultKeychain))
			}
			if err != nil {
				return fmt.Errorf("push %s: %w", final, err)
			}
			continue
		}
		image, err := described.Image()
		if err != nil {
			return err
		}
		if err := r.keep(image, final.Name()); err != nil {
			return err
		}
	}
	return nil
}
