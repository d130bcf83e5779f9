package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// Media types of a chart, as Helm pushes and pulls it, and of what Flux applies.
const (
	chartConfig = "application/vnd.cncf.helm.config.v1+json"
	chartLayer  = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	fluxConfig  = "application/vnd.cncf.flux.config.v1+json"
	fluxLayer   = "application/vnd.cncf.flux.content.v1.tar+gzip"
)

// values are what users of the chart set: the ConfigMaps of the same meaning. baseURL is empty for an overlay without.
type values struct {
	Settings map[string]string `json:"settings"`
	BaseURL  map[string]string `json:"baseURL,omitempty"`
}

// sentinel stands for a value of base-url while the overlay is rendered.
func sentinel(key string) string { return "littoral-release-value-" + strings.ToLower(key) }

// valuesOf reads the values from the overlay as it is rendered.
func valuesOf(rendered []byte) (v values, err error) {
	routes := false
	for _, text := range bytes.Split(rendered, []byte("\n---\n")) {
		routes = routes || bytes.Contains(text, []byte("\nkind: HTTPRoute\n"))
		if !bytes.Contains(text, []byte("kind: ConfigMap\n")) {
			continue
		}
		var o struct {
			Metadata struct{ Name string }
			Data     map[string]string
		}
		if err := yaml.Unmarshal(text, &o); err != nil {
			return v, err
		}
		switch o.Metadata.Name {
		case "littoral":
			v.Settings = o.Data
		case "base-url":
			v.BaseURL = o.Data
		}
	}
	if v.Settings == nil {
		return v, fmt.Errorf("there is no ConfigMap littoral")
	}
	if !routes {
		v.BaseURL = nil
	}
	return v, nil
}

// templated is the overlay with the values of its base URL, and these values: as sentinels, wherever kustomize puts them.
func templated(folder string, rendered []byte) (all []*resource.Resource, v values, err error) {
	if v, err = valuesOf(rendered); err != nil {
		return nil, v, err
	}
	if v.BaseURL == nil {
		plain, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
		if err != nil {
			return nil, v, err
		}
		return plain.Resources(), v, nil
	}
	// The component's own replacements are made once more, with sentinels.
	component, err := os.ReadFile("knative/httproute/kustomization.yaml")
	if err != nil {
		return nil, v, err
	}
	var made struct {
		Replacements []any `json:"replacements"`
	}
	if err := yaml.Unmarshal(component, &made); err != nil {
		return nil, v, err
	}
	dir, err := os.MkdirTemp("", "littoral-chart-")
	if err != nil {
		return nil, v, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tree, err := filepath.Abs(folder)
	if err != nil {
		return nil, v, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, v, err
	}
	if tree, err = filepath.Rel(dir, tree); err != nil {
		return nil, v, err
	}
	sentinels := map[string]string{}
	for key := range v.BaseURL {
		sentinels[key] = sentinel(key)
	}
	patch, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "base-url", "namespace": "littoral"}, "data": sentinels,
	})
	if err != nil {
		return nil, v, err
	}
	text, err := yaml.Marshal(map[string]any{
		"resources": []string{tree}, "patches": []any{map[string]any{"patch": string(patch)}}, "replacements": made.Replacements,
	})
	if err != nil {
		return nil, v, err
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), text, 0o600); err != nil {
		return nil, v, err
	}
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, v, err
	}
	return objects.Resources(), v, nil
}

// hooks have Helm run the migration when there is a Postgres and before functions are replaced; on the first installation nothing
// stands yet, and functions wait for the schema. Argo CD, which would take them as hooks of its own, runs it in its wave, anew each time.
var hooks = map[string]string{
	"helm.sh/hook": "post-install,pre-upgrade", "helm.sh/hook-delete-policy": "before-hook-creation",
	"argocd.argoproj.io/hook": "Sync", "argocd.argoproj.io/hook-delete-policy": "BeforeHookCreation",
}

const settingsTemplate = `data:
{{- range $key, $value := .Values.settings }}
  {{ $key }}: {{ printf "%q" (print $value) }}
{{- end }}
`

