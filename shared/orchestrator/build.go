package orchestrator

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
)

// Build returns the objects that the job comes to, in the order of their application: the namespace of the application,
// then every manifest of the job, of whatever kind, those that define kinds first, each in that namespace where it
// lives in one, marked, and with its pods bound to the job's node. The error is a Refusal that names what cannot be
// read.
//
// What bears pods is the job's own. All else is the application's: replicas of a component list the same ConfigMap, so
// that nothing in it differs from one to the next, and components may.
func Build(j *job.Job) ([]*unstructured.Unstructured, error) {
	objects, err := Read(j.Instruction.Contents)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(objects, definitionsFirst)
	distinguish(objects, j)
	resettle(objects, j)
	for _, o := range objects {
		encode(o)
	}
	for _, o := range autoscaled(objects) { // whoever holds the field as well is refused the next change
		unstructured.RemoveNestedField(o.Object, "spec", "replicas")
	}
	kinds := KindsOf(objects)
	all := []*unstructured.Unstructured{namespaceOf(j)}
	seen := map[string]bool{identity(all[0]): true}
	for _, o := range objects {
		if kinds.Of(o).Namespaced {
			o.SetNamespace(j.Namespace)
		} else {
			o.SetNamespace("")
		}
		id := identity(o)
		if seen[id] {
			if id == identity(all[0]) {
				adopt(all[0], o)
				continue
			}
			return nil, Refuse(ReasonBadManifest, "%s stands twice in component %s", id, j.Component)
		}
		seen[id] = true
		if err := dress(o, j); err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	if len(all) == 1 {
		return nil, Refuse(ReasonBadManifest, "component %s has no manifest", j.Component)
	}
	for _, o := range all[1:] {
		Stamp(o)
	}
	return all, nil
}

// Read returns the Kubernetes objects of the contents, which may hold several documents each. The members of a List
// stand for it.
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
				return nil, Refuse(ReasonBadManifest, "manifest %s cannot be read: %v", c.Name, err)
			}
			found, err := parse(text)
			if err != nil {
				return nil, Refuse(ReasonBadManifest, "manifest %s: %v", c.Name, err)
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
	// What a cluster adds is not for a manifest to say.
	for _, field := range []string{
		"resourceVersion", "uid", "generation", "creationTimestamp", "managedFields", "selfLink",
	} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(o.Object, "status")
	return nil
}

// identity is what no two objects of a job may share.
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
	// Nothing here may differ from one component to the next: each of them brings the same namespace.
	merge(ns, "labels", map[string]string{LabelManager: Manager, MarkInstance: j.ApplicationID.String()})
	merge(ns, "annotations", map[string]string{MarkApplication: j.ApplicationName, MarkInstance: j.ApplicationID.String()})
	return ns
}

// adopt takes over what a manifest says about the application's own namespace.
func adopt(ns, from *unstructured.Unstructured) {
	merge(ns, "labels", from.GetLabels())
	merge(ns, "annotations", from.GetAnnotations())
}

// marks are what all objects of a component are known by.
func marks(j *job.Job) (labels, annotations map[string]string) {
	annotations = map[string]string{
		MarkApplication: j.ApplicationName, MarkInstance: j.ApplicationID.String(), MarkComponent: j.Component,
	}
	labels = make(map[string]string, len(annotations)+1)
	for key, value := range annotations {
		labels[key] = labelValue(value)
	}
	return labels, annotations
}

// distinguish gives what bears pods a name of its own and pods of its own where the job is not the first of its
// component: each replica brings the same manifests, perhaps to the same cluster. The first is as it was written. What
// scales such an object goes with it.
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
			mergeAt(o.Object, map[string]string{LabelJob: Subject(j).String()}, path...)
		}
	}
	for _, o := range objects {
		if of, scales := scaleTarget(o); scales && own[of] {
			o.SetName(o.GetName() + number)
			mergeAt(o.Object, map[string]string{"name": of[1] + number}, "spec", "scaleTargetRef")
		}
	}
}

