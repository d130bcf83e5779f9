package ocm

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator"
)

// fieldManager is who agents apply our objects as; agents demand the beginning.
const fieldManager = "work-agent-" + orchestrator.Manager

// newWork returns the work that the job comes to: a new one, or have with what the job changes. nil means that have is
// right as it is.
func newWork(j *job.Job, have *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	want := orchestrator.RecordOf(j)
	if have != nil {
		record, _ := orchestrator.ReadRecord(have)
		if lacking, ok := record.Lacking(j); ok {
			return adjusted(j, have, want, lacking)
		}
	}
	objects, err := orchestrator.Build(j)
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

// adjusted returns the work with the scalings that it lacks, and with Jobs that stay when they have ended, which those of
// versions before did not; nil when it is right as it is.
func adjusted(
	j *job.Job, have *unstructured.Unstructured, want orchestrator.Record, lacking []job.Remedy,
) (*unstructured.Unstructured, error) {
	objects := manifests(have)
	if !keepEnded(objects) && len(lacking) == 0 {
		return nil, nil
	}
	if err := scale(objects, lacking); err != nil {
		return nil, err
	}
	return compose(j, have, want, objects)
}

func keepEnded(objects []*unstructured.Unstructured) (changed bool) {
	for _, o := range objects {
		changed = orchestrator.KeepEnded(o) || changed
	}
	return changed
}

func scale(objects []*unstructured.Unstructured, by []job.Remedy) error {
	for _, o := range objects {
		if _, err := orchestrator.Scale(o, by...); err != nil {
			return err
		}
	}
	return nil
}

// dropped lists the manifests of the work that are not among the objects: a patch takes nothing away.
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

// replaces reports whether the next form of the work asks for other pods of what cannot change them in place. An agent
// applies what stands in a work, but deletes nothing to make it anew.
func replaces(have, next *unstructured.Unstructured) bool {
	former := map[string]*unstructured.Unstructured{}
	for _, o := range manifests(have) {
		former[key(o)] = o
	}
	return slices.ContainsFunc(manifests(next), func(o *unstructured.Unstructured) bool {
		before := former[key(o)]
		return before != nil && orchestrator.Replaceable(o) && !orchestrator.SamePods(before, o)
	})
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

// compose writes the objects and how they are to be applied and reported on into the work.
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
	want.Mark(work)
	list, configs := make([]any, len(objects)), make([]any, 0, len(objects))
	kinds := orchestrator.KindsOf(objects)
	for i, o := range objects {
		list[i] = o.Object
		configs = append(configs, configOf(j, have, o, kinds.Of(o)))
	}
	spec := map[string]any{
		"workload":        map[string]any{"manifests": list},
		"deleteOption":    map[string]any{"propagationPolicy": "Foreground"},
		"manifestConfigs": configs,
	}
	// Through JSON, so that numbers and lists are what a work read from the hub has.
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

// appliedAs returns whom the work has the object of the identifier applied as; "" where it has not.
func appliedAs(work *unstructured.Unstructured, id map[string]string) string {
	if work == nil {
		return ""
	}
	configs, _, _ := unstructured.NestedSlice(work.Object, "spec", "manifestConfigs")
	for _, entry := range configs {
		config, _ := entry.(map[string]any)
		of, _, _ := unstructured.NestedStringMap(config, "resourceIdentifier")
		if of["group"] == id["group"] && of["resource"] == id["resource"] &&
			of["namespace"] == id["namespace"] && of["name"] == id["name"] { // a hub may leave out what is empty
			manager, _, _ := unstructured.NestedString(config, "updateStrategy", "serverSideApply", "fieldManager")
			return manager
		}
	}
	return ""
}

// configOf says how the agent is to apply the object, as an owner of the fields that stand in it and of no others, and
// what to report. have is the work so far, if any.
func configOf(j *job.Job, have, o *unstructured.Unstructured, kind orchestrator.Kind) map[string]any {
	id := map[string]string{
		"group": o.GroupVersionKind().Group, "resource": kind.Resource, "namespace": o.GetNamespace(), "name": o.GetName(),
	}
	manager, former := fieldManager, appliedAs(have, id)
	switch {
	case former != "":
		// Who applies an object stays: another would be refused the fields that the former holds, also by an older version.
		manager = former
	case o.GetKind() == "Namespace" && o.GetName() == j.Namespace:
		// All components of an application bring its namespace, each what it has to say about it. Under one manager the last
		// to be applied would take away what the others said.
		name := orchestrator.NameOf(j)
		manager += "-" + name[strings.LastIndexByte(name, '-')+1:]
	case o.GetNamespace() == "":
		// What is in no namespace another application may have by the same name. Under a manager of its own the later one is
		// refused instead of taking it over.
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
	for _, f := range orchestrator.FactsOf(o) {
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
		if _, bears := orchestrator.PodTemplate(o); bears {
			// Told at once instead of at the agent's next round, a minute by default. Hubs before OCM 1.2 drop the field, and
			// agents poll what is beyond the number of watches that they bear.
			config["feedbackScrapeType"] = "Watch"
		}
	}
	return config
}

// statusOf reads what the agent says about the work.
func statusOf(work *unstructured.Unstructured) orchestrator.Status {
	record, _ := orchestrator.ReadRecord(work)
	s := orchestrator.Status{Exists: true, Record: record, Leaving: work.GetDeletionTimestamp() != nil}
	if s.Leaving {
		return s
	}
	objects := manifests(work)
	if keepEnded(objects) { // what would go counts as outdated, and is put right
		s.Content = ""
	}
	reports := reportsIn(work)
	applied := false
	for _, c := range conditionsIn(work.Object, "status", "conditions") {
		if c.Type == "Applied" && c.Generation == work.GetGeneration() {
			applied = c.Status == "True"
			if c.Status == "False" {
				s.Refused = refusal(objects, reports, c)
			}
		}
	}
	if s.Refused != nil || !applied {
		return s
	}
	s.Applied = true
	kinds := orchestrator.KindsOf(objects)
	for i, o := range objects {
		report, kind, what := reports[int64(i)], kinds.Of(o), o.GetKind()+" "+o.GetName()
		switch {
		case report.available.Status == "False": // the values are those of before; the agent puts it back by itself
			s.Objects = append(s.Objects, orchestrator.Health{
				Object: what, Reason: orchestrator.ReasonMissing, Message: what + " is not there: " + brief(report.available.Message),
			})
		case kind.Guessed && report.resource != kind.Resource: // the cluster calls it otherwise, and so knows no rule for it
			s.Objects = append(s.Objects, orchestrator.Health{Object: what, Ready: true})
		default:
			s.Objects = append(s.Objects, orchestrator.Judge(o, report.values))
		}
	}
	return s
}

// report is what the agent says about one manifest.
type report struct {
	object             string
	resource           string // what the cluster calls objects of the kind
	values             orchestrator.Values
	applied, available standing
}

// reportsIn reads the reports on the manifests, by their place in the list.
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
		r := report{object: kind + " " + name, resource: resource, values: orchestrator.Values{}}
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

// conflict is what an API server says when fields are another manager's.
var conflict = regexp.MustCompile(`Apply failed with \d+ conflict`)

// refusal names the first manifest that the agent could not apply. It goes on trying by itself; what only takes time is
// no refusal, and then nil is returned.
func refusal(objects []*unstructured.Unstructured, reports map[int64]report, whole standing) *orchestrator.Refusal {
	for at, o := range objects {
		r := reports[int64(at)]
		if r.applied.Status != "False" {
			continue
		}
		if strings.Contains(r.applied.Message, "being terminated") {
			return nil
		}
		reason := r.applied.Reason // AppliedManifestFailed, whatever the API server had against it
		message := brief(r.applied.Message)
		switch {
		case strings.Contains(r.applied.Message, "exceeded quota"):
			reason = "QuotaExceeded"
		case conflict.MatchString(r.applied.Message):
			reason = orchestrator.ReasonApplyConflict
		case strings.Contains(r.applied.Message, "could not find the requested resource"):
			if hint := orchestrator.KindsOf(objects).Of(o).Hint(); hint != "" {
				message += "; " + hint
			}
		}
		return orchestrator.Refuse(reason, "%s: %s", r.object, message)
	}
	return orchestrator.Refuse(whole.Reason, "%s", brief(whole.Message))
}
