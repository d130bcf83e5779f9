// Package prometheusrule keeps each rule group as a PrometheusRule object, which the Prometheus operator hands to every
// Prometheus and ruler whose rule selector matches it.
//
// Objects are applied on the server's side under one field manager, so a Put needs no reading first and a repeat
// changes nothing. Only objects with our label are listed or deleted.
package prometheusrule

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/telemetry/rules"
)

// Resource is what the objects are called in the API.
var Resource = schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: "prometheusrules"}

const (
	prefix    = "littoral-"
	manager   = "littoral"
	ownLabel  = "app.kubernetes.io/managed-by"
	pageLimit = 500
)

// Store is the PrometheusRule objects of one namespace.
type Store struct {
	objects dynamic.ResourceInterface
	labels  map[string]string
}

var _ rules.Store = (*Store)(nil)

// New returns the store. The labels are put on each object for the rule selectors of the place.
func New(client dynamic.Interface, namespace string, labels map[string]string) *Store {
	return &Store{objects: client.Resource(Resource).Namespace(namespace), labels: labels}
}

// Put applies the group's object.
func (s *Store) Put(ctx context.Context, g rules.Group) error {
	id := rules.ID(g.Name)
	labels := map[string]any{}
	for name, value := range s.labels {
		labels[name] = value
	}
	labels[ownLabel] = manager
	spec, err := plain(rules.Groups{Groups: []rules.Group{g}})
	if err != nil {
		return fmt.Errorf("encode group %s: %w", g.Name, err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": Resource.GroupVersion().String(), "kind": "PrometheusRule",
		"metadata": map[string]any{"name": prefix + id, "labels": labels},
		"spec":     spec,
	}}
	_, err = s.objects.Apply(ctx, prefix+id, object, metav1.ApplyOptions{FieldManager: manager, Force: true})
	return classify(err, "") // the object need not be there, its namespace must
}

// Delete removes the group's object, if it is one of ours.
func (s *Store) Delete(ctx context.Context, id string) error {
	if !rules.IsID(id) {
		return rules.ErrUnknown(id)
	}
	object, err := s.objects.Get(ctx, prefix+id, metav1.GetOptions{})
	if err != nil {
		return classify(err, id)
	}
	if object.GetLabels()[ownLabel] != manager {
		return rules.ErrUnknown(id)
	}
	uid := object.GetUID()
	return classify(
		s.objects.Delete(ctx, prefix+id, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}),
		id,
	)
}

// List returns the groups of our objects.
func (s *Store) List(ctx context.Context) ([]rules.Group, error) {
	var list []rules.Group
	options := metav1.ListOptions{LabelSelector: ownLabel + "=" + manager, Limit: pageLimit}
	for {
		page, err := s.objects.List(ctx, options)
		if err != nil {
			return nil, classify(err, "")
		}
		for i := range page.Items {
			if g, ok := groupIn(&page.Items[i]); ok {
				list = append(list, g)
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
	}
	slices.SortFunc(list, func(a, b rules.Group) int { return strings.Compare(rules.ID(a.Name), rules.ID(b.Name)) })
	return list, nil
}

// groupIn returns the one group of an object that Put made.
func groupIn(object *unstructured.Unstructured) (rules.Group, bool) {
	body, err := json.Marshal(object.Object["spec"])
	if err != nil {
		return rules.Group{}, false
	}
	var content rules.Groups
	if json.Unmarshal(body, &content) != nil || len(content.Groups) != 1 {
		return rules.Group{}, false
	}
	g := content.Groups[0]
	return g, object.GetName() == prefix+rules.ID(g.Name)
}

// plain turns a value into the maps and lists that an unstructured object is made of.
func plain(v any) (map[string]any, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, json.Unmarshal(body, &out)
}

// classify gives an error of the API server the kind that its reason means; id is that of the object that was asked
// for.
func classify(err error, id string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return problem.Wrap(problem.Invalid, err, "the API server refuses the rules: %v", err)
	case isUnknownKind(err):
		return problem.Wrap(problem.Unavailable, err, "the cluster has no PrometheusRule: install the Prometheus operator")
	case apierrors.IsNotFound(err) && id != "":
		return rules.ErrUnknown(id)
	}
	return problem.Wrap(problem.Unavailable, err, "the API server does not take the rules; try again")
}

// isUnknownKind reports whether the API server has no such resource at all, which it answers 404 to as well.
func isUnknownKind(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