// chart is the overlay as a Helm chart. Its objects are those of the manifest but the namespace, which users make with the Secrets; its
// values are the overlay's settings and base URL.
func (r *release) chart(overlay string, rendered []byte, images map[string]string) ([]file, error) {
	all, v, err := templated(filepath.Join("knative", "overlays", overlay), rendered)
	if err != nil {
		return nil, err
	}
	settings, err := yaml.Marshal(v)
	if err != nil {
		return nil, err
	}
	name := "littoral-" + overlay
	about, err := yaml.Marshal(map[string]any{
		"apiVersion": "v2", "name": name, "version": strings.TrimPrefix(r.version, "v"), "appVersion": r.version, "type": "application",
		"description": "Littoral, a meta operating system for the continuum of clusters and devices (overlay " + overlay + ")",
		"kubeVersion": ">= 1.31.0-0", "home": "https://" + ours,
	})
	if err != nil {
		return nil, err
	}
	files := []file{{name + "/Chart.yaml", 0o644, about}, {name + "/values.yaml", 0o644, settings}}
	slices.SortStableFunc(all, func(x, y *resource.Resource) int { return stage(x) - stage(y) })
	parts := map[string]*bytes.Buffer{}
	for _, o := range all {
		if o.GetKind() == "Namespace" {
			continue
		}
		text, err := r.finished(o)
		if err != nil {
			return nil, err
		}
		part := stages[stage(o)]
		if parts[part] == nil {
			parts[part] = &bytes.Buffer{}
		}
		templated := strings.ReplaceAll(string(text), "{{", `{{ "{{" }}`)
		for key := range v.BaseURL {
			templated = regexp.MustCompile(regexp.QuoteMeta(sentinel(key))+`\b`).ReplaceAllLiteralString(templated, `{{ printf "%q" .Values.baseURL.`+key+` }}`)
		}
		templated = source.ReplaceAllStringFunc(templated, func(name string) string { return cmp.Or(images[name], name) })
		if o.GetKind() == "ConfigMap" && o.GetName() == "littoral" {
			templated = regexp.MustCompile(`(?m)^data:\n(?:  .*\n)*`).ReplaceAllLiteralString(templated, settingsTemplate)
		}
		parts[part].WriteString("---\n" + templated)
	}
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		if bytes.Contains(parts[part].Bytes(), []byte("ko://")) || bytes.Contains(parts[part].Bytes(), []byte(sentinel(""))) {
			return nil, fmt.Errorf("%s of the chart names an image or a value that nobody knows", part)
		}
		files = append(files, file{name + "/templates/" + part + ".yaml", 0o644, parts[part].Bytes()})
	}
	return files, nil
}

// source is what an overlay calls an image: the package that it is built of.
var source = regexp.MustCompile(`ko://[^\s"']+`)

// imagesOf pairs what an overlay calls its images with their digests: both texts have the same objects in the same order.
func imagesOf(rendered, resolved string) (map[string]string, error) {
	named, final := source.FindAllString(rendered, -1), reference.FindAllString(resolved, -1)
	if len(named) != len(final) {
		return nil, fmt.Errorf("%d images are named and %d were built", len(named), len(final))
	}
	images := map[string]string{}
	for i, name := range named {
		if before := images[name]; before != "" && before != final[i] {
			return nil, fmt.Errorf("%s is both %s and %s", name, before, final[i])
		}
		images[name] = final[i]
	}
	return images, nil
}

// flux is the manifest of the overlay as Flux applies it: a folder for each stage, and what has Flux apply one after the other.
func (r *release) flux(overlay, manifest string) (content []file, how []byte, err error) {
	parts := map[string]*bytes.Buffer{}
	for _, text := range strings.Split("\n"+manifest, "\n---\n") {
		if strings.TrimSpace(text) == "" {
			continue
		}
		var o struct {
			Metadata struct{ Labels map[string]string }
		}
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			return nil, nil, err
		}
		part := o.Metadata.Labels["littoral.dev/stage"]
		if !slices.Contains(stages, part) {
			return nil, nil, fmt.Errorf("an object is of the stage %q", part)
		}
		if parts[part] == nil {
			parts[part] = &bytes.Buffer{}
		}
		parts[part].WriteString("---\n" + strings.TrimSpace(text) + "\n")
	}
	var b bytes.Buffer
	say := func(o map[string]any) {
		text, failed := yaml.Marshal(o)
		if failed != nil {
			err = failed
		}
		b.WriteString("---\n")
		b.Write(text)
	}
	name := "littoral-" + overlay
	meta := func(name string) map[string]any { return map[string]any{"name": name, "namespace": "flux-system"} }
	say(map[string]any{
		"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "OCIRepository", "metadata": meta(name),
		"spec": map[string]any{"interval": "1h", "url": "oci://" + r.images + "/manifests/" + overlay, "ref": map[string]any{"tag": r.version}},
	})
	before := ""
	for _, part := range stages {
		if parts[part] == nil {
			continue
		}
		content = append(content, file{part + "/littoral.yaml", 0o644, parts[part].Bytes()})
		spec := map[string]any{
			"interval": "1h", "timeout": "10m", "prune": true, "wait": true, "path": "./" + part,
			"sourceRef": map[string]any{"kind": "OCIRepository", "name": name},
		}
		if part == "migrate" {
			spec["force"] = true // a Job cannot be changed
		}
		if before != "" {
			spec["dependsOn"] = []any{map[string]any{"name": before}}
		}
		before = name + "-" + part
		say(map[string]any{"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": meta(before), "spec": spec})
	}
	return content, b.Bytes(), err
}

