// Package kubernetes carries out jobs directly at the API of each cluster, by server-side apply under our own field
// manager.
//
// The objects of a job in a cluster are listed in a Secret in the application's namespace, the inventory. A later
// decision is compared with it, it tells which objects a replacement drops, and it is deleted last. It is a Secret
// because it holds the whole objects, and some of them may be Secrets.
package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/kube"
	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/manifest"
	"github.com/littoral-project/littoral/shared/problem"
)

var (
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	nodes      = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
)

const (
	attempts = 5
	listed   = 16 // clusters listed in parallel; each takes memory

	labelInventory = "littoral.dev/inventory"
	keyObjects     = "objects"
)

// Clusters opens the clusters that targets may name. The error for an unknown one is a Refusal.
type Clusters interface {
	Open(name string) (*kube.Client, error)
	Names() []string
}

// Direct is an orchestrator over the APIs of clusters.
type Direct struct {
	clusters Clusters
	silent   *sync.Map // names of clusters that did not answer and are not asked again; nil = ask each time
}

var _ orchestrator.Orchestrator = (*Direct)(nil)

// New returns the orchestrator.
func New(clusters Clusters) *Direct { return &Direct{clusters: clusters} }

// entry is one object of an inventory, as it was last applied.
type entry struct {
	Resource string                     `json:"resource"`
	Group    string                     `json:"group,omitempty"`
	Version  string                     `json:"version"`
	Object   *unstructured.Unstructured `json:"object"`
	Dropped  bool                       `json:"dropped,omitempty"` // no longer wanted, still to be deleted
}

func (e entry) gvr() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: e.Group, Version: e.Version, Resource: e.Resource}
}

func (e entry) key() string {
	return e.Group + "/" + e.Resource + " " + e.Object.GetNamespace() + "/" + e.Object.GetName()
}

func (e entry) what() string { return e.Object.GetKind() + " " + e.Object.GetName() }

// bears reports whether the object has pods, and so belongs to this job alone. Others may be shared with jobs of the
// application.
func (e entry) bears() bool {
	_, bears := manifest.PodTemplate(e.Object)
	return bears
}

// drop returns the entry as one to be deleted, without content: a Secret has room for 1 MiB, and the inventory lists what
// comes in its place as well.
func (e entry) drop() entry {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(e.Object.GroupVersionKind())
	o.SetNamespace(e.Object.GetNamespace())
	o.SetName(e.Object.GetName())
	o.SetLabels(e.Object.GetLabels())
	e.Object, e.Dropped = o, true
	return e
}

// ours reports whether the live object belongs to the entry's job, or to its application if it has no pods.
func (e entry) ours(live *unstructured.Unstructured) bool {
	same := func(mark string) bool {
		want := e.Object.GetLabels()[mark]
		return want == "" || live.GetLabels()[mark] == want
	}
	return same(label.MarkInstance) && (!e.bears() || same(orchestrator.LabelJob))
}

// ownedByAnother reports whether the live object by the entry's name belongs to somebody else. In the application's own
// namespace only objects of other jobs count: what the cluster itself creates there, such as the default
// ServiceAccount, may be used.
func (e entry) ownedByAnother(live *unstructured.Unstructured) bool {
	return !e.ours(live) && (e.Object.GetNamespace() == "" || managed(live))
}

func (e entry) ownershipError(live *unstructured.Unstructured) error {
	holder, notes := "nobody here", live.GetAnnotations()
	if managed(live) {
		holder = strings.TrimSpace(notes[label.MarkComponent] + " of application " + notes[label.MarkInstance])
	}
	return orchestrator.Refuse(orchestrator.ReasonNameTaken, "%s is there already and belongs to %s", e.what(), holder)
}

func managed(live *unstructured.Unstructured) bool {
	return live.GetLabels()[orchestrator.LabelManager] == orchestrator.Manager
}

// cluster carries out jobs in one cluster.
type cluster struct{ *kube.Client }

