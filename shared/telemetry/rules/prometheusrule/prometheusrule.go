// Package prometheusrule keeps each rule group as a PrometheusRule object, which the Prometheus operator passes to
// every Prometheus and ruler whose rule selector matches it.
//
// Objects are written by server-side apply under one field manager, so Put need not read first and a repeat changes
// nothing. Only objects with our label are listed or deleted.
package prometheusrule

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/littoral-project/littoral/shared/kube"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/telemetry/rules"
)

// Resource is the API resource of the objects.
var Resource = schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: "prometheusrules"}

const (
	kind     = "PrometheusRule"
	prefix   = "littoral-"
	manager  = "littoral"
	ownLabel = "app.kubernetes.io/managed-by"
)

// Store is the set of PrometheusRule objects in one namespace.
type Store struct {
	objects dynamic.ResourceInterface
	labels  map[string]string
}

var _ rules.Store = (*Store)(nil)

// New returns the store. The labels are set on each object, for the rule selectors of the installation.
func New(client dynamic.Interface, namespace string, labels map[string]string) *Store {
	return &Store{client.Resource(Resource).Namespace(namespace), labels}
}

// Put applies the group's object.
func (s *Store) Put(ctx context.Context, g rules.Group) error {
	o, err := s.object(g)
	if err != nil {
		return fmt.Errorf("encode group %s: %w", g.Name, err)
	}
	_, err = s.objects.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: manager, Force: true})
	return classify(err, "") // the object may be missing, but not its namespace
}

func (s *Store) object(g rules.Group) (*unstructured.Unstructured, error) {
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rules.Groups{Groups: []rules.Group{g}})
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(Resource.GroupVersion().WithKind(kind))
	o.SetName(prefix + rules.ID(g.Name))
	labels := maps.Clone(s.labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[ownLabel] = manager
	o.SetLabels(labels)
	return o, nil
}

// Delete removes the group's object, if it is one of ours.
func (s *Store) Delete(ctx context.Context, id string) error {
	if !rules.IsID(id) {
		return rules.ErrUnknown(id)
	}
	have, err := s.objects.Get(ctx, prefix+id, metav1.GetOptions{})
	if err != nil {
		return classify(err, id)
	}
	if have.GetLabels()[ownLabel] != manager {
		return rules.ErrUnknown(id)
	}
	uid := have.GetUID()
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	return classify(s.objects.Delete(ctx, have.GetName(), options), id)
}

// List returns the groups of our objects.
func (s *Store) List(ctx context.Context) ([]rules.Group, error) {
	var list []rules.Group
	err := kube.Each(ctx, s.objects, ownLabel+"="+manager, func(o *unstructured.Unstructured) {
		if g, ok := groupOf(o); ok {
			list = append(list, g)
		}
	})
	if err != nil {
		return nil, classify(err, "")
	}
	slices.SortFunc(list, func(a, b rules.Group) int { return strings.Compare(rules.ID(a.Name), rules.ID(b.Name)) })
	return list, nil
}

// groupOf returns the only group of an object that Put wrote.
func groupOf(o *unstructured.Unstructured) (rules.Group, bool) {
	var content rules.Groups
	text, err := json.Marshal(o.Object["spec"])
	if err != nil || json.Unmarshal(text, &content) != nil || len(content.Groups) != 1 {
		return rules.Group{}, false
	}
	g := content.Groups[0]
	return g, o.GetName() == prefix+rules.ID(g.Name)
}

// classify gives an error of the API server the corresponding kind; id is that of the requested object.
func classify(err error, id string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsBadRequest(err), apierrors.IsInvalid(err), apierrors.IsRequestEntityTooLargeError(err):
		return problem.Wrap(problem.Invalid, err, "the API server refuses the rules: %v", err)
	case apierrors.IsNotFound(err) && kube.IsForeign(err):
		return problem.Wrap(problem.Unavailable, err, "the cluster has no PrometheusRule: install the Prometheus operator")
	case apierrors.IsNotFound(err) && id != "":
		return rules.ErrUnknown(id)
	}
	return problem.Wrap(problem.Unavailable, err, "the API server does not take the rules; try again")
}
