package orchestrator

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is how the API calls objects of a kind, and whether they live in a namespace.
type Kind struct {
	Resource   string // plural
	Namespaced bool
	Guessed    bool // nobody here knows the kind: the plural is the usual one
}

// Hint says what the author of a manifest can do where the cluster has no such object, since it was only guessed that it
// lives in a namespace; "" where it was not.
func (k Kind) Hint() string {
	if !k.Guessed || !k.Namespaced {
		return ""
	}
	return "the kind was taken to be one that lives in a namespace; if it does not, give the object the annotation " +
		markScope + ": " + scopeCluster
}

// wellKnown are the kinds of Kubernetes itself, so that no cluster needs to be asked about them.
var wellKnown = known(map[string]string{
	"": "ConfigMap Endpoints=endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController " +
		"ResourceQuota Secret Service ServiceAccount /Namespace /Node /PersistentVolume",
	"apps":                      "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
	"batch":                     "CronJob Job",
	"autoscaling":               "HorizontalPodAutoscaler",
	"coordination.k8s.io":       "Lease",
	"discovery.k8s.io":          "EndpointSlice",
	"policy":                    "PodDisruptionBudget",
	"networking.k8s.io":         "Ingress NetworkPolicy /IngressClass /IPAddress /ServiceCIDR",
	"rbac.authorization.k8s.io": "Role RoleBinding /ClusterRole /ClusterRoleBinding",
	"apiextensions.k8s.io":      "/CustomResourceDefinition",
	"storage.k8s.io":            "CSIStorageCapacity /CSIDriver /CSINode /StorageClass /VolumeAttachment /VolumeAttributesClass",
	"scheduling.k8s.io":         "/PriorityClass",
	"node.k8s.io":               "/RuntimeClass",
	"apiregistration.k8s.io":    "/APIService",
	"admissionregistration.k8s.io": "/MutatingWebhookConfiguration /ValidatingWebhookConfiguration " +
		"/MutatingAdmissionPolicy /MutatingAdmissionPolicyBinding " +
		"/ValidatingAdmissionPolicy /ValidatingAdmissionPolicyBinding",
	"certificates.k8s.io":          "PodCertificateRequest /CertificateSigningRequest /ClusterTrustBundle",
	"flowcontrol.apiserver.k8s.io": "/FlowSchema /PriorityLevelConfiguration",
	"resource.k8s.io":              "ResourceClaim ResourceClaimTemplate /DeviceClass /DeviceTaintRule /ResourceSlice",
	"storagemigration.k8s.io":      "/StorageVersionMigration",
})

// known reads a table: by group its kinds, with a slash those that are in no namespace.
func known(table map[string]string) map[schema.GroupKind]Kind {
	all := map[schema.GroupKind]Kind{}
	for group, kinds := range table {
		for _, word := range strings.Fields(kinds) {
			kind, global := strings.CutPrefix(word, "/")
			kind, plural, named := strings.Cut(kind, "=")
			if !named {
				plural = pluralOf(kind)
			}
			all[schema.GroupKind{Group: group, Kind: kind}] = Kind{Resource: plural, Namespaced: !global}
		}
	}
	return all
}

// pluralOf is how resources are usually called.
func pluralOf(kind string) string {
	low := strings.ToLower(kind)
	switch {
	case strings.HasSuffix(low, "s"),
		strings.HasSuffix(low, "x"),
		strings.HasSuffix(low, "ch"),
		strings.HasSuffix(low, "sh"):
		return low + "es"
	case strings.HasSuffix(low, "y") && !strings.ContainsAny(low[max(0, len(low)-2):len(low)-1], "aeiou"):
		return low[:len(low)-1] + "ies"
	}
	return low + "s"
}

// definition is the kind that defines others. Anybody may define one of that name in another group.
var definition = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

func defines(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().GroupKind() == definition
}

// Defines reports whether the object is the CustomResourceDefinition of the other's kind, in its version.
func Defines(o, other *unstructured.Unstructured) bool {
	gvk := other.GroupVersionKind()
	if _, ours := KindsOf([]*unstructured.Unstructured{o})[gvk.GroupKind()]; !ours {
		return false
	}
	versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
	return slices.ContainsFunc(versions, func(entry any) bool {
		version, ok := entry.(map[string]any)
		return ok && version["name"] == gvk.Version
	})
}

// definitionsFirst orders objects so that kinds are there before what is of them.
func definitionsFirst(a, b *unstructured.Unstructured) int {
	switch {
	case defines(a) == defines(b):
		return 0
	case defines(a):
		return -1
	}
	return 1
}

// Kinds knows the kinds of Kubernetes and those that a job brings definitions of.
type Kinds map[schema.GroupKind]Kind