// resettle has the bindings of roles name the ServiceAccounts of the application where they will be. Whoever writes a
// binding does not know the application's namespace, so its own are taken to be those in none, in the binding's, or in one
// by the application's name, and those that the job brings. All others are somebody else's.
func resettle(objects []*unstructured.Unstructured, j *job.Job) {
	brought := map[[2]string]bool{} // by namespace, as it was written, and name
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

// encode writes what a Secret says as text into its data, as an API server does, but before anybody applies it: who applies
// a text owns that, and when it is taken out, the data that came of it would stay (kubernetes/kubernetes#108008). What
// cannot be read is for the API server to refuse.
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
	if bears { // by these telemetry knows the pods of a job; all else may be of several
		labels[LabelJob], annotations[MarkResource] = Subject(j).String(), ResourceID(j)
	}
	own := maps.Clone(labels)
	own[LabelManager] = Manager
	merge(o, "labels", own)
	merge(o, "annotations", annotations)
	if !bears {
		return nil
	}
	merge(o, "annotations", map[string]string{markEpoch: strconv.FormatInt(j.Epoch, 10)})
	KeepEnded(o)
	spec := append(path[:len(path):len(path)], "spec")
	pod, ok, err := unstructured.NestedMap(o.Object, spec...)
	if err != nil || !ok {
		return Refuse(ReasonBadManifest, "%s has no %s", identity(o), strings.Join(spec, "."))
	}
	if len(path) > 0 {
		if err := present(o.Object, append(path, "metadata")...); err != nil {
			return Refuse(ReasonBadManifest, "%s: %v", identity(o), err)
		}
		mergeAt(o.Object, labels, append(path, "metadata", "labels")...)
		mergeAt(o.Object, annotations, append(path, "metadata", "annotations")...)
	}
	if j.Node == "" {
		return nil
	}
	if err := bind(pod, j.Node); err != nil {
		return Refuse(ReasonBadManifest, "%s: %v", identity(o), err)
	}
	return unstructured.SetNestedMap(o.Object, pod, spec...)
}

// KeepEnded has a Job stay when it has ended, and says whether that changes it. The cluster would delete it some time
// after its end, and whoever looks after the copy would find it missing and run it again. How long a copy stays is for
// decisions to say.
func KeepEnded(o *unstructured.Unstructured) (changed bool) {
	bound := []string{"spec", "ttlSecondsAfterFinished"}
	_, goes, _ := unstructured.NestedFieldNoCopy(o.Object, bound...)
	if !goes || o.GroupVersionKind().GroupKind() != oneRun {
		return false
	}
	unstructured.RemoveNestedField(o.Object, bound...)
	return true
}

// present makes the field an object where there is none; YAML of tools often says null.
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

// bind has the pods run on the node and on no other. Terms of the manifest's own are alternatives, so each of them gets
// the node as well.
func bind(pod map[string]any, node string) error {
	delete(pod, "nodeName") // the place is not for the manifest to say
	at := []string{"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"}
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

// Stamp marks the object with a digest of what it now is, under its epoch. Which component was the last to apply what
// several may list makes no difference: the others are content with it.
func Stamp(o *unstructured.Unstructured) {
	if keepsPods(o) {
		template, _, _ := unstructured.NestedFieldNoCopy(o.Object, podTemplates[o.GroupVersionKind().GroupKind()]...)
		if text, err := json.Marshal(template); err == nil { // it came from JSON
			merge(o, "annotations", map[string]string{markPods: digest(text)})
		}
	}
	of := o.DeepCopy()
	unstructured.RemoveNestedField(of.Object, "metadata", "annotations", markRevision)
	if _, bears := PodTemplate(o); !bears {
		unstructured.RemoveNestedField(of.Object, "metadata", "annotations", MarkComponent)
		unstructured.RemoveNestedField(of.Object, "metadata", "labels", MarkComponent)
	}
	text, err := json.Marshal(of.Object)
	if err != nil {
		return // it came from JSON
	}
	merge(o, "annotations", map[string]string{markRevision: strconv.FormatInt(EpochOf(o), 10) + "-" + digest(text)})
}

// OtherPods reports whether the object in the cluster keeps pods that next would make otherwise.
func OtherPods(live, next *unstructured.Unstructured) bool {
	return keepsPods(next) && live.GetAnnotations()[markPods] != next.GetAnnotations()[markPods]
}

// RevisionOf returns the stamp of the object.
func RevisionOf(o *unstructured.Unstructured) string { return o.GetAnnotations()[markRevision] }
