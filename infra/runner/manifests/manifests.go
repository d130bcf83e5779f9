// Package manifests reads the YAML for a cluster, so that the laptop host can act on it.
//
// It builds a kustomize overlay, decodes every object strictly and runs the defaults and validation of the Knative
// types themselves, so that a cluster accepts everything that starts here. All faults are reported at once, each with
// its file, object and field.
package manifests

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	sourcesv1 "knative.dev/eventing/pkg/apis/sources/v1"
	"knative.dev/pkg/apis"
	servingv1 "knative.dev/serving/pkg/apis/serving/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	kjson "sigs.k8s.io/json"
)

// Set contains everything the host acts on, by namespace and name.
type Set struct {
	Services    map[types.NamespacedName]*servingv1.Service
	Brokers     map[types.NamespacedName]*eventingv1.Broker
	Triggers    map[types.NamespacedName]*eventingv1.Trigger
	PingSources map[types.NamespacedName]*sourcesv1.PingSource

	APIServerSources map[types.NamespacedName]*sourcesv1.ApiServerSource
}

// object is the common interface of the kinds.
type object interface {
	apis.Defaultable
	apis.Validatable
}

// setAside are kinds that have a meaning on a cluster but not in one process.
var setAside = []string{
	"Namespace", "ConfigMap", "Secret", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding",
	"NetworkPolicy", "HTTPRoute", "Gateway", "DomainMapping", "SinkBinding", "PodDisruptionBudget",
}

// Load builds the overlay in the directory of files. Their paths are those of the source tree.
func Load(files map[string]fs.FS, directory string) (*Set, error) {
	disk := filesys.MakeFsInMemory()
	for at, from := range files {
		if err := copyInto(disk, at, from); err != nil {
			return nil, err
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, directory)
	if err != nil {
		return nil, fmt.Errorf("kustomize build %s: %w", directory, err)
	}
	set := &Set{
		Services:    map[types.NamespacedName]*servingv1.Service{},
		Brokers:     map[types.NamespacedName]*eventingv1.Broker{},
		Triggers:    map[types.NamespacedName]*eventingv1.Trigger{},
		PingSources: map[types.NamespacedName]*sourcesv1.PingSource{},

		APIServerSources: map[types.NamespacedName]*sourcesv1.ApiServerSource{},
	}
	var faults []error
	for _, r := range built.Resources() {
		name := describe(r, directory)
		for _, fault := range set.add(r) {
			faults = append(faults, fmt.Errorf("%s: %w", name, fault))
		}
	}
	faults = append(faults, set.dangling()...)
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("%s:\n%w", directory, err)
	}
	return set, nil
}

func copyInto(disk filesys.FileSystem, at string, from fs.FS) error {
	return fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		return disk.WriteFile(path.Join(at, name), text)
	})
}

// describe returns the object's name, and its file if the overlay records origins (buildMetadata: [originAnnotations]).
func describe(r *resource.Resource, directory string) string {
	name := r.GetKind() + " " + r.GetName()
	if origin, err := r.GetOrigin(); err == nil && origin != nil && origin.Path != "" {
		return strings.TrimPrefix(path.Join(directory, origin.Path), "/") + ": " + name
	}
	return name
}

func (s *Set) add(r *resource.Resource) []error {
	key := types.NamespacedName{Namespace: r.GetNamespace(), Name: r.GetName()}
	switch kind := r.GetApiVersion() + " " + r.GetKind(); kind {
	case "serving.knative.dev/v1 Service":
		return decode(s.Services, key, r, &servingv1.Service{})
	case "eventing.knative.dev/v1 Broker":
		return decode(s.Brokers, key, r, &eventingv1.Broker{})
	case "eventing.knative.dev/v1 Trigger":
		return decode(s.Triggers, key, r, &eventingv1.Trigger{})
	case "sources.knative.dev/v1 PingSource":
		return decode(s.PingSources, key, r, &sourcesv1.PingSource{})
	case "sources.knative.dev/v1 ApiServerSource":
		return decode(s.APIServerSources, key, r, &sourcesv1.ApiServerSource{})
	default:
		if slices.Contains(setAside, r.GetKind()) {
			return nil
		}
		return []error{fmt.Errorf("the laptop host does not know %s", kind)}
	}
}

// decode decodes r into into, sets defaults, validates it and stores it.
func decode[T object](all map[types.NamespacedName]T, key types.NamespacedName, r *resource.Resource, into T) []error {
	if err := r.SetAnnotations(withoutOrigin(r.GetAnnotations())); err != nil {
		return []error{err}
	}
	text, err := r.AsYAML()
	if err != nil {
		return []error{err}
	}
	body, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return []error{err}
	}
	faults, err := kjson.UnmarshalStrict(body, into)
	if err != nil {
		return []error{err}
	}
	ctx := withInstallDefaults(context.Background())
	into.SetDefaults(ctx)
	if fault := into.Validate(ctx).Filter(apis.ErrorLevel); fault != nil { // a cluster accepts objects with warnings
		faults = append(faults, fault)
	}
	all[key] = into
	return faults
}

// withoutOrigin removes the annotations that kustomize added for describe; a cluster does not get them.
func withoutOrigin(annotations map[string]string) map[string]string {
	annotations = maps.Clone(annotations)
	maps.DeleteFunc(annotations, func(k, _ string) bool { return strings.HasPrefix(k, "config.kubernetes.io/origin") })
	return annotations
}

// Image returns the one image of a Service.
func Image(s *servingv1.Service) string {
	return s.Spec.Template.Spec.Containers[0].Image // validation guarantees that there is exactly one
}

// Environment returns the plain values in a Service's container; the host provides those from Secrets.
func Environment(s *servingv1.Service) map[string]string {
	env := map[string]string{}
	for _, v := range s.Spec.Template.Spec.Containers[0].Env {
		if v.ValueFrom == nil {
			env[v.Name] = v.Value
		}
	}
	return env
}