func (d *Direct) open(name string) (cluster, error) {
	client, err := d.clusters.Open(name)
	return cluster{client}, err
}

func (c cluster) at(e entry) dynamic.ResourceInterface {
	if ns := e.Object.GetNamespace(); ns != "" {
		return c.Resource(e.gvr()).Namespace(ns)
	}
	return c.Resource(e.gvr())
}

// Knows reports whether there is a kubeconfig of the cluster.
func (d *Direct) Knows(_ context.Context, name string) (bool, error) {
	_, err := d.open(name)
	return orchestrator.Known(err)
}

// Apply writes the inventory first, under the resource version it was read at, and then each object. An older decision
// fails at the inventory.
func (d *Direct) Apply(ctx context.Context, j *job.Job) error {
	c, err := d.open(j.Cluster)
	if err != nil {
		return err
	}
	for range attempts {
		if err = c.apply(ctx, j); !apierrors.IsConflict(err) || isFieldConflict(err) {
			return manifest.Classify(err, "component "+j.Component)
		}
	}
	return problem.Wrap(problem.Unavailable, err, "component %s in %s keeps changing; try again", j.Component, j.Cluster)
}

// isFieldConflict tells a conflict with the fields of another manager from one with a newer resource version.
func isFieldConflict(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}

func (c cluster) apply(ctx context.Context, j *job.Job) error {
	if err := c.hasNode(ctx, j); err != nil {
		return err
	}
	have, entries, err := c.inventory(ctx, j)
	if err != nil {
		return err
	}
	record, err := standing(have, j)
	if err != nil {
		return err
	}
	want := orchestrator.RecordOf(j)
	entries, dropped := split(entries)
	if lacking, ok := record.Lacking(j); ok && orchestrator.ScalesOnly(j) {
		changed := entries // if none is lacking: apply all again, in case a crash left some out
		if len(lacking) > 0 {
			if changed, err = scale(entries, lacking); err != nil {
				return err
			}
		}
		return c.put(ctx, j, have, change{want, entries, changed, dropped})
	}
	objects, err := manifest.Build(j)
	if err != nil {
		return err
	}
	next, err := c.resolve(ctx, objects[1:])
	if err != nil {
		return err
	}
	if _, err := scale(next, orchestrator.Scalings(j)); err != nil {
		return err
	}
	if err := c.applyNamespace(ctx, j, objects[0]); err != nil {
		return err
	}
	if j.Type == job.Update && j.SubType == string(job.Patch) { // which takes nothing away
		next = append(next, without(entries, next)...)
	}
	return c.put(ctx, j, have, change{want, next, next, without(slices.Concat(entries, dropped), next)})
}

// scale carries out the remediations on the objects and returns those that changed.
func scale(entries []entry, by []job.Remedy) (changed []entry, err error) {
	for _, e := range entries {
		did, err := manifest.Scale(e.Object, by...)
		if err != nil {
			return nil, err
		}
		if did {
			changed = append(changed, e)
		}
	}
	return changed, nil
}

// change is the next content of an inventory, with what that takes in the cluster.
type change struct {
	record  orchestrator.Record
	entries []entry // all that are wanted
	apply   []entry // of those
	dropped []entry // no longer wanted
}

// put carries out a change. Meanwhile the inventory lists both old and new objects, so that after a crash the next look
// finds what is left to do.
func (c cluster) put(ctx context.Context, j *job.Job, have *unstructured.Unstructured, to change) error {
	all := slices.Clone(to.entries)
	for _, e := range to.dropped {
		all = append(all, e.drop())
	}
	have, err := c.writeInventory(ctx, j, have, to.record, all)
	if err != nil {
		return err
	}
	for _, e := range to.apply {
		err := c.applyOne(ctx, j, e)
		if apierrors.IsNotFound(err) && defined(to.entries, e) {
			return problem.New(problem.Unavailable, "the cluster does not know the kind of %s yet; try again", e.what())
		}
		if err != nil {
			return err
		}
	}
	if len(to.dropped) == 0 {
		return nil
	}
	if err := c.fenced(ctx, j); err != nil {
		return err
	}
	if _, err := c.deleteAll(ctx, j, to.dropped); err != nil {
		return err
	}
	_, err = c.writeInventory(ctx, j, have, to.record, to.entries)
	return err
}

