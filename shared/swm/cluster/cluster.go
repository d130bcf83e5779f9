// Package cluster reads and writes the objects of SWM in the cluster that has them, and binds its pods.
package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/kube"
	"github.com/littoral-project/littoral/shared/swm/bind"
	"github.com/littoral-project/littoral/shared/swm/groups"
	"github.com/littoral-project/littoral/shared/swm/report"
)

const manager = "littoral-swm"

// plurals are the kinds as paths have them.
var plurals = map[string]string{
	"ApplicationGroup": "applicationgroups", "Application": "applications", "AssignmentPlan": "assignmentplans", "Channel": "channels",
	"NetworkEndpoint": "networkendpoints", "NetworkLink": "networklinks", "NetworkPath": "networkpaths", "NetworkTopology": "networktopologies",
	"Ipam": "ipams",
}

// Cluster is the API of a cluster.
type Cluster struct{ client dynamic.Interface }

type config struct {
	// Where is the cluster with the objects of SWM, as for CodecoApps.
	Where string `envconfig:"CODECO_OBJECTS"`
}

// Open returns the cluster that the settings name; nil if they name none. Nothing is dialled.
func Open(env *function.Env) (*Cluster, error) {
	var c config
	if err := env.Config(&c); err != nil || c.Where == "" {
		return nil, err
	}
	client, err := kube.Open(c.Where, env.Observe.Transport)
	if err != nil {
		return nil, fmt.Errorf("CODECO_OBJECTS: %w", err)
	}
	return New(client), nil
}

// New returns the cluster of a client.
func New(client dynamic.Interface) *Cluster { return &Cluster{client} }

func (c *Cluster) of(kind, namespace string) dynamic.ResourceInterface {
	all := c.client.Resource(schema.GroupVersionResource{Group: groups.Group, Version: groups.Version, Resource: plurals[kind]})
	if kind == string(groups.NetworkEndpoint) {
		return all // these are of the cluster
	}
	return all.Namespace(namespace)
}

// Object is one as it is in the cluster.
type Object struct {
	UID  string
	Text []byte // the document, without what the cluster has added
}

// Get returns an object; nil if there is none, or it is being deleted.
func (c *Cluster) Get(ctx context.Context, k groups.Key) (*Object, error) {
	u, err := c.of(string(k.Kind), k.Namespace).Get(ctx, k.Name, metav1.GetOptions{})
	if kube.IsAbsent(err) || err == nil && u.GetDeletionTimestamp() != nil {
		return nil, nil //nolint:nilnil // none is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	metadata := map[string]any{"name": u.GetName(), "labels": u.GetLabels()}
	if u.GetNamespace() != "" {
		metadata["namespace"] = u.GetNamespace()
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "metadata": metadata, "spec": u.Object["spec"],
	})
	return &Object{string(u.GetUID()), text}, err
}

// Keys names all objects of the kinds, in all namespaces.
func (c *Cluster) Keys(ctx context.Context, kinds ...groups.Kind) ([]groups.Key, error) {
	var all []groups.Key
	for _, kind := range kinds {
		err := kube.Each(ctx, c.of(string(kind), metav1.NamespaceAll), "", func(u *unstructured.Unstructured) {
			all = append(all, groups.InCluster(kind, u.GetNamespace(), u.GetName()))
		})
		if err != nil {
			return nil, fmt.Errorf("list the objects of kind %s: %w", kind, err)
		}
	}
	return all, nil
}

// SetStatus writes the status of an object; one that is gone has none. What is as it was changes nothing.
func (c *Cluster) SetStatus(ctx context.Context, kind, namespace, name string, status any) error {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = c.of(kind, namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager}, "status")
	if kube.IsAbsent(err) {
		return nil
	}
	return err
}

