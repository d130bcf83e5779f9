package manifest

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/orchestrator"
)

// Build returns the objects to apply for the job, in this order: the namespace of the application, then the manifests
// of the job, CustomResourceDefinitions first and then what pods demand, such as a ServiceAccount. Each object is put
// into the application's namespace (unless its kind is cluster-scoped) and marked, and its pods are bound to the job's
// node. The error is a Refusal that names what cannot be read.
//
// An object that has pods belongs to the job alone. Every other object belongs to the application: all replicas of a
// component list the same ConfigMap, so it must come out equal for each of them. Different components may differ.
func Build(j *job.Job) ([]*unstructured.Unstructured, error) {
	objects, err := Read(j.Instruction.Contents)
	if err != nil {
		return nil, err
	}
	if len(objects) == 0 {
		return nil, orchestrator.Refuse(orchestrator.ReasonBadManifest, "component %s has no manifest", j.Component)
	}
	slices.SortStableFunc(objects, inOrder)
	distinguish(objects, j)
	retargetSubjects(objects, j)
	for _, o := range objects {
		encode(o)
	}
	for _, o := range autoscaled(objects) { // the autoscaler owns this field: if we held it too, our next change would conflict
		unstructured.RemoveNestedField(o.Object, "spec", "replicas")
	}
	kinds := KindsOf(objects)
	all := []*unstructured.Unstructured{namespaceOf(j)}
	own := namespaces(objects, j)
	seen := map[string]bool{}
	for _, o := range objects {
		if o.GroupVersionKind().GroupKind() == namespace && own[o.GetName()] {
			adopt(all[0], o)
			continue
		}
		if kinds.Of(o).Namespaced {
			o.SetNamespace(j.Namespace)
		} else {
			o.SetNamespace("")
		}
		id := identity(o)
		if seen[id] {
			return nil, orchestrator.Refuse(orchestrator.ReasonBadManifest, "%s stands twice in component %s", id, j.Component)
		}
		seen[id] = true
		if err := dress(o, j); err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	for _, o := range all[1:] {
		stamp(o)
	}
	return all, nil
}

// Read returns the Kubernetes objects of the contents, each of which may hold several YAML documents. A List is
// replaced by its members.
func Read(contents []job.Content) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, c := range contents {
		documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(c.YAML)))
		for {
			text, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, orchestrator.Refuse(orchestrator.ReasonBadManifest, "manifest %s cannot be read: %v", c.Name, err)
			}
			found, err := parse(text)
			if err != nil {
				return nil, orchestrator.Refuse(orchestrator.ReasonBadManifest, "manifest %s: %v", c.Name, err)
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

func parse(text []byte) ([]*unstructured.Unstructured, error) {
	body, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	if string(body) == "null" {
		return nil, nil
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(body); err != nil {
		return nil, err
	}
	if o.IsList() {
		var all []*unstructured.Unstructured
		err := o.EachListItem(func(item runtime.Object) error {
			member, ok := item.(*unstructured.Unstructured)
			if !ok {
				return errors.New("a list holds something that is no object")
			}
			all = append(all, member)
			return check(member)
		})
		return all, err
	}
	return []*unstructured.Unstructured{o}, check(o)
}

func check(o *unstructured.Unstructured) error {
	switch {
	case o.GetAPIVersion() == "" || o.GetKind() == "":
		return errors.New("has no apiVersion or kind")
	case o.GetName() == "":
		return fmt.Errorf("%s has no metadata.name", o.GetKind())
	case len(content.IsPathSegmentName(o.GetName())) > 0:
		return fmt.Errorf("%s has a metadata.name that no API takes: %q", o.GetKind(), o.GetName())
	}
	// These fields are set by a cluster, so what a manifest says in them is dropped. A cluster deletes an object whose
	// owner it does not have.
	for _, field := range []string{
		"resourceVersion", "uid", "generation", "creationTimestamp", "managedFields", "selfLink", "ownerReferences",
		"deletionTimestamp", "deletionGracePeriodSeconds",
	} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(o.Object, "status")
	return nil
}

// identity returns kind, namespace and name of the object; no two objects of a job may have the same.
func identity(o *unstructured.Unstructured) string {
	id := strings.TrimPrefix(o.GroupVersionKind().Group+"/"+o.GetKind(), "/")
	if o.GetNamespace() != "" {
		return id + " " + o.GetNamespace() + "/" + o.GetName()
	}
	return id + " " + o.GetName()
}

// namespaceOf returns the namespace of the application, which all its components share.
func namespaceOf(j *job.Job) *unstructured.Unstructured {
	ns := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": j.Namespace},
	}}
	// Every component applies this same namespace, so nothing in it may depend on the component.
	merge(ns, "labels", map[string]string{orchestrator.LabelManager: orchestrator.Manager, label.MarkInstance: j.ApplicationID.String()})
	merge(ns, "annotations", map[string]string{label.MarkApplication: j.ApplicationName, label.MarkInstance: j.ApplicationID.String()})
	return ns
}

