// Package objects reads and writes the CodecoApps that are objects of Kubernetes: what was handed in with kubectl, the
// finalizer that keeps it until all of it is gone, and its status.
package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/littoral-project/littoral/shared/acm"
	"github.com/littoral-project/littoral/shared/codecoapp"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/kube"
)

// Finalizer keeps an object until everything that ran for it is removed.
const Finalizer = "littoral.dev/codecoapp"

// Resource is where the API server has CodecoApps.
var Resource = schema.GroupVersionResource{Group: codecoapp.Group, Version: codecoapp.Version, Resource: "codecoapps"}

// Objects is the API of a cluster.
type Objects struct {
	client dynamic.NamespaceableResourceInterface
}

type config struct {
	// Where is the cluster with the CodecoApps: "in-cluster", or the path of a kubeconfig. Empty: there is none.
	Where string `envconfig:"CODECO_OBJECTS"`
}

// Open returns the CodecoApps of the cluster that the settings name; nil if they name none. Nothing is dialled.
func Open(env *function.Env) (*Objects, error) {
	var c config
	if err := env.Config(&c); err != nil || c.Where == "" {
		return nil, err
	}
	client, err := kube.Open(c.Where, env.Observe.Transport)
	if err != nil {
		return nil, fmt.Errorf("CODECO_OBJECTS: %w", err)
	}
	return &Objects{client.Resource(Resource)}, nil
}

// Object is one as it is in the cluster.
type Object struct {
	Key      acm.Key
	UID      string
	Deleting bool
	Text     []byte // the document, without what the cluster has added

	finalizers []string
}

// Get returns the object; nil if there is none.
func (o Objects) Get(ctx context.Context, k acm.Key) (*Object, error) {
	u, err := o.client.Namespace(k.Namespace).Get(ctx, k.Name, metav1.GetOptions{})
	if kube.IsAbsent(err) {
		return nil, nil //nolint:nilnil // none is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("read the CodecoApp: %w", err)
	}
	return read(u)
}

// Keys names all that there are.
func (o Objects) Keys(ctx context.Context) ([]acm.Key, error) {
	var all []acm.Key
	err := kube.Each(ctx, o.client, "", func(u *unstructured.Unstructured) {
		all = append(all, acm.Key{Namespace: u.GetNamespace(), Name: u.GetName()})
	})
	if err != nil {
		return nil, fmt.Errorf("list the CodecoApps: %w", err)
	}
	return all, nil
}

func read(u *unstructured.Unstructured) (*Object, error) {
	text, err := json.Marshal(map[string]any{
		"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "spec": u.Object["spec"],
		"metadata": map[string]any{"name": u.GetName(), "namespace": u.GetNamespace()},
	})
	return &Object{
		Key: acm.Key{Namespace: u.GetNamespace(), Name: u.GetName()}, UID: string(u.GetUID()),
		Deleting: u.GetDeletionTimestamp() != nil, Text: text, finalizers: u.GetFinalizers(),
	}, err
}

// Hold adds our finalizer, if it is not there.
func (o Objects) Hold(ctx context.Context, x *Object) error {
	if slices.Contains(x.finalizers, Finalizer) {
		return nil
	}
	return o.finalize(ctx, x, append(slices.Clone(x.finalizers), Finalizer))
}

// Release takes our finalizer away, so that a deletion ends.
func (o Objects) Release(ctx context.Context, k acm.Key) error {
	x, err := o.Get(ctx, k)
	if err != nil || x == nil {
		return err
	}
	if !slices.Contains(x.finalizers, Finalizer) {
		return nil
	}
	return o.finalize(ctx, x, slices.DeleteFunc(slices.Clone(x.finalizers), func(f string) bool { return f == Finalizer }))
}

func (o Objects) finalize(ctx context.Context, x *Object, finalizers []string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": finalizers, "uid": x.UID}})
	if err != nil {
		return err
	}
	_, err = o.client.Namespace(x.Key.Namespace).Patch(ctx, x.Key.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if kube.IsAbsent(err) {
		return nil
	}
	return err
}

// SetStatus writes the status of an object in place of the one it had; an object that is gone has none.
func (o Objects) SetStatus(ctx context.Context, k acm.Key, s acm.Status) error {
	patch, err := json.Marshal(map[string]any{"status": withAbsent(reflect.ValueOf(s))})
	if err != nil {
		return err
	}
	_, err = o.client.Namespace(k.Namespace).Patch(ctx, k.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if kube.IsAbsent(err) {
		return nil
	}
	return err
}

// withAbsent is a struct as JSON has it, in which null stands for each field that is left out: a merge patch takes such a field
// away, and keeps what it does not name.
func withAbsent(v reflect.Value) map[string]any {
	m := make(map[string]any, v.NumField())
	for i := range v.NumField() {
		name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		switch field := v.Field(i); {
		case field.Kind() == reflect.Struct:
			m[name] = withAbsent(field)
		case options == "omitempty" && (field.IsZero() || field.Kind() == reflect.Slice && field.Len() == 0):
			m[name] = nil
		default:
			m[name] = field.Interface()
		}
	}
	return m
}