// KindsOf returns what is known of kinds beside those objects: a CustomResourceDefinition among them names its own. One
// whose plural is more than a name, which no cluster takes, would lead requests elsewhere, into another namespace perhaps.
func KindsOf(objects []*unstructured.Unstructured) Kinds {
	kinds := Kinds{}
	for _, o := range objects {
		if !defines(o) {
			continue
		}
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		plural, _, _ := unstructured.NestedString(o.Object, "spec", "names", "plural")
		scope, _, _ := unstructured.NestedString(o.Object, "spec", "scope")
		if kind != "" && plural != "" && len(content.IsPathSegmentName(plural)) == 0 {
			kinds[schema.GroupKind{Group: group, Kind: kind}] = Kind{Resource: plural, Namespaced: scope != "Cluster"}
		}
	}
	return kinds
}

// Of returns the kind of the object; Kubernetes' own cannot be defined anew. What nobody knows is taken to live in a
// namespace, unless the object itself says otherwise with the annotation littoral.dev/scope: cluster.
func (k Kinds) Of(o *unstructured.Unstructured) Kind {
	gk := o.GroupVersionKind().GroupKind()
	if kind, ok := wellKnown[gk]; ok {
		return kind
	}
	if kind, ok := k[gk]; ok {
		return kind
	}
	return Kind{Resource: pluralOf(gk.Kind), Namespaced: o.GetAnnotations()[markScope] != scopeCluster, Guessed: true}
}

// podTemplates is where the kinds that bear pods keep the metadata and spec of those.
var podTemplates = map[schema.GroupKind][]string{
	{Group: "apps", Kind: "Deployment"}:  {"spec", "template"},
	{Group: "apps", Kind: "StatefulSet"}: {"spec", "template"},
	{Group: "apps", Kind: "DaemonSet"}:   {"spec", "template"},
	{Group: "apps", Kind: "ReplicaSet"}:  {"spec", "template"},
	{Group: "batch", Kind: "Job"}:        {"spec", "template"},
	{Group: "batch", Kind: "CronJob"}:    {"spec", "jobTemplate", "spec", "template"},
	{Group: "", Kind: "Pod"}:             {},

	replicationController: {"spec", "template"},
}

// replicationController is the ReplicaSet of before: its selector is labels and nothing else.
var replicationController = schema.GroupKind{Kind: "ReplicationController"}

// oneRun is the kind whose work is done when its pods have ended.
var oneRun = schema.GroupKind{Group: "batch", Kind: "Job"}

// PodTemplate returns where the object keeps the metadata and the spec of its pods; ok is false when it bears none.
func PodTemplate(o *unstructured.Unstructured) (path []string, ok bool) {
	path, ok = podTemplates[o.GroupVersionKind().GroupKind()]
	return slices.Clone(path), ok
}

var (
	account = schema.GroupKind{Kind: "ServiceAccount"}
	secret  = schema.GroupKind{Kind: "Secret"}
)

// binds reports whether the object gives a role to subjects.
func binds(o *unstructured.Unstructured) bool {
	gk := o.GroupVersionKind().GroupKind()
	return gk.Group == "rbac.authorization.k8s.io" && (gk.Kind == "RoleBinding" || gk.Kind == "ClusterRoleBinding")
}

// Replaceable reports whether the object is of a kind whose pods cannot be changed in place: to change what it runs, or
// where, it is deleted and made anew.
func Replaceable(o *unstructured.Unstructured) bool {
	gk := o.GroupVersionKind().GroupKind()
	return gk == oneRun || gk == schema.GroupKind{Kind: "Pod"} || keepsPods(o)
}

// keepsPods reports whether the object can be changed, and leaves the pods that it has made as they are.
func keepsPods(o *unstructured.Unstructured) bool {
	gk := o.GroupVersionKind().GroupKind()
	return gk == schema.GroupKind{Group: "apps", Kind: "ReplicaSet"} || gk == replicationController
}

// SamePods reports whether two objects of a kind that bears pods have the same ones.
func SamePods(a, b *unstructured.Unstructured) bool {
	path, _ := PodTemplate(a)
	if len(path) == 0 {
		path = []string{"spec"}
	}
	one, _, _ := unstructured.NestedFieldNoCopy(a.Object, path...)
	other, _, _ := unstructured.NestedFieldNoCopy(b.Object, path...)
	return reflect.DeepEqual(one, other)
}

// replicated are the kinds whose number of pods can be set.
var replicated = []schema.GroupKind{
	{Group: "apps", Kind: "Deployment"},
	{Group: "apps", Kind: "StatefulSet"},
	{Group: "apps", Kind: "ReplicaSet"},
	replicationController,
}

// Replicated reports whether the number of the object's pods can be set.
func Replicated(o *unstructured.Unstructured) bool {
	return slices.Contains(replicated, o.GroupVersionKind().GroupKind())
}