// namespaces returns the names by which the manifests call the application's namespace: that of the application, and those
// that they would put objects in. A cluster may have a namespace of that name already, with objects of others, and it would
// go with the application.
func namespaces(objects []*unstructured.Unstructured, j *job.Job) map[string]bool {
	names := map[string]bool{j.Namespace: true, j.ApplicationName: true}
	for _, o := range objects {
		names[o.GetNamespace()] = true
	}
	return names
}

// adopt adds the labels and annotations of a manifest that describes the application's own namespace. Ours stay.
func adopt(ns, from *unstructured.Unstructured) {
	labels, annotations := ns.GetLabels(), ns.GetAnnotations()
	merge(ns, "labels", from.GetLabels())
	merge(ns, "annotations", from.GetAnnotations())
	merge(ns, "labels", labels)
	merge(ns, "annotations", annotations)
}

// marks returns the labels and annotations that identify all objects of a component.
func marks(j *job.Job) (labels, annotations map[string]string) {
	annotations = map[string]string{
		label.MarkApplication: j.ApplicationName, label.MarkInstance: j.ApplicationID.String(), label.MarkComponent: j.Component,
	}
	labels = make(map[string]string, len(annotations)+1)
	for key, value := range annotations {
		labels[key] = labelValue(value)
	}
	return labels, annotations
}

// distinguish gives the objects with pods a name and a selector of their own when the job is a second or later replica
// of its component: each replica brings the same manifests, perhaps to the same cluster. The first replica stays as
// written. An autoscaler is renamed along with the object it scales.
func distinguish(objects []*unstructured.Unstructured, j *job.Job) {
	if j.Replica == 0 {
		return
	}
	number := "-" + strconv.Itoa(j.Replica)
	own := map[[2]string]bool{} // by kind and name
	for _, o := range objects {
		if _, bears := PodTemplate(o); !bears {
			continue
		}
		own[[2]string{o.GetKind(), o.GetName()}] = true
		o.SetName(o.GetName() + number)
		if _, selects, _ := unstructured.NestedMap(o.Object, "spec", "selector"); selects {
			path := []string{"spec", "selector", "matchLabels"}
			if o.GroupVersionKind().GroupKind() == replicationController {
				path = path[:2]
			}
			mergeAt(o.Object, map[string]string{orchestrator.LabelJob: orchestrator.Subject(j).String()}, path...)
		}
	}
	for _, o := range objects {
		if of, scales := scaleTarget(o); scales && own[of] {
			o.SetName(o.GetName() + number)
			mergeAt(o.Object, map[string]string{"name": of[1] + number}, "spec", "scaleTargetRef")
		}
	}
}

// retargetSubjects makes role bindings name the application's ServiceAccounts in the namespace where they will be. Whoever
// writes a binding does not know that namespace. So a subject counts as the application's own when it has no namespace,
// that of the binding, or one called like the application, or when the job itself brings that ServiceAccount. Other
// subjects stay.
func retargetSubjects(objects []*unstructured.Unstructured, j *job.Job) {
	brought := map[[2]string]bool{} // by namespace (as written in the manifest) and name
	for _, o := range objects {
		if o.GroupVersionKind().GroupKind() == account {
			brought[[2]string{o.GetNamespace(), o.GetName()}] = true
		}
	}
	for _, o := range objects {
		if !binds(o) {
			continue
		}
		field, _, _ := unstructured.NestedFieldNoCopy(o.Object, "subjects")
		subjects, _ := field.([]any)
		for _, entry := range subjects {
			subject, _ := entry.(map[string]any)
			if subject["kind"] != account.Kind {
				continue
			}
			in, _ := subject["namespace"].(string)
			name, _ := subject["name"].(string)
			if in == "" || in == o.GetNamespace() || in == j.ApplicationName ||
				brought[[2]string{in, name}] || brought[[2]string{"", name}] {
				subject["namespace"] = j.Namespace
			}
		}
	}
}

// encode moves the stringData of a Secret into its data. An API server does that too, but then our field manager owns
// only stringData: a key that a later version drops would stay in data (kubernetes/kubernetes#108008). A Secret that is
// malformed is left for the API server to refuse.
func encode(o *unstructured.Unstructured) {
	const text = "stringData"
	values, found, err := unstructured.NestedStringMap(o.Object, text)
	if !found || err != nil || o.GroupVersionKind().GroupKind() != secret || present(o.Object, "data") != nil {
		return
	}
	for key, value := range values {
		encoded := base64.StdEncoding.EncodeToString([]byte(value))
		_ = unstructured.SetNestedField(o.Object, encoded, "data", key) // fails only where data is no object
	}
	unstructured.RemoveNestedField(o.Object, text)
}

