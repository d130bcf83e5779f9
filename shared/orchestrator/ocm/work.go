package ocm

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/manifest"
)

// fieldManager is the field manager that agents apply our objects under; agents require the prefix work-agent.
const fieldManager = "work-agent-" + orchestrator.Manager

// newWork returns the work for the job, based on the present one if any; nil when the present one is right already.
func newWork(j *job.Job, have *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	want := orchestrator.RecordOf(j)
	if have != nil {
		record, _ := manifest.ReadRecord(have)
		if lacking, ok := record.Lacking(j); ok {
			return adjusted(j, have, want, lacking)
		}
	}
	objects, err := manifest.Build(j)
	if err != nil {
		return nil, err
	}
	if j.Type == job.Update && j.SubType == string(job.Patch) && have != nil {
		objects = append(objects, dropped(have, objects)...)
	}
	if err := scale(objects, orchestrator.Scalings(j)); err != nil {
		return nil, err
	}
	return compose(j, have, want, objects)
}

// adjusted returns the work with the scalings it lacks, and with Jobs that stay after their end (older versions of
// Littoral did not see to that); nil when neither is needed.
func adjusted(
	j *job.Job, have *unstructured.Unstructured, want orchestrator.Record, lacking []job.Remedy,
) (*unstructured.Unstructured, error) {
	objects := manifests(have)
	if !removeTTL(objects) && len(lacking) == 0 {
		return nil, nil
	}
	if err := scale(objects, lacking); err != nil {
		return nil, err
	}
	return compose(j, have, want, objects)
}

func removeTTL(objects []*unstructured.Unstructured) (changed bool) {
	for _, o := range objects {
		changed = manifest.RemoveTTL(o) || changed
	}
	return changed
}

func scale(objects []*unstructured.Unstructured, by []job.Remedy) error {
	for _, o := range objects {
		if _, err := manifest.Scale(o, by...); err != nil {
			return err
		}
	}
	return nil
}

// dropped lists the manifests of the work that are not among the objects: a patch removes nothing, so they are kept.
func dropped(have *unstructured.Unstructured, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	among := map[string]bool{}
	for _, o := range objects {
		among[key(o)] = true
	}
	var rest []*unstructured.Unstructured
	for _, o := range manifests(have) {
		if !among[key(o)] {
			rest = append(rest, o)
		}
	}
	return rest
}

// leaveOut leaves out of next the objects whose pods are immutable and would change, and reports whether there are any. An
// agent does not delete an object to recreate it, but it deletes what leaves the work. The record then has no content, so
// that the work counts as outdated until they are added again.
func leaveOut(have, next *unstructured.Unstructured) bool {
	former := map[string]*unstructured.Unstructured{}
	for _, o := range manifests(have) {
		former[key(o)] = o
	}
	configs, _, _ := unstructured.NestedSlice(next.Object, "spec", "manifestConfigs")
	var keptManifests, keptConfigs []any
	objects := manifests(next)
	for i, o := range objects {
		before := former[key(o)]
		if before != nil && manifest.Replaceable(o) && !manifest.SamePods(before, o) {
			continue
		}
		keptManifests, keptConfigs = append(keptManifests, o.Object), append(keptConfigs, configs[i])
	}
	if len(keptManifests) == len(objects) {
		return false
	}
	_ = unstructured.SetNestedSlice(next.Object, keptManifests, "spec", "workload", "manifests") // compose has made these
	_ = unstructured.SetNestedSlice(next.Object, keptConfigs, "spec", "manifestConfigs")
	record, _ := manifest.ReadRecord(next)
	record.Content = ""
	manifest.Mark(next, record)
	return true
}

// leftOut reports whether objects were left out of the work and its agent has not reported on that yet. Before it reports,
// it deletes them.
func leftOut(work *unstructured.Unstructured) bool {
	record, _ := manifest.ReadRecord(work)
	return record.Content == "" && appliedOf(work) == nil
}

// appliedOf returns the condition Applied of the work's present form; nil when the agent has not reported on that yet.
func appliedOf(work *unstructured.Unstructured) *standing {
	for _, c := range conditionsIn(work.Object, "status", "conditions") {
		if c.Type == "Applied" && c.Generation == work.GetGeneration() {
			return &c
		}
	}
	return nil
}

func key(o *unstructured.Unstructured) string {
	return o.GroupVersionKind().GroupKind().String() + " " + o.GetNamespace() + "/" + o.GetName()
}

// manifests returns the objects of a work.
func manifests(work *unstructured.Unstructured) []*unstructured.Unstructured {
	list, _, _ := unstructured.NestedSlice(work.Object, "spec", "workload", "manifests")
	all := make([]*unstructured.Unstructured, 0, len(list))
	for _, entry := range list {
		if o, ok := entry.(map[string]any); ok {
			all = append(all, &unstructured.Unstructured{Object: o})
		}
	}
	return all
}