// defined reports whether one of the entries is the CustomResourceDefinition of the other. After it is applied, the API
// server takes a moment to serve the kind.
func defined(entries []entry, of entry) bool {
	return slices.ContainsFunc(entries, func(e entry) bool { return manifest.Defines(e.Object, of.Object) })
}

// hasNode refuses a target whose node the cluster does not have.
func (c cluster) hasNode(ctx context.Context, j *job.Job) error {
	if j.Node == "" {
		return nil
	}
	_, err := c.Resource(nodes).Get(ctx, j.Node, metav1.GetOptions{})
	switch {
	case kube.IsAbsent(err):
		return orchestrator.Refuse(orchestrator.ReasonNodeNotFound, "cluster %s has no node %s", j.Cluster, j.Node)
	case apierrors.IsForbidden(err):
		return nil // our account may not read nodes
	}
	return err
}

// applyNamespace applies the application's namespace, which its components share. Each does so under a field manager of
// its own, so that none removes the labels and annotations of another.
func (c cluster) applyNamespace(ctx context.Context, j *job.Job, ns *unstructured.Unstructured) error {
	name := orchestrator.NameOf(j)
	manager := orchestrator.Manager + name[strings.LastIndexByte(name, '-'):]
	have, err := c.Resource(namespaces).Apply(ctx, ns.GetName(), ns, metav1.ApplyOptions{FieldManager: manager})
	if err == nil && have.GetDeletionTimestamp() != nil {
		return orchestrator.ErrLeaving
	}
	return manifest.Classify(err, "Namespace "+ns.GetName())
}

// applyOne applies the object, unless the live one belongs to a newer decision.
func (c cluster) applyOne(ctx context.Context, j *job.Job, e entry) error {
	o := e.Object.DeepCopy()
	have, err := c.at(e).Get(ctx, o.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return manifest.Classify(err, e.what())
	case have.GetDeletionTimestamp() != nil:
		return orchestrator.ErrLeaving
	case e.ownedByAnother(have):
		return e.ownershipError(have)
	case e.bears() && manifest.EpochOf(have) > j.Epoch:
		return orchestrator.ErrFenced
	case e.ours(have) && manifest.OtherPods(have, o):
		return c.anew(ctx, j, e)
	default:
		o.SetResourceVersion(have.GetResourceVersion())
	}
	if !e.bears() {
		if err := c.fenced(ctx, j); err != nil {
			return err
		}
	}
	_, err = c.at(e).Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: orchestrator.Manager})
	if apierrors.IsInvalid(err) && have != nil && manifest.Replaceable(o) && e.ours(have) {
		return c.anew(ctx, j, e)
	}
	if apierrors.IsConflict(err) && !isFieldConflict(err) {
		return err // changed since it was read; Apply tries again
	}
	return manifest.Classify(err, e.what())
}

// anew deletes an object whose pods are immutable; the next attempt recreates it.
func (c cluster) anew(ctx context.Context, j *job.Job, e entry) error {
	if err := c.try(ctx, e); err != nil {
		return err
	}
	if _, err := c.deleteOne(ctx, j, e); err != nil {
		return err
	}
	return orchestrator.ErrLeaving
}

// try has the API server check the object under another name, so that what runs is not deleted for something that the
// server does not take. A quota is no objection, since the object that is there counts too, and neither is a webhook that
// takes no dry run.
func (c cluster) try(ctx context.Context, e entry) error {
	o := e.Object.DeepCopy()
	o.SetName("")
	o.SetGenerateName(e.Object.GetName() + "-")
	options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: orchestrator.Manager}
	_, err := c.at(e).Create(ctx, o, options)
	if err != nil && (manifest.OverQuota(err.Error()) || strings.Contains(err.Error(), "does not support dry run")) {
		return nil
	}
	return manifest.Classify(err, e.what())
}

