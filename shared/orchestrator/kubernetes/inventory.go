package kubernetes

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/kube"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/manifest"
)

// markLeaving is on the inventory of a copy that is being removed.
const markLeaving = "littoral.dev/leaving"

// inventory returns the job's inventory with its entries; nil when there is none.
func (c cluster) inventory(ctx context.Context, j *job.Job) (*unstructured.Unstructured, []entry, error) {
	have, err := c.Resource(secrets).Namespace(j.Namespace).Get(ctx, inventoryName(j), metav1.GetOptions{})
	if kube.IsAbsent(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	record, ours := manifest.ReadRecord(have)
	if !ours || record.Subject != orchestrator.Subject(j) {
		return nil, nil, orchestrator.Refuse(
			orchestrator.ReasonNameTaken, "%s has a Secret %s that is not ours", j.Namespace, have.GetName(),
		)
	}
	entries, err := entriesOf(have)
	return have, entries, err
}

func entriesOf(inventory *unstructured.Unstructured) (entries []entry, err error) {
	text, _, _ := unstructured.NestedString(inventory.Object, "data", keyObjects)
	body, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(body, &entries)
	}
	if err != nil {
		return nil, orchestrator.Refuse(
			"BadInventory", "Secret %s/%s cannot be read: %v", inventory.GetNamespace(), inventory.GetName(), err,
		)
	}
	return entries, nil
}

// shared lists the objects without pods that other jobs of the application want in the cluster.
func (c cluster) shared(ctx context.Context, j *job.Job) (all []entry, err error) {
	var faults []error
	among := c.Resource(secrets).Namespace(j.Namespace)
	err = kube.Each(ctx, among, labelInventory+"=true", func(o *unstructured.Unstructured) {
		if o.GetName() == inventoryName(j) || o.GetAnnotations()[markLeaving] != "" {
			return
		}
		entries, err := entriesOf(o)
		faults = append(faults, err)
		wanted, _ := split(entries)
		all = append(all, slices.DeleteFunc(wanted, entry.bears)...)
	})
	return all, errors.Join(append(faults, err)...)
}

// standing reads the record of the inventory, if there is one. The error says that the job may not change the copy: it
// belongs to a newer decision, or its removal has begun.
func standing(inventory *unstructured.Unstructured, j *job.Job) (r orchestrator.Record, err error) {
	if inventory == nil {
		return r, nil
	}
	r, _ = manifest.ReadRecord(inventory)
	switch {
	case r.Epoch > j.Epoch:
		return r, orchestrator.ErrFenced
	case inventory.GetAnnotations()[markLeaving] != "":
		return r, orchestrator.ErrLeaving
	}
	return r, nil
}

// fenced reads the inventory again and returns the error of standing. It guards objects without pods, which carry no
// epoch. It is called after such an object was read: a newer decision changes the inventory first, so it cannot slip in
// between.
func (c cluster) fenced(ctx context.Context, j *job.Job) error {
	have, _, err := c.inventory(ctx, j)
	if err != nil {
		return err
	}
	_, err = standing(have, j)
	return err
}

func inventoryName(j *job.Job) string { return orchestrator.Manager + "-" + orchestrator.NameOf(j) }

// writeInventory writes the inventory over have, the one that was read; nil creates one.
func (c cluster) writeInventory(
	ctx context.Context, j *job.Job, have *unstructured.Unstructured, want orchestrator.Record, entries []entry,
) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(entries)
	if err != nil {
		return nil, err
	}
	next := &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "littoral.dev/inventory"},
	}
	if have != nil {
		next = have.DeepCopy()
	}
	next.SetName(inventoryName(j))
	next.SetNamespace(j.Namespace)
	manifest.Mark(next, want)
	labels := next.GetLabels()
	labels[labelInventory] = "true"
	next.SetLabels(labels)
	next.Object["data"] = map[string]any{keyObjects: base64.StdEncoding.EncodeToString(text)}
	at := c.Resource(secrets).Namespace(j.Namespace)
	if have == nil {
		made, err := at.Create(ctx, next, metav1.CreateOptions{FieldManager: orchestrator.Manager})
		if apierrors.IsAlreadyExists(err) { // somebody was faster: the caller reads it and decides again
			return nil, apierrors.NewConflict(secrets.GroupResource(), next.GetName(), err)
		}
		return made, err
	}
	return at.Update(ctx, next, metav1.UpdateOptions{FieldManager: orchestrator.Manager})
}

// leave marks the inventory of a copy that is being removed.
func (c cluster) leave(ctx context.Context, have *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	next := have.DeepCopy()
	notes := next.GetAnnotations()
	notes[markLeaving] = "true"
	next.SetAnnotations(notes)
	options := metav1.UpdateOptions{FieldManager: orchestrator.Manager}
	return c.Resource(secrets).Namespace(have.GetNamespace()).Update(ctx, next, options)
}