// compose writes into the work the objects, how to apply them and what to report about them.
func compose(
	j *job.Job, have *unstructured.Unstructured, want orchestrator.Record, objects []*unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	work := &unstructured.Unstructured{Object: map[string]any{}}
	if have != nil {
		work = have.DeepCopy()
		delete(work.Object, "status")
	}
	work.SetAPIVersion(Works.GroupVersion().String())
	work.SetKind("ManifestWork")
	work.SetNamespace(j.Cluster)
	work.SetName(orchestrator.NameOf(j))
	manifest.Mark(work, want)
	list, configs := make([]any, len(objects)), make([]any, 0, len(objects))
	kinds := manifest.KindsOf(objects)
	for i, o := range objects {
		list[i] = o.Object
		configs = append(configs, configOf(j, have, o, kinds.Of(o)))
	}
	spec := map[string]any{
		"workload":        map[string]any{"manifests": list},
		"deleteOption":    map[string]any{"propagationPolicy": "Foreground"},
		"manifestConfigs": configs,
	}
	// A round trip through JSON gives numbers and lists the types that a work read from the hub has.
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	plain := &unstructured.Unstructured{Object: map[string]any{}}
	if err := plain.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"x","spec":` + string(text) + `}`)); err != nil {
		return nil, err
	}
	work.Object["spec"] = plain.Object["spec"]
	return work, nil
}

// appliedAs returns the field manager under which the work applies the identified object; "" when the work does not
// have it.
func appliedAs(work *unstructured.Unstructured, id map[string]string) string {
	if work == nil {
		return ""
	}
	configs, _, _ := unstructured.NestedSlice(work.Object, "spec", "manifestConfigs")
	for _, entry := range configs {
		config, _ := entry.(map[string]any)
		of, _, _ := unstructured.NestedStringMap(config, "resourceIdentifier")
		if of["group"] == id["group"] && of["resource"] == id["resource"] &&
			of["namespace"] == id["namespace"] && of["name"] == id["name"] { // a hub may omit empty fields, so compare field by field
			manager, _, _ := unstructured.NestedString(config, "updateStrategy", "serverSideApply", "fieldManager")
			return manager
		}
	}
	return ""
}

// configOf says how the agent applies the object (owning only the fields that the object sets) and what it reports.
// have is the present work, if any.
func configOf(j *job.Job, have, o *unstructured.Unstructured, kind manifest.Kind) map[string]any {
	id := map[string]string{
		"group": o.GroupVersionKind().Group, "resource": kind.Resource, "namespace": o.GetNamespace(), "name": o.GetName(),
	}
	manager, former := fieldManager, appliedAs(have, id)
	switch {
	case former != "":
		// Keep the present field manager, even of an older version: a new one would conflict with the fields that the
		// former holds.
		manager = former
	case o.GetKind() == "Namespace" && o.GetName() == j.Namespace:
		// All components of an application apply its namespace, each with labels and annotations of its own. Under a
		// common manager, the last one applied would remove those of the others.
		name := orchestrator.NameOf(j)
		manager += "-" + name[strings.LastIndexByte(name, '-')+1:]
	case o.GetNamespace() == "":
		// Another application may have a cluster-scoped object of the same name. With a manager of its own, the later
		// one is refused instead of taking the object over.
		manager += "-" + j.ApplicationID.String()
	}
	config := map[string]any{
		"resourceIdentifier": id,
		"updateStrategy": map[string]any{
			"type": "ServerSideApply", "serverSideApply": map[string]any{"force": false, "fieldManager": manager},
		},
	}
	var paths []any
	known := false
	for _, f := range manifest.FactsOf(o) {
		if f.Known {
			known = true
			continue
		}
		paths = append(paths, map[string]any{"name": f.Name, "path": f.Path})
	}
	var rules []any
	if known {
		rules = append(rules, map[string]any{"type": "WellKnownStatus"})
	}
	if len(paths) > 0 {
		rules = append(rules, map[string]any{"type": "JSONPaths", "jsonPaths": paths})
	}
	if len(rules) > 0 {
		config["feedbackRules"] = rules
		if manifest.Watched(o) {
			// Reported at once instead of at the agent's next round (every minute by default). Hubs before OCM 1.2 drop
			// this field, and agents fall back to polling when they have too many watches.
			config["feedbackScrapeType"] = "Watch"
		}
	}
	return config
}

// statusOf reads what the agent reports about the work.
func statusOf(work *unstructured.Unstructured) orchestrator.Status {
	record, _ := manifest.ReadRecord(work)
	s := orchestrator.Status{
		Exists: true, Record: record, Leaving: work.GetDeletionTimestamp() != nil || leftOut(work),
	}
	if s.Leaving {
		return s
	}
	objects := manifests(work)
	if removeTTL(objects) { // a Job that would be deleted after its end: count as outdated, so that it is fixed
		s.Content = ""
	}
	reports := reportsIn(work)
	applied := appliedOf(work)
	if applied != nil && applied.Status == "False" {
		s.Refused = refusal(objects, reports, *applied)
	}
	if applied == nil || applied.Status != "True" {
		return s
	}
	s.Applied = true
	kinds := manifest.KindsOf(objects)
	for i, o := range objects {
		report, kind, what := reports[int64(i)], kinds.Of(o), o.GetKind()+" "+o.GetName()
		switch {
		case report.available.Status == "False": // the values are stale; the agent recreates it by itself
			s.Objects = append(s.Objects, orchestrator.Health{
				Object: what, Reason: orchestrator.ReasonMissing, Message: what + " is not there: " + brief(report.available.Message),
			})
		case kind.Guessed && report.resource != kind.Resource: // our guess of the resource name was wrong, so the agent has no feedback rule for it
			s.Objects = append(s.Objects, orchestrator.Health{Object: what, Ready: true})
		default:
			s.Objects = append(s.Objects, manifest.HealthOf(o, report.values))
		}
	}
	return s
}

// report is what the agent reports about one manifest.
type report struct {
	object             string
	resource           string // what the cluster calls objects of the kind
	values             manifest.Values
	applied, available standing
}

// reportsIn reads the reports, by the position of the manifest in the work.
func reportsIn(work *unstructured.Unstructured) map[int64]report {
	list, _, _ := unstructured.NestedSlice(work.Object, "status", "resourceStatus", "manifests")
	all := map[int64]report{}
	for _, entry := range list {
		m, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		meta, _, _ := unstructured.NestedMap(m, "resourceMeta")
		at, _ := meta["ordinal"].(int64)
		kind, _ := meta["kind"].(string)
		name, _ := meta["name"].(string)
		resource, _ := meta["resource"].(string)
		r := report{object: kind + " " + name, resource: resource, values: manifest.Values{}}
		feedback, _, _ := unstructured.NestedSlice(m, "statusFeedback", "values")
		for _, entry := range feedback {
			value, ok := entry.(map[string]any)
			if !ok {
				continue
			}
			field, _, _ := unstructured.NestedMap(value, "fieldValue")
			name, _ := value["name"].(string)
			for _, form := range []string{"integer", "string", "boolean"} {
				if v, there := field[form]; there {
					r.values[name] = v
				}
			}
		}
		for _, c := range conditionsIn(m, "conditions") {
			switch c.Type {
			case "Applied":
				r.applied = c
			case "Available":
				r.available = c
			}
		}
		all[at] = r
	}
	return all
}

// conflict matches the message of an API server when another manager owns fields.
var conflict = regexp.MustCompile(`Apply failed with \d+ conflict`)

// refusal returns why the agent could not apply the first manifest that failed; nil when all that failed only take
// time. The agent retries by itself.
func refusal(objects []*unstructured.Unstructured, reports map[int64]report, whole standing) *orchestrator.Refusal {
	passes := false
	for at, o := range objects {
		r := reports[int64(at)]
		if r.applied.Status != "False" {
			continue
		}
		if passing(objects, o, r.applied.Message) {
			passes = true
			continue
		}
		reason := r.applied.Reason // always AppliedManifestFailed, whatever the cause
		message := brief(r.applied.Message)
		switch {
		case manifest.OverQuota(r.applied.Message):
			reason = orchestrator.ReasonQuotaExceeded
		case conflict.MatchString(r.applied.Message):
			reason = orchestrator.ReasonApplyConflict
		case strings.Contains(r.applied.Message, noResource):
			if hint := manifest.KindsOf(objects).Of(o).Hint(); hint != "" {
				message += "; " + hint
			}
		}
		return orchestrator.Refuse(reason, "%s: %s", r.object, message)
	}
	if passes {
		return nil
	}
	return orchestrator.Refuse(whole.Reason, "%s", brief(whole.Message))
}

// What a cluster and its agent say when they do not have a kind.
const (
	noResource = "could not find the requested resource"
	noKind     = "doesn't have a resource type"
)

// passing reports whether the message says that the object only waits: for its namespace or a former Pod to go, or for its
// kind, whose definition was applied just before.
func passing(objects []*unstructured.Unstructured, o *unstructured.Unstructured, message string) bool {
	if strings.Contains(message, "being terminated") || strings.Contains(message, "pod updates may not") {
		return true
	}
	return (strings.Contains(message, noResource) || strings.Contains(message, noKind)) &&
		slices.ContainsFunc(objects, func(other *unstructured.Unstructured) bool { return manifest.Defines(other, o) })
}