// dress marks the object and the template of its pods, and binds the pods to the node.
func dress(o *unstructured.Unstructured, j *job.Job) error {
	labels, annotations := marks(j)
	path, bears := PodTemplate(o)
	if bears { // telemetry finds the pods of a job by these; an object without pods may belong to several jobs
		labels[orchestrator.LabelJob], annotations[label.MarkResource] = orchestrator.Subject(j).String(), orchestrator.ResourceID(j)
	}
	own := maps.Clone(labels)
	own[orchestrator.LabelManager] = orchestrator.Manager
	merge(o, "labels", own)
	merge(o, "annotations", annotations)
	if !bears {
		return nil
	}
	merge(o, "annotations", map[string]string{markEpoch: strconv.FormatInt(j.Epoch, 10)})
	RemoveTTL(o)
	spec := append(path[:len(path):len(path)], "spec")
	pod, ok, err := unstructured.NestedMap(o.Object, spec...)
	if err != nil || !ok {
		return orchestrator.Refuse(orchestrator.ReasonBadManifest, "%s has no %s", identity(o), strings.Join(spec, "."))
	}
	if len(path) > 0 {
		if err := present(o.Object, append(path, "metadata")...); err != nil {
			return orchestrator.Refuse(orchestrator.ReasonBadManifest, "%s: %v", identity(o), err)
		}
		mergeAt(o.Object, labels, append(path, "metadata", "labels")...)
		mergeAt(o.Object, annotations, append(path, "metadata", "annotations")...)
	}
	if j.Node == "" {
		return nil
	}
	if err := bind(pod, j.Node); err != nil {
		return orchestrator.Refuse(orchestrator.ReasonBadManifest, "%s: %v", identity(o), err)
	}
	return unstructured.SetNestedMap(o.Object, pod, spec...)
}

// RemoveTTL removes ttlSecondsAfterFinished from a Job, and reports whether it was there. Otherwise the cluster would
// delete the finished Job, and we would find it missing and run it again.
func RemoveTTL(o *unstructured.Unstructured) (changed bool) {
	bound := []string{"spec", "ttlSecondsAfterFinished"}
	_, goes, _ := unstructured.NestedFieldNoCopy(o.Object, bound...)
	if !goes || o.GroupVersionKind().GroupKind() != oneRun {
		return false
	}
	unstructured.RemoveNestedField(o.Object, bound...)
	return true
}

// present makes the field an empty object if it is absent or null, as some tools write it.
func present(in map[string]any, path ...string) error {
	have, found, err := unstructured.NestedFieldNoCopy(in, path...)
	if err != nil {
		return err
	}
	if _, isMap := have.(map[string]any); isMap {
		return nil
	}
	if found && have != nil {
		return fmt.Errorf("%s is not an object", strings.Join(path, "."))
	}
	return unstructured.SetNestedMap(in, map[string]any{}, path...)
}

// bind makes the pods run on this node only. The node selector terms of a manifest are alternatives, so the node is
// added to each of them.
func bind(pod map[string]any, node string) error {
	delete(pod, "nodeName") // placement decides, not the manifest
	at := []string{"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"}
	for i := range at[1:] {
		if err := present(pod, at[:i+1]...); err != nil {
			return err
		}
	}
	terms, _, err := unstructured.NestedSlice(pod, at...)
	if err != nil {
		return err
	}
	if len(terms) == 0 {
		terms = []any{map[string]any{}}
	}
	for i, t := range terms {
		term, ok := t.(map[string]any)
		if !ok {
			return fmt.Errorf("%s[%d] is not an object", strings.Join(at, "."), i)
		}
		fields, _, err := unstructured.NestedSlice(term, "matchFields")
		if err != nil {
			return err
		}
		term["matchFields"] = append(fields, map[string]any{
			"key": "metadata.name", "operator": "In", "values": []any{node},
		})
		terms[i] = term
	}
	return unstructured.SetNestedSlice(pod, terms, at...)
}

// stamp marks the object with its revision: epoch and digest of its content. The component is left out of the digest
// for an object without pods: several components may apply it, and it does not matter which did so last.
func stamp(o *unstructured.Unstructured) {
	if retainsPods(o) {
		template, _, _ := unstructured.NestedFieldNoCopy(o.Object, podTemplates[o.GroupVersionKind().GroupKind()]...)
		if text, err := json.Marshal(template); err == nil { // it came from JSON
			merge(o, "annotations", map[string]string{markPods: orchestrator.Digest(text)})
		}
	}
	of := o.DeepCopy()
	unstructured.RemoveNestedField(of.Object, "metadata", "annotations", markRevision)
	if _, bears := PodTemplate(o); !bears {
		unstructured.RemoveNestedField(of.Object, "metadata", "annotations", label.MarkComponent)
		unstructured.RemoveNestedField(of.Object, "metadata", "labels", label.MarkComponent)
	}
	text, err := json.Marshal(of.Object)
	if err != nil {
		return // it came from JSON
	}
	merge(o, "annotations", map[string]string{markRevision: strconv.FormatInt(EpochOf(o), 10) + "-" + orchestrator.Digest(text)})
}

// OtherPods reports whether the live object keeps pods made from a template other than that of next.
func OtherPods(live, next *unstructured.Unstructured) bool {
	return retainsPods(next) && live.GetAnnotations()[markPods] != next.GetAnnotations()[markPods]
}

// RevisionOf returns the revision that stamp wrote.
func RevisionOf(o *unstructured.Unstructured) string { return o.GetAnnotations()[markRevision] }
