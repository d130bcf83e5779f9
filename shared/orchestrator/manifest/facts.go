package manifest

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Fact is a value to read from a live object in order to judge it: a JSONPath, which an agent can evaluate for us, and
// the name that it is reported under.
type Fact struct {
	Name, Path string
	Known      bool // agents of Open Cluster Management report it by this name without being told the path
}

// Names of facts that are asked of many kinds.
const (
	factRevision   = "Revision"
	factGeneration = "Generation"
	factObserved   = "ObservedGeneration"
	factReadyOf    = "ReadyGeneration" // observedGeneration of the condition Ready
	factFailure    = "Failure"
)

// conditionsOf is how the path to a condition begins; the type follows.
const conditionsOf = ".status.conditions[?(@.type=="

func condition(typ, field string) string { return fmt.Sprintf("%s%q)].%s", conditionsOf, typ, field) }

var (
	revisionFact = Fact{Name: factRevision, Path: `.metadata.annotations.littoral\.dev/revision`}

	// generations show whether the status is about the present spec.
	generations = []Fact{
		{Name: factGeneration, Path: ".metadata.generation"}, {Name: factObserved, Path: ".status.observedGeneration"},
	}
	updateStrategy = Fact{Name: "UpdateStrategy", Path: ".spec.updateStrategy.type"}
	replicaFailure = Fact{Name: factFailure, Path: condition("ReplicaFailure", "message")}
)

var replicaSet = append([]Fact{
	{Name: "Wanted", Path: ".spec.replicas"},
	{Name: "AvailableReplicas", Path: ".status.availableReplicas"},
	replicaFailure,
}, generations...)

// facts lists what to read from each kind that this package can judge.
var facts = map[schema.GroupKind][]Fact{
	{Group: "apps", Kind: "Deployment"}: append([]Fact{
		{Name: "Replicas", Path: ".status.replicas", Known: true},
		{Name: "AvailableReplicas", Path: ".status.availableReplicas", Known: true},
		{Name: "Wanted", Path: ".spec.replicas"},
		{Name: "UpdatedReplicas", Path: ".status.updatedReplicas"},
		{Name: "Progress", Path: condition("Progressing", "reason")},
		replicaFailure,
	}, generations...),
	{Group: "apps", Kind: "StatefulSet"}: append([]Fact{
		{Name: "Wanted", Path: ".spec.replicas"},
		{Name: "ReadyReplicas", Path: ".status.readyReplicas"},
		{Name: "UpdatedReplicas", Path: ".status.updatedReplicas"},
		updateStrategy,
		{Name: "Partition", Path: ".spec.updateStrategy.rollingUpdate.partition"},
	}, generations...),
	{Group: "apps", Kind: "DaemonSet"}: append([]Fact{
		{Name: "DesiredNumberScheduled", Path: ".status.desiredNumberScheduled", Known: true},
		{Name: "NumberAvailable", Path: ".status.numberAvailable", Known: true},
		{Name: "UpdatedNumberScheduled", Path: ".status.updatedNumberScheduled"},
		updateStrategy,
	}, generations...),
	{Group: "apps", Kind: "ReplicaSet"}: replicaSet,
	replicationController:               replicaSet,
	{Group: "batch", Kind: "Job"}: {
		{Name: "JobComplete", Path: condition("Complete", "status"), Known: true},
		{Name: "Running", Path: ".status.ready"},
		{Name: "Suspended", Path: ".spec.suspend"},
		{Name: factFailure, Path: condition("Failed", "message")},
	},
	{Group: "batch", Kind: "CronJob"}: {},
	exportedService: {
		{Name: "Valid", Path: condition("ExportValid", "status")},
		{Name: "ValidMessage", Path: condition("ExportValid", "message")},
	},
	importedService: {
		{Name: "Valid", Path: condition("ImportServiceValid", "status")},
		{Name: "ValidMessage", Path: condition("ImportServiceValid", "message")},
		{Name: "Port", Path: condition("ImportTargetPortValid", "status")},
		{Name: "PortMessage", Path: condition("ImportTargetPortValid", "message")},
	},
	{Group: "", Kind: "Pod"}: {
		{Name: "PodReady", Path: condition("Ready", "status"), Known: true},
		{Name: "PodPhase", Path: ".status.phase", Known: true},
		{Name: "Scheduling", Path: condition("PodScheduled", "message")},
		{Name: factFailure, Path: ".status.message"},
	},
}

// otherFacts is what to read from any other kind: many report a condition Ready.
var otherFacts = append([]Fact{
	{Name: "Ready", Path: condition("Ready", "status")},
	{Name: "ReadyMessage", Path: condition("Ready", "message")},
	{Name: factReadyOf, Path: condition("Ready", "observedGeneration")},
}, generations...)

// passive lists kinds without a state of their own: an object of them is ready as soon as it exists.
var passive = map[schema.GroupKind]bool{
	{Kind: "Namespace"}:      true,
	{Kind: "ConfigMap"}:      true,
	{Kind: "Secret"}:         true,
	{Kind: "Service"}:        true,
	{Kind: "ServiceAccount"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:        true,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}: true,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:       true,
	{Group: linkGroup, Kind: "AccessPolicy"}:                  true,
}

// FactsOf returns what to read from the object; nothing when its existence is enough.
func FactsOf(o *unstructured.Unstructured) []Fact {
	gk := o.GroupVersionKind().GroupKind()
	list := []Fact{revisionFact}
	switch known, ok := facts[gk]; {
	case ok:
		return append(list, known...)
	case passive[gk]:
		return nil
	}
	return append(list, otherFacts...)
}

// Values holds facts by name: text, whole numbers and booleans.
type Values map[string]any

// Ask reads the facts from an object as an agent would; those that are absent are left out.
func Ask(o *unstructured.Unstructured, asked []Fact) Values {
	values := Values{}
	for _, f := range asked {
		switch v := f.read(o.Object).(type) {
		case int64, string, bool:
			values[f.Name] = v
		}
	}
	return values
}

// read evaluates the path. It has one of two forms: field names, in which dots are escaped, or one field of a
// condition.
func (f Fact) read(in map[string]any) any {
	if rest, ok := strings.CutPrefix(f.Path, conditionsOf); ok {
		typ, field, _ := strings.Cut(rest, ")].")
		list, _, _ := unstructured.NestedSlice(in, "status", "conditions")
		for _, entry := range list {
			if c, ok := entry.(map[string]any); ok && strconv.Quote(fmt.Sprint(c["type"])) == typ {
				return c[field]
			}
		}
		return nil
	}
	const dot = "\x00"
	names := strings.Split(strings.TrimPrefix(strings.ReplaceAll(f.Path, `\.`, dot), "."), ".")
	for i := range names {
		names[i] = strings.ReplaceAll(names[i], dot, ".")
	}
	v, _, _ := unstructured.NestedFieldNoCopy(in, names...)
	return v
}

func (v Values) text(name string) string {
	switch value := v[name].(type) {
	case string:
		return value
	case bool:
		return strconv.FormatBool(value)
	}
	return ""
}

// number returns the value, or otherwise when it is absent: a status omits zeros.
func (v Values) number(name string, otherwise int64) int64 {
	if n, ok := v[name].(int64); ok {
		return n
	}
	return otherwise
}
