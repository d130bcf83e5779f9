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
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
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
	names := map[string]v1.Descriptor{}
	for _, d := range index.Manifests {
		names[d.Annotations["org.opencontainers.image.ref.name"]] = d
	}
	require.Len(t, names, 3)
	require.Equal(t, image[1], names["registry.example/littoral/base:"+version].Digest.String())

	content := func(name, config, layer string) map[string]string {
		require.Contains(t, names, name)
		made, err := images.Image(names[name].Digest)
		require.NoError(t, err)
		manifest, err := made.Manifest()
		require.NoError(t, err)
		require.EqualValues(t, config, manifest.Config.MediaType)
		require.Len(t, manifest.Layers, 1)
		require.EqualValues(t, layer, manifest.Layers[0].MediaType)
		layers, err := made.Layers()
		require.NoError(t, err)
		packed, err := layers[0].Compressed()
		require.NoError(t, err)
		return unpacked(t, packed)
	}
	number := strings.TrimPrefix(version, "v")
	chart := content("registry.example/littoral/charts/littoral-lighthouse:"+number, chartConfig, chartLayer)
	packed, err := os.Open(filepath.Join(one, "littoral-lighthouse-"+number+".tgz"))
	require.NoError(t, err)
	require.Equal(t, chart, unpacked(t, packed))
	aChart(t, "lighthouse", chart, text)
	stages := content("registry.example/littoral/manifests/lighthouse:"+version, fluxConfig, fluxLayer)
	forFlux(t, stages, read(t, one, "littoral-lighthouse-flux.yaml"), text)
}

// TestAChartIsItsOverlay, of all functions: without images, which take minutes to build.
func TestAChartIsItsOverlay(t *testing.T) { //nolint:paralleltest // it runs in the root of the tree
	t.Chdir("../..")
	r := &release{version: version, commit: "none"}
	text, err := r.render("knative/overlays/edge")
	require.NoError(t, err)
	images := map[string]string{}
	manifest := regexp.MustCompile(`ko://[^\s"']+`).ReplaceAllStringFunc(string(text), func(name string) string {
		images[name] = "registry.example/" + strings.TrimPrefix(name, "ko://") + "@sha256:00"
		return images[name]
	})
	files, err := r.chart("edge", text, images)
	require.NoError(t, err)
	chart := map[string]string{}
	for _, f := range files {
		chart[f.name] = string(f.body)
	}
	aChart(t, "edge", chart, manifest)
}

// aChart requires of a chart what Helm does, with its templates rendered as Helm would: they use nothing that only Helm has. With the
// values that it comes with, its objects are those of the manifest; with others, these are where the former were.
func aChart(t *testing.T, overlay string, chart map[string]string, manifest string) {
	t.Helper()
	folder := "littoral-" + overlay + "/"
	var about struct{ APIVersion, Name, Version, Type, AppVersion, KubeVersion, Description, Home string }
	require.NoError(t, yaml.UnmarshalStrict([]byte(chart[folder+"Chart.yaml"]), &about))
	require.Equal(t, []string{"v2", "littoral-" + overlay, strings.TrimPrefix(version, "v")}, []string{about.APIVersion, about.Name, about.Version})
	var given map[string]map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(chart[folder+"values.yaml"]), &given))
	require.Contains(t, given["settings"], "OIDC_ISSUER")
	require.Contains(t, given["baseURL"], "hostname")
	want := objects(t, manifest)
	require.Contains(t, want, "Namespace littoral")
	delete(want, "Namespace littoral") // users make it, with the Secrets
	require.Equal(t, want, objects(t, rendered(t, chart, given)))

	former, _ := given["baseURL"]["hostname"].(string)
	given["baseURL"]["hostname"], given["settings"]["LOG_LEVEL"], given["settings"]["ODD"] = "elsewhere.example", "DEBUG", "a \"b\": {{c}}\n#d"
	other := objects(t, rendered(t, chart, given))
	require.Len(t, other, len(want))
	route, err := json.Marshal(other["HTTPRoute lighthouse-controller-list"])
	require.NoError(t, err)
	require.Contains(t, string(route), "elsewhere.example")
	require.NotContains(t, string(route), former)
	data, ok := other["ConfigMap littoral"]["data"].(map[string]any)
	require.True(t, ok)
	require.Equal(t, []any{"DEBUG", "a \"b\": {{c}}\n#d"}, []any{data["LOG_LEVEL"], data["ODD"]})

	migrates, ok := want["Job migrate"]["metadata"].(map[string]any)
	require.True(t, ok)
	require.Subset(t, migrates["annotations"], map[string]any{
		"helm.sh/hook": "post-install,pre-upgrade", "argocd.argoproj.io/hook": "Sync", "argocd.argoproj.io/sync-wave": "1",
	})
}

// forFlux requires that the stages together are the manifest, and that Flux applies one after the other.
func forFlux(t *testing.T, content map[string]string, how, manifest string) {
	t.Helper()
	var all string
	for _, stage := range stages {
		require.Contains(t, content, stage+"/littoral.yaml")
		all += content[stage+"/littoral.yaml"]
	}
	require.Len(t, content, len(stages))
	require.Equal(t, objects(t, manifest), objects(t, all))
	made := objects(t, how)
	require.Len(t, made, len(stages)+1)
	source := made["OCIRepository littoral-lighthouse"]["spec"].(map[string]any) //nolint:forcetypeassert // else the test fails
	require.Equal(t, "oci://registry.example/littoral/manifests/lighthouse", source["url"])
	before := ""
	for _, stage := range stages {
		spec, ok := made["Kustomization littoral-lighthouse-"+stage]["spec"].(map[string]any)
		require.True(t, ok, stage)
		require.Equal(t, "./"+stage, spec["path"])
		require.Equal(t, true, spec["wait"])
		if before != "" {
			require.Equal(t, []any{map[string]any{"name": before}}, spec["dependsOn"])
		}
		before = "littoral-lighthouse-" + stage
	}
}

// rendered is what the templates of a chart make of values.
func rendered(t *testing.T, chart map[string]string, values map[string]map[string]any) string {
	t.Helper()
	var all strings.Builder
	for name, text := range chart {
		if strings.Contains(name, "/templates/") {
			parsed, err := template.New(name).Option("missingkey=error").Parse(text)
			require.NoError(t, err)
			all.WriteString("\n---\n")
			require.NoError(t, parsed.Execute(&all, map[string]any{"Values": values}))
		}
	}
	return all.String()
}

// objects are those of a text by kind and name.
func objects(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for _, part := range regexp.MustCompile(`(?m)^---\n`).Split(text, -1) {
		if strings.TrimSpace(part) == "" {
			continue
		}
		var o map[string]any
		require.NoError(t, yaml.UnmarshalStrict([]byte(part), &o), part)
		about, ok := o["metadata"].(map[string]any)
		require.True(t, ok, part)
		name := fmt.Sprint(o["kind"], " ", about["name"])
		if group, _, core := strings.Cut(fmt.Sprint(o["apiVersion"]), "/"); core && o["kind"] == "Service" {
			name += " of " + group
		}
		require.NotContains(t, all, name)
		all[name] = o
	}
	return all
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
	return slices.Collect(maps.Keys(unpacked(t, file)))
}

func unpacked(t *testing.T, from io.ReadCloser) map[string]string {
	t.Helper()
	defer func() { require.NoError(t, from.Close()) }()
	z, err := gzip.NewReader(from)
	require.NoError(t, err)
	archive := tar.NewReader(z)
	files := map[string]string{}
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		body, err := io.ReadAll(archive)
		require.NoError(t, err)
		files[h.Name] = string(body)
	}
}