// Write implements report.Cluster: it makes the object, or what differs of it. An equal one is left as it is by the API server.
func (c *Cluster) Write(ctx context.Context, o report.Object) error {
	text, err := json.Marshal(map[string]any{
		"apiVersion": groups.Group + "/" + groups.Version, "kind": o.Kind, "spec": o.Spec,
		"metadata": map[string]any{"name": o.Name, "namespace": o.Namespace, "labels": o.Labels, "ownerReferences": []map[string]any{{
			"apiVersion": o.Owner.APIVersion, "kind": o.Owner.Kind, "name": o.Owner.Name, "uid": o.Owner.UID,
		}}},
	})
	if err != nil {
		return err
	}
	yes := true
	_, err = c.of(o.Kind, o.Namespace).Patch(ctx, o.Name, types.ApplyPatchType, text, metav1.PatchOptions{FieldManager: manager, Force: &yes})
	if err != nil {
		return fmt.Errorf("write %s %s/%s: %w", o.Kind, o.Namespace, o.Name, err)
	}
	return c.SetStatus(ctx, o.Kind, o.Namespace, o.Name, o.Status)
}

// Keep implements report.Cluster: of the channels of a group it deletes those that are not named.
func (c *Cluster) Keep(ctx context.Context, namespace, group string, names map[string]bool) error {
	all, err := c.of("Channel", namespace).List(ctx, metav1.ListOptions{LabelSelector: groups.LabelGroup + "=" + group})
	if err != nil {
		return fmt.Errorf("list channels: %w", err)
	}
	for i := range all.Items {
		if name := all.Items[i].GetName(); !names[name] {
			if err := c.of("Channel", namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !kube.IsAbsent(err) {
				return fmt.Errorf("delete channel %s: %w", name, err)
			}
		}
	}
	return nil
}

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// Unbound implements bind.Cluster.
func (c *Cluster) Unbound(ctx context.Context) ([]bind.Pod, error) {
	return c.pods(ctx, "spec.nodeName=", "")
}

// On implements bind.Cluster.
func (c *Cluster) On(ctx context.Context, node string) ([]bind.Pod, error) {
	return c.pods(ctx, "spec.nodeName="+node, "")
}

func (c *Cluster) pods(ctx context.Context, fields, from string) ([]bind.Pod, error) {
	var out []bind.Pod
	for {
		all, err := c.client.Resource(pods).List(ctx, metav1.ListOptions{
			LabelSelector: groups.LabelGroup, FieldSelector: fields, Limit: 50, Continue: from,
		})
		if err != nil {
			return nil, fmt.Errorf("list pods: %w", err)
		}
		for i := range all.Items {
			u := &all.Items[i]
			scheduler, _, _ := unstructured.NestedString(u.Object, "spec", "schedulerName")
			if scheduler != bind.Scheduler || u.GetDeletionTimestamp() != nil {
				continue
			}
			out = append(out, bind.Pod{
				Namespace: u.GetNamespace(), Name: u.GetName(), UID: string(u.GetUID()), Group: u.GetLabels()[groups.LabelGroup],
				Application: u.GetLabels()["application"], Workload: u.GetLabels()["workload"],
			})
		}
		if from = all.GetContinue(); from == "" {
			return out, nil
		}
	}
}

// Bind implements bind.Cluster.
func (c *Cluster) Bind(ctx context.Context, p bind.Pod, node string) error {
	_, err := c.client.Resource(pods).Namespace(p.Namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Binding", "metadata": map[string]any{"name": p.Name, "namespace": p.Namespace, "uid": p.UID},
		"target": map[string]any{"apiVersion": "v1", "kind": "Node", "name": node},
	}}, metav1.CreateOptions{FieldManager: manager}, "binding")
	switch {
	case kube.IsAbsent(err), errors.IsConflict(err):
		return bind.ErrGone // deleted, or bound by somebody else
	case err != nil:
		return fmt.Errorf("bind pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}

// Delete implements bind.Cluster.
func (c *Cluster) Delete(ctx context.Context, p bind.Pod) error {
	uid := types.UID(p.UID)
	err := c.client.Resource(pods).Namespace(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if kube.IsAbsent(err) || errors.IsConflict(err) {
		return nil
	}
	return err
}