// deleteAll deletes the entries, last first, and reports whether they are gone. Objects that other jobs of the
// application still want are not deleted.
func (c cluster) deleteAll(ctx context.Context, j *job.Job, entries []entry) (gone bool, err error) {
	shared, err := c.shared(ctx, j)
	if err != nil {
		return false, err
	}
	gone = true
	for _, e := range slices.Backward(without(entries, shared)) {
		done, err := c.deleteOne(ctx, j, e)
		if err != nil {
			return false, err
		}
		gone = gone && done
	}
	return gone, nil
}

// deleteOne deletes one object and reports whether it is gone.
func (c cluster) deleteOne(ctx context.Context, j *job.Job, e entry) (gone bool, err error) {
	have, err := c.at(e).Get(ctx, e.Object.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, manifest.Classify(err, e.what())
	case !e.ours(have), e.bears() && manifest.EpochOf(have) > j.Epoch:
		return true, nil // it belongs to somebody else now
	case have.GetDeletionTimestamp() != nil:
		return false, nil
	}
	uid, foreground := have.GetUID(), metav1.DeletePropagationForeground // so that its pods go before it does
	err = c.at(e).Delete(ctx, have.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &foreground,
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	return false, manifest.Classify(err, e.what())
}

// Remove deletes the objects of the inventory, last first, and the inventory once they are gone. It has to be repeated
// until Observe finds nothing.
func (d *Direct) Remove(ctx context.Context, j *job.Job) error {
	c, err := d.open(j.Cluster)
	if err != nil {
		return err
	}
	return manifest.Classify(c.remove(ctx, j), "component "+j.Component)
}

func (c cluster) remove(ctx context.Context, j *job.Job) error {
	have, entries, err := c.inventory(ctx, j)
	if err != nil {
		return err
	}
	if have == nil {
		return c.tidy(ctx, j.Namespace, "") // an earlier removal may have crashed between inventory and namespace
	}
	record, _ := manifest.ReadRecord(have)
	if record.Epoch > j.Epoch {
		return orchestrator.ErrFenced
	}
	if have.GetAnnotations()[markLeaving] == "" { // from here on nothing is applied on top
		if have, err = c.leave(ctx, have); err != nil {
			return err
		}
	}
	if gone, err := c.deleteAll(ctx, j, entries); err != nil || !gone {
		return err
	}
	// The namespace goes before its last inventory, since without one nothing would remind us of the namespace.
	if err := c.tidy(ctx, j.Namespace, have.GetName()); err != nil {
		return err
	}
	uid := have.GetUID()
	err = c.Resource(secrets).Namespace(have.GetNamespace()).Delete(ctx, have.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid},
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return err
	}
	return c.tidy(ctx, j.Namespace, "") // another component may have gone at the same time
}

