package kubeapi

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
)

const (
	workFinalizer = "cluster.open-cluster-management.io/manifest-work-cleanup"
	worksPath     = "/apis/work.open-cluster-management.io/v1/namespaces/"
	clustersPath  = "/apis/cluster.open-cluster-management.io/v1/managedclusters/"
)

// Agent is what Open Cluster Management runs for a managed cluster: it applies the works of its namespace on the hub to
// the cluster and reports on them.
type Agent struct {
	Name    string
	Hub     *Server
	Cluster *Server
	cut     bool
}

// Join registers the cluster at the hub.
func Join(t testing.TB, hub, cluster *Server, name string) *Agent {
	t.Helper()
	hub.Define("work.open-cluster-management.io", "v1", "ManifestWork", "manifestworks", true)
	hub.Define("cluster.open-cluster-management.io", "v1", "ManagedCluster", "managedclusters", false)
	hub.Put(t, "/api/v1/namespaces/"+name, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+name+`"}}`)
	hub.Put(t, clustersPath+name, `{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster",
"metadata":{"name":"`+name+`"},"spec":{"hubAcceptsClient":true}}`)
	a := &Agent{Name: name, Hub: hub, Cluster: cluster}
	a.Cut(false)
	return a
}

// Cut separates the agent from its hub, which notices by the missing lease; false reconnects it.
func (a *Agent) Cut(cut bool) {
	a.cut = cut
	status := "True"
	if cut {
		status = "Unknown"
	}
	a.Hub.Change(clustersPath+a.Name, func(o *Object) {
		o.Object["status"] = map[string]any{"conditions": []any{map[string]any{
			"type": "ManagedClusterConditionAvailable", "status": status, "reason": "ManagedClusterLeaseUpdateStopped",
			"message": "lease", "lastTransitionTime": "2026-01-02T03:04:05Z",
		}}}
	})
}

// Work does all there is to do, unless the agent is cut off; the cluster's own controllers work in any case.
func (a *Agent) Work() {
	if !a.cut {
		for _, path := range a.Hub.Paths(worksPath + a.Name + "/manifestworks/") {
			a.work(path)
		}
	}
	a.Cluster.Work()
	if a.cut {
		return
	}
	for _, path := range a.Hub.Paths(worksPath + a.Name + "/manifestworks/") {
		a.work(path)
	}
}

// pathOf is the API path of an object, with the plural by the usual rule.
func pathOf(o *Object) string {
	gvk := o.GroupVersionKind()
	path := "/api/" + gvk.Version
	if gvk.Group != "" {
		path = "/apis/" + gvk.Group + "/" + gvk.Version
	}
	if o.GetNamespace() != "" {
		path += "/namespaces/" + o.GetNamespace()
	}
	return path + "/" + pluralOf(o) + "/" + o.GetName()
}

func pluralOf(o *Object) string {
	low := strings.ToLower(o.GetKind())
	if stem, ends := strings.CutSuffix(low, "y"); ends {
		return stem + "ies"
	}
	return low + "s"
}

func (a *Agent) work(path string) {
	work := a.Hub.Get(path)
	list, _, _ := unstructured.NestedSlice(work.Object, "spec", "workload", "manifests")
	configs, _, _ := unstructured.NestedSlice(work.Object, "spec", "manifestConfigs")
	if work.GetDeletionTimestamp() != nil {
		list = nil
	}
	a.prune(work.GetName(), list)
	if work.GetDeletionTimestamp() != nil {
		if len(a.applied(work.GetName())) == 0 {
			a.Hub.mu.Lock()
			a.Hub.forget(path)
			a.Hub.mu.Unlock()
		}
		return
	}
	all, reports := true, []any{}
	for i, m := range list {
		manifest := &Object{Object: m.(map[string]any)}
		config := configFor(configs, manifest)
		ok, message, reason := a.apply(work.GetName(), manifest, config)
		all = all && ok
		gvk := manifest.GroupVersionKind()
		reports = append(reports, map[string]any{
			"resourceMeta": map[string]any{
				"ordinal": int64(i), "group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind, "resource": pluralOf(manifest),
				"namespace": manifest.GetNamespace(), "name": manifest.GetName(),
			},
			"conditions": []any{map[string]any{"type": "Applied", "status": truth(ok), "reason": reason, "message": message}},
		})
	}
	a.Hub.Change(path, func(o *Object) {
		o.Object["status"] = map[string]any{
			"conditions": []any{map[string]any{
				"type": "Applied", "status": truth(all), "observedGeneration": o.GetGeneration(), "reason": "AppliedManifestWork",
			}},
			"resourceStatus": map[string]any{"manifests": reports},
		}
	})
	a.report(path)
}

