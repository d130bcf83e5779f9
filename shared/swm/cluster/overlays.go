package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/kube"
	"github.com/littoral-project/littoral/shared/netma/l2sm"
	"github.com/littoral-project/littoral/shared/netma/links"
	"github.com/littoral-project/littoral/shared/netma/vlinks"
)

// Overlays are the networks of L2S-M in the cluster of CODECO's objects.
type Overlays struct{ client dynamic.Interface }

type overlayConfig struct {
	On bool `envconfig:"L2SM" default:"false"` // whether the cluster has L2S-M
}

// OpenOverlays returns those of the cluster that the settings name; nil where there are none. Nothing is dialled.
func OpenOverlays(env *function.Env) (*Overlays, error) {
	var has overlayConfig
	if err := env.Config(&has); err != nil || !has.On {
		return nil, err
	}
	c, err := Open(env)
	if err != nil || c == nil {
		return nil, err
	}
	return &Overlays{c.client}, nil
}

func (o *Overlays) in(namespace string) dynamic.ResourceInterface {
	return o.of(l2sm.Plural, namespace)
}

func (o *Overlays) of(plural, namespace string) dynamic.ResourceInterface {
	return o.client.Resource(schema.GroupVersionResource{Group: l2sm.Group, Version: l2sm.Version, Resource: plural}).Namespace(namespace)
}

// One returns what an overlay says of its links; nothing of one that is gone.
func (o *Overlays) One(ctx context.Context, namespace, name string) ([]links.Measurement, error) {
	u, err := o.in(namespace).Get(ctx, name, metav1.GetOptions{})
	if kube.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the overlay %s/%s: %w", namespace, name, err)
	}
	return measured(u)
}

// All returns what all overlays say of their links.
func (o *Overlays) All(ctx context.Context) ([]links.Measurement, error) {
	var all []links.Measurement
	var failed error
	err := kube.Each(ctx, o.in(metav1.NamespaceAll), "", func(u *unstructured.Unstructured) {
		found, err := measured(u)
		if all = append(all, found...); err != nil {
			failed = err
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list overlays: %w", err)
	}
	return l2sm.Once(all), failed
}

// measured reads the status. It has no time of its own: that of its last writing counts, so that what nobody measures any more grows old.
func measured(u *unstructured.Unstructured) ([]links.Measurement, error) {
	at := time.Time{}
	for _, f := range u.GetManagedFields() {
		if f.Subresource == "status" && f.Time != nil && f.Time.After(at) {
			at = f.Time.Time
		}
	}
	if at.IsZero() {
		at = time.Now()
	}
	status, err := json.Marshal(u.Object["status"])
	if err != nil {
		return nil, fmt.Errorf("encode a status: %w", err)
	}
	return l2sm.Measurements(status, at.UTC())
}

// Networks implements vlinks.Cluster: those that were made here.
func (o *Overlays) Networks(ctx context.Context) ([]vlinks.Found, error) {
	var all []vlinks.Found
	err := kube.Each(ctx, o.of(l2sm.NetworkPlural, metav1.NamespaceAll), l2sm.LabelOurs, func(u *unstructured.Unstructured) {
		f := vlinks.Found{Namespace: u.GetNamespace(), Name: u.GetName(), CreatedAt: u.GetCreationTimestamp().Time}
		f.Config, _, _ = unstructured.NestedString(u.Object, "spec", "config")
		f.Internal, _, _ = unstructured.NestedString(u.Object, "status", "internalConnectivity")
		f.Provider, _, _ = unstructured.NestedString(u.Object, "status", "providerConnectivity")
		all = append(all, f)
	})
	if err != nil {
		return nil, fmt.Errorf("list networks: %w", err)
	}
	return all, nil
}

// Create implements vlinks.Cluster.
func (o *Overlays) Create(ctx context.Context, n vlinks.Network) error {
	labels := map[string]any{}
	for k, v := range n.Labels {
		labels[k] = v
	}
	_, err := o.of(l2sm.NetworkPlural, n.Namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": l2sm.Group + "/" + l2sm.Version, "kind": l2sm.NetworkKind,
		"metadata": map[string]any{
			"name": n.Name, "namespace": n.Namespace, "labels": labels, "ownerReferences": []any{map[string]any{
				"apiVersion": n.Owner.APIVersion, "kind": n.Owner.Kind, "name": n.Owner.Name, "uid": n.Owner.UID,
			}},
		},
		"spec": map[string]any{"type": "vlink", "config": n.Config},
	}}, metav1.CreateOptions{FieldManager: manager})
	if errors.IsAlreadyExists(err) {
		return nil // made meanwhile
	}
	return err
}

// Delete implements vlinks.Cluster.
func (o *Overlays) Delete(ctx context.Context, namespace, name string) error {
	err := o.of(l2sm.NetworkPlural, namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if kube.IsAbsent(err) {
		return nil
	}
	return err
}