// artefact is an image in the sense of OCI that is none: its one layer is a folder, and its configuration says what of.
type artefact struct {
	manifest, config []byte
	layer            v1.Layer
}

func (a artefact) MediaType() (types.MediaType, error)                    { return types.OCIManifestSchema1, nil }
func (a artefact) RawConfigFile() ([]byte, error)                         { return a.config, nil }
func (a artefact) RawManifest() ([]byte, error)                           { return a.manifest, nil }
func (a artefact) LayerByDigest(v1.Hash) (partial.CompressedLayer, error) { return a.layer, nil }

// artefact packs files.
func (r *release) artefact(files []file, configType, layerType types.MediaType, config any) (image v1.Image, body []byte, err error) {
	body, _, err = r.pack(files, false)
	if err != nil {
		return nil, nil, err
	}
	a := artefact{layer: static.NewLayer(body, layerType)}
	if a.config, err = json.Marshal(config); err != nil {
		return nil, nil, err
	}
	describe := func(kind types.MediaType, content []byte) (v1.Descriptor, error) {
		digest, size, err := v1.SHA256(bytes.NewReader(content))
		return v1.Descriptor{MediaType: kind, Digest: digest, Size: size}, err
	}
	about, err := describe(configType, a.config)
	if err != nil {
		return nil, nil, err
	}
	layer, err := describe(layerType, body)
	if err != nil {
		return nil, nil, err
	}
	a.manifest, err = json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: about, Layers: []v1.Descriptor{layer},
		Annotations: map[string]string{
			"org.opencontainers.image.created": r.made.Format(time.RFC3339), "org.opencontainers.image.source": "https://" + ours,
			"org.opencontainers.image.revision": r.commit, "org.opencontainers.image.version": r.version,
		},
	})
	if err != nil {
		return nil, nil, err
	}
	image, err = partial.CompressedToImage(a)
	return image, body, err
}

// installers writes what Helm, Argo CD and Flux install the overlay with, into the layout of images too.
func (r *release) installers(overlay, manifest string, rendered []byte, images map[string]string) error {
	final := map[string]string{}
	for name, built_ := range images {
		final[name] = strings.Replace(built_, built, r.images, 1)
	}
	chart, err := r.chart(overlay, rendered, final)
	if err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	var about map[string]any
	if err := yaml.Unmarshal(chart[0].body, &about); err != nil {
		return err
	}
	image, body, err := r.artefact(chart, chartConfig, chartLayer, about)
	if err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	number := strings.TrimPrefix(r.version, "v")
	if err := r.write("littoral-"+overlay+"-"+number+".tgz", body); err != nil {
		return err
	}
	if err := r.keep(image, r.images+"/charts/littoral-"+overlay+":"+number); err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	content, how, err := r.flux(overlay, manifest)
	if err != nil {
		return fmt.Errorf("flux: %w", err)
	}
	if image, _, err = r.artefact(content, fluxConfig, fluxLayer, map[string]any{}); err != nil {
		return fmt.Errorf("flux: %w", err)
	}
	if err := r.keep(image, r.images+"/manifests/"+overlay+":"+r.version); err != nil {
		return fmt.Errorf("flux: %w", err)
	}
	return r.write("littoral-"+overlay+"-flux.yaml", how)
}