// Report reports on what is there without applying anything, which an agent does more often. For an object that it does
// not find, it reports Available as False and keeps the former values (AvailableStatusController of
// open-cluster-management-io/ocm).
func (a *Agent) Report() {
	for _, path := range a.Hub.Paths(worksPath + a.Name + "/manifestworks/") {
		a.report(path)
	}
}

func (a *Agent) report(path string) {
	a.Hub.Change(path, func(work *Object) {
		list, _, _ := unstructured.NestedSlice(work.Object, "spec", "workload", "manifests")
		configs, _, _ := unstructured.NestedSlice(work.Object, "spec", "manifestConfigs")
		reports, _, _ := unstructured.NestedSlice(work.Object, "status", "resourceStatus", "manifests")
		for i, entry := range reports {
			report := entry.(map[string]any)
			manifest := &Object{Object: list[i].(map[string]any)}
			live := a.Cluster.Get(pathOf(manifest))
			reason, message := "ResourceAvailable", "Resource is available"
			if live == nil {
				reason, message = "ResourceNotAvailable", "Resource is not available"
			} else {
				report["statusFeedback"] = map[string]any{"values": feedback(live, configFor(configs, manifest))}
			}
			applied := report["conditions"].([]any)[0]
			report["conditions"] = []any{applied, map[string]any{
				"type": "Available", "status": truth(live != nil), "reason": reason, "message": message,
			}}
		}
		_ = unstructured.SetNestedSlice(work.Object, reports, "status", "resourceStatus", "manifests")
	})
}

func truth(ok bool) string {
	if ok {
		return "True"
	}
	return "False"
}

func configFor(configs []any, o *Object) map[string]any {
	for _, c := range configs {
		config := c.(map[string]any)
		id, _, _ := unstructured.NestedStringMap(config, "resourceIdentifier")
		if id["name"] == o.GetName() && id["resource"] == pluralOf(o) {
			return config
		}
	}
	return nil
}

const ownerPrefix = "double.owner/"

// apply puts the manifest into the cluster by server-side apply and notes the work as an owner, as an agent does.
func (a *Agent) apply(work string, manifest *Object, config map[string]any) (ok bool, message, reason string) {
	manager, _, _ := unstructured.NestedString(config, "updateStrategy", "serverSideApply", "fieldManager")
	if manager == "" {
		manager = "work-agent"
	}
	text, err := manifest.MarshalJSON()
	if err != nil {
		return false, err.Error(), "AppliedManifestFailed"
	}
	path := pathOf(manifest)
	r, _ := parse(path)
	a.Cluster.mu.Lock()
	defer a.Cluster.mu.Unlock()
	if a.Cluster.refuse != nil {
		if err := a.Cluster.refuse("PATCH", path); err != nil {
			return false, err.Error(), "AppliedManifestFailed"
		}
	}
	if !a.Cluster.has(r) {
		return false, fmt.Sprintf("Failed to apply manifest: the server doesn't have a resource type %q", manifest.GetKind()),
			"AppliedManifestFailed"
	}
	if !a.Cluster.knows(r) {
		err := apierrors.NewGenericServerResponse(http.StatusNotFound, "PATCH", r.resource.GroupResource(), r.name, "", 0, true)
		return false, "Failed to apply manifest: " + err.Error(), "AppliedManifestFailed"
	}
	if _, err := a.Cluster.apply(r, text, manager, false); err != nil {
		return false, "Failed to apply manifest: " + err.Error(), "AppliedManifestFailed"
	}
	o := a.Cluster.objects[path]
	notes := o.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	notes[ownerPrefix+work] = "true"
	o.SetAnnotations(notes)
	return true, "", "AppliedManifestComplete"
}

