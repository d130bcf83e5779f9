package manifest

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is the resource name of a kind in the API, and whether its objects live in a namespace.
type Kind struct {
	Resource   string // plural
	Namespaced bool
	Guessed    bool // the kind is unknown here: the plural is formed by the usual rule
}

// Hint tells the author of a manifest what to do when the cluster has no such object because we guessed that its kind
// is namespaced; "" when it was not guessed.
func (k Kind) Hint() string {
	if !k.Guessed || !k.Namespaced {
		return ""
	}
	return "the kind was taken to be one that lives in a namespace; if it does not, give the object the annotation " +
		markScope + ": " + scopeCluster
}

// wellKnown lists the kinds of Kubernetes itself, for which no cluster needs to be asked.
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

// known reads a table of kinds by group; a slash marks those that are cluster-scoped.
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

// pluralOf forms the resource name of a kind by the usual rule.
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

// definition is CustomResourceDefinition. The group is compared too, since another group may have a kind of that name.
var definition = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

func defines(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().GroupKind() == definition
}

// Defines reports whether o is the CustomResourceDefinition of other's kind and version.
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

// demanded are kinds without whose objects an API server refuses a pod that names them.
var demanded = map[schema.GroupKind]bool{
	account: true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}: true,
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:        true,
}

// inOrder orders CustomResourceDefinitions before all other objects, and what pods demand before the rest.
func inOrder(a, b *unstructured.Unstructured) int {
	rank := func(o *unstructured.Unstructured) int {
		switch {
		case defines(o):
			return 0
		case demanded[o.GroupVersionKind().GroupKind()]:
			return 1
		}
		return 2
	}
	return rank(a) - rank(b)
}

// Kinds holds the kinds of Kubernetes and those that a job brings definitions for.
type Kinds map[schema.GroupKind]Kind

// KindsOf returns the kinds known for these objects, including those that CustomResourceDefinitions among them define.
// A definition whose plural is not a plain name is skipped: no cluster accepts it, and in a request path it could lead
// into another namespace.
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

// Of returns the kind of the object. The kinds of Kubernetes cannot be redefined. An unknown kind is taken to be
// namespaced, unless the object has the annotation littoral.dev/scope: cluster.
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

// podTemplates lists the kinds that have pods, with the path to the metadata and spec of those pods.
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

// replicationController is the predecessor of ReplicaSet; its selector is a plain map of labels.
var replicationController = schema.GroupKind{Kind: "ReplicationController"}

// oneRun is the kind that is done once its pods have ended.
var oneRun = schema.GroupKind{Group: "batch", Kind: "Job"}

// PodTemplate returns the path to the metadata and spec of the object's pods; ok is false when it has no pods.
func PodTemplate(o *unstructured.Unstructured) (path []string, ok bool) {
	path, ok = podTemplates[o.GroupVersionKind().GroupKind()]
	return slices.Clone(path), ok
}

var (
	account   = schema.GroupKind{Kind: "ServiceAccount"}
	secret    = schema.GroupKind{Kind: "Secret"}
	namespace = schema.GroupKind{Kind: "Namespace"}
)

// linkGroup is the group of ClusterLink, whose objects of these two kinds say whether they are valid.
const linkGroup = "clusterlink.net"

var (
	exportedService = schema.GroupKind{Group: linkGroup, Kind: "Export"}
	importedService = schema.GroupKind{Group: linkGroup, Kind: "Import"}
)

// Watched reports whether a change of the object's status is to be reported at once.
func Watched(o *unstructured.Unstructured) bool {
	gk := o.GroupVersionKind().GroupKind()
	_, bears := PodTemplate(o)
	return bears || gk == exportedService || gk == importedService
}

// binds reports whether the object is a role binding.
func binds(o *unstructured.Unstructured) bool {
	gk := o.GroupVersionKind().GroupKind()
	return gk.Group == "rbac.authorization.k8s.io" && (gk.Kind == "RoleBinding" || gk.Kind == "ClusterRoleBinding")
}

// Replaceable reports whether the pods of such an object are immutable: to change them, the object is deleted and
// recreated.
func Replaceable(o *unstructured.Unstructured) bool {
	gk := o.GroupVersionKind().GroupKind()
	return gk == oneRun || gk == schema.GroupKind{Kind: "Pod"} || retainsPods(o)
}

// retainsPods reports whether a change of such an object's template leaves its existing pods as they are.
func retainsPods(o *unstructured.Unstructured) bool {
	gk := o.GroupVersionKind().GroupKind()
	return gk == schema.GroupKind{Group: "apps", Kind: "ReplicaSet"} || gk == replicationController
}

// immutable lists the fields of a Job's spec that cannot change, besides the template of its pods.
var immutable = []string{
	"completions", "completionMode", "selector", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy",
}

// SamePods reports whether two objects with pods have equal pod templates, and two Jobs all else that is immutable.
func SamePods(a, b *unstructured.Unstructured) bool {
	path, _ := PodTemplate(a)
	if len(path) == 0 {
		path = []string{"spec"}
	}
	same := func(path ...string) bool {
		one, _, _ := unstructured.NestedFieldNoCopy(a.Object, path...)
		other, _, _ := unstructured.NestedFieldNoCopy(b.Object, path...)
		return reflect.DeepEqual(one, other)
	}
	differs := func(field string) bool { return !same("spec", field) }
	return same(path...) && (a.GroupVersionKind().GroupKind() != oneRun || !slices.ContainsFunc(immutable, differs))
}