// tidy deletes the namespace of an application once it has no inventory in the cluster, other than the one named last.
func (c cluster) tidy(ctx context.Context, namespace, last string) error {
	two := metav1.ListOptions{LabelSelector: labelInventory + "=true", Limit: 2}
	left, err := c.Resource(secrets).Namespace(namespace).List(ctx, two)
	if err != nil {
		return err
	}
	for i := range left.Items {
		if left.Items[i].GetName() != last {
			return nil
		}
	}
	ns, err := c.Resource(namespaces).Get(ctx, namespace, metav1.GetOptions{})
	if kube.IsAbsent(err) || err == nil && ns.GetLabels()[orchestrator.LabelManager] != orchestrator.Manager {
		return nil
	}
	if err != nil {
		return err
	}
	uid := ns.GetUID()
	err = c.Resource(namespaces).
		Delete(ctx, namespace, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// gaveUp reports whether the cluster did not answer before and is not asked again.
func (d *Direct) gaveUp(name string) bool {
	if d.silent == nil {
		return false
	}
	_, silent := d.silent.Load(name)
	return silent
}

// Observe reads every object of the job's inventory.
func (d *Direct) Observe(ctx context.Context, j *job.Job) (orchestrator.Status, error) {
	silence := orchestrator.Status{Silent: fmt.Sprintf("the API of cluster %s does not answer", j.Cluster)}
	if d.gaveUp(j.Cluster) {
		return silence, nil
	}
	var s orchestrator.Status
	c, err := d.open(j.Cluster)
	if err == nil {
		s, err = c.observe(ctx, j)
		err = manifest.Classify(err, "component "+j.Component)
	}
	var refusal *orchestrator.Refusal
	switch {
	case errors.As(err, &refusal):
		s.Refused = refusal
		return s, nil
	case errors.Is(err, orchestrator.ErrSilent):
		if d.silent != nil {
			d.silent.Store(j.Cluster, true)
		}
		return silence, nil
	case manifest.Failing(err): // perhaps of one kind only, so other jobs in this cluster are still looked at
		return silence, nil
	}
	return s, err
}

func (c cluster) observe(ctx context.Context, j *job.Job) (orchestrator.Status, error) {
	var s orchestrator.Status
	have, entries, err := c.inventory(ctx, j)
	if err != nil || have == nil {
		return s, err
	}
	s.Exists = true
	s.Record, _ = manifest.ReadRecord(have)
	s.Leaving = have.GetAnnotations()[markLeaving] != ""
	if s.Leaving {
		s.Remains, err = c.remains(ctx, j, entries)
		return s, err
	}
	s.Applied = true
	for _, e := range entries {
		if e.Dropped { // a crash left this unfinished: count as outdated, so that it is resumed
			s.Content = ""
			continue
		}
		live, err := c.at(e).Get(ctx, e.Object.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			s.Objects = append(s.Objects, orchestrator.Health{
				Object: e.what(), Reason: orchestrator.ReasonMissing, Message: e.what() + " is not there",
			})
			s.Content = "" // count as outdated, so that it is recreated
		case err != nil:
			return s, err
		default:
			want, err := c.wanted(ctx, j, e, manifest.RevisionOf(live))
			if err != nil {
				return s, err
			}
			if want == nil { // left by a crash, or an older decision is still at work
				want, s.Content = e.Object, ""
			}
			s.Objects = append(s.Objects, manifest.HealthOf(want, manifest.Ask(live, manifest.FactsOf(want))))
		}
	}
	return s, nil
}

// remains names an object that a removal waits for: on a lost node objects with pods do not go away, and others wait for
// a controller that is gone.
func (c cluster) remains(ctx context.Context, j *job.Job, entries []entry) (string, error) {
	for _, e := range entries {
		live, err := c.at(e).Get(ctx, e.Object.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return "", err
		case !e.ours(live), manifest.EpochOf(live) > j.Epoch:
		case !e.bears() && live.GetDeletionTimestamp() == nil: // another job of the application may want it
		case len(live.GetFinalizers()) > 0:
			return fmt.Sprintf(": %s is still there, held by %s", e.what(), strings.Join(live.GetFinalizers(), ", ")), nil
		default:
			return fmt.Sprintf(": %s is still there", e.what()), nil
		}
	}
	return "", nil
}

// wanted returns the object with this revision: the entry's, or another job's when two components list an object of the
// same name with different content and the other was applied last. (Restoring our own would start an endless fight.)
// nil when no job wants this revision.
func (c cluster) wanted(ctx context.Context, j *job.Job, e entry, revision string) (*unstructured.Unstructured, error) {
	if manifest.RevisionOf(e.Object) == revision {
		return e.Object, nil
	}
	if e.bears() {
		return nil, nil
	}
	shared, err := c.shared(ctx, j)
	for _, other := range shared {
		if other.key() == e.key() && manifest.RevisionOf(other.Object) == revision {
			return other.Object, nil
		}
	}
	return nil, err
}

// Copies lists the inventories of all clusters that answer, several clusters in parallel, since a silent one takes
// long. The Orchestrator returned with them does not ask silent clusters again, so that they hold up no other. A
// cluster that refuses is left out as well; its jobs report why.
func (d *Direct) Copies(ctx context.Context) ([]orchestrator.Copy, orchestrator.Orchestrator, error) {
	seen := &Direct{clusters: d.clusters, silent: &sync.Map{}}
	var copies []orchestrator.Copy
	var mu sync.Mutex
	var all sync.WaitGroup
	slots := make(chan struct{}, listed)
	for _, name := range d.clusters.Names() {
		c, err := d.open(name)
		if err != nil {
			continue // the jobs there report it
		}
		slots <- struct{}{}
		all.Go(func() {
			found, err := c.copies(ctx, name)
			<-slots
			mu.Lock()
			defer mu.Unlock()
			copies = append(copies, found...)
			switch {
			case manifest.Failing(err), manifest.Silent(err) && ctx.Err() == nil: // otherwise only our own time was up
				seen.silent.Store(name, true)
			case err != nil:
				slog.WarnContext(ctx, "the inventories of a cluster cannot be listed", "cluster", name, "error", err.Error())
			}
		})
	}
	all.Wait()
	return copies, seen, nil
}

func (c cluster) copies(ctx context.Context, name string) ([]orchestrator.Copy, error) {
	var all []orchestrator.Copy
	err := c.EachMetadata(ctx, secrets, labelInventory+"=true", func(o *unstructured.Unstructured) {
		if record, ours := manifest.ReadRecord(o); ours && record.Namespace == o.GetNamespace() {
			all = append(all, orchestrator.Copy{Record: record, Cluster: name})
		}
	})
	return all, err
}

// resolve finds the resource name of each object.
func (c cluster) resolve(ctx context.Context, objects []*unstructured.Unstructured) ([]entry, error) {
	kinds := manifest.KindsOf(objects)
	entries := make([]entry, 0, len(objects))
	for _, o := range objects {
		kind, gvk := kinds.Of(o), o.GroupVersionKind()
		if kind.Guessed {
			found, err := c.discover(ctx, gvk)
			if err != nil {
				return nil, err
			}
			if kind = found; !kind.Namespaced {
				o.SetNamespace("")
			}
		}
		entries = append(entries, entry{Resource: kind.Resource, Group: gvk.Group, Version: gvk.Version, Object: o})
	}
	return entries, nil
}

// discover asks the cluster about a kind that is not one of Kubernetes' own.
func (c cluster) discover(ctx context.Context, gvk schema.GroupVersionKind) (manifest.Kind, error) {
	var none manifest.Kind
	list, err := c.Kinds(ctx, gvk.GroupVersion())
	if apierrors.IsNotFound(err) {
		return none, orchestrator.Refuse(orchestrator.ReasonUnknownKind, "the cluster does not know %s", gvk.GroupVersion())
	}
	if err != nil {
		return none, err
	}
	for _, r := range list {
		if r.Kind == gvk.Kind && !strings.Contains(r.Name, "/") {
			return manifest.Kind{Resource: r.Name, Namespaced: r.Namespaced}, nil
		}
	}
	return none, orchestrator.Refuse(orchestrator.ReasonUnknownKind, "the cluster does not know %s in %s", gvk.Kind, gvk.GroupVersion())
}

// split separates the wanted entries from the dropped ones.
func split(entries []entry) (wanted, dropped []entry) {
	for _, e := range entries {
		if e.Dropped {
			dropped = append(dropped, e)
		} else {
			wanted = append(wanted, e)
		}
	}
	return wanted, dropped
}

func without(list, other []entry) []entry {
	among := map[string]bool{}
	for _, e := range other {
		among[e.key()] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(e entry) bool { return among[e.key()] })
}