// applied lists the objects of the work that are in the cluster.
func (a *Agent) applied(work string) []string {
	a.Cluster.mu.Lock()
	defer a.Cluster.mu.Unlock()
	var found []string
	for _, path := range slices.Sorted(maps.Keys(a.Cluster.objects)) {
		if a.Cluster.objects[path].GetAnnotations()[ownerPrefix+work] != "" {
			found = append(found, path)
		}
	}
	return found
}

// prune deletes what the work owns and no longer names; what other works own too stays.
func (a *Agent) prune(work string, list []any) {
	named := map[string]bool{}
	for _, m := range list {
		named[pathOf(&Object{Object: m.(map[string]any)})] = true
	}
	for _, path := range slices.Backward(a.applied(work)) {
		if named[path] {
			continue
		}
		r, _ := parse(path)
		a.Cluster.mu.Lock()
		o := a.Cluster.objects[path]
		notes := o.GetAnnotations()
		others := 0
		for key := range notes {
			if strings.HasPrefix(key, ownerPrefix) && key != ownerPrefix+work {
				others++
			}
		}
		if others > 0 {
			delete(notes, ownerPrefix+work)
			o.SetAnnotations(notes)
		} else {
			_, _ = a.Cluster.remove(r, []byte(`{"propagationPolicy": "Foreground"}`))
		}
		a.Cluster.mu.Unlock()
	}
}

// wellKnown is what agents report without being told a path.
var wellKnown = map[string][][2]string{
	"Deployment": {
		{"ReadyReplicas", ".status.readyReplicas"},
		{"Replicas", ".status.replicas"},
		{"AvailableReplicas", ".status.availableReplicas"},
	},
	"DaemonSet": {
		{"NumberReady", ".status.numberReady"},
		{"DesiredNumberScheduled", ".status.desiredNumberScheduled"},
		{"NumberAvailable", ".status.numberAvailable"},
	},
	"Job": {
		{"JobComplete", `.status.conditions[?(@.type=="Complete")].status`}, {"JobSucceeded", ".status.succeeded"},
	},
	"Pod": {{"PodReady", `.status.conditions[?(@.type=="Ready")].status`}, {"PodPhase", ".status.phase"}},
}

// feedback evaluates the rules on the object.
func feedback(live *Object, config map[string]any) []any {
	rules, _, _ := unstructured.NestedSlice(config, "feedbackRules")
	values := []any{}
	for _, entry := range rules {
		rule := entry.(map[string]any)
		var asked [][2]string
		if rule["type"] == "WellKnownStatus" {
			asked = wellKnown[live.GetKind()]
		}
		paths, _, _ := unstructured.NestedSlice(rule, "jsonPaths")
		for _, p := range paths {
			asked = append(asked, [2]string{p.(map[string]any)["name"].(string), p.(map[string]any)["path"].(string)})
		}
		for _, ask := range asked {
			path := jsonpath.New(ask[0]).AllowMissingKeys(true)
			if path.Parse("{"+ask[1]+"}") != nil {
				continue
			}
			found, err := path.FindResults(live.Object)
			if err != nil || len(found) == 0 || len(found[0]) == 0 {
				continue
			}
			field := map[string]any{}
			switch v := found[0][0].Interface().(type) {
			case int64:
				field["type"], field["integer"] = "Integer", v
			case string:
				field["type"], field["string"] = "String", v
			case bool:
				field["type"], field["boolean"] = "Boolean", v
			default:
				continue
			}
			values = append(values, map[string]any{"name": ask[0], "fieldValue": field})
		}
	}
	return values
}
