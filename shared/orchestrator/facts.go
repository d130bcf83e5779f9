package orchestrator

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Fact is a value of an object that says how it is doing: a JSONPath that an agent can evaluate for us, under the name
// that it is reported by.
type Fact struct {
	Name, Path string
	Known      bool // agents of Open Cluster Management report it by this name without being told the path
}

// Names of facts that are asked of many kinds.
const (
	factRevision   = "Revision"
	factGeneration = "Generation"
	factObserved   = "ObservedGeneration"
	factReadyOf    = "ReadyGeneration" // that the condition is about
	factFailure    = "Failure"
)

// conditionsOf begins the path into the condition of a type.
const conditionsOf = ".status.conditions[?(@.type=="

func condition(typ, field string) string { return fmt.Sprintf("%s%q)].%s", conditionsOf, typ, field) }

var (
	revisionFact = Fact{Name: factRevision, Path: `.metadata.annotations.littoral\.dev/revision`}

	// generations tell whether what the status says is about the object as it is now.
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

// facts are what is asked of each kind that this package can judge.
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
	{Group: "", Kind: "Pod"}: {
		{Name: "PodReady", Path: condition("Ready", "status"), Known: true},
		{Name: "PodPhase", Path: ".status.phase", Known: true},
		{Name: "Scheduling", Path: condition("PodScheduled", "message")},
		{Name: factFailure, Path: ".status.message"},
	},
}

// otherFacts are what is asked of a kind that this package does not know: many say by a condition whether they are
// ready.
var otherFacts = append([]Fact{
	{Name: "Ready", Path: condition("Ready", "status")},
	{Name: "ReadyMessage", Path: condition("Ready", "message")},
	{Name: factReadyOf, Path: condition("Ready", "observedGeneration")},
}, generations...)

// passive are kinds that do nothing by themselves: to be there is all they can.
var passive = map[schema.GroupKind]bool{
	{Kind: "Namespace"}:      true,
	{Kind: "ConfigMap"}:      true,
	{Kind: "Secret"}:         true,
	{Kind: "Service"}:        true,
	{Kind: "ServiceAccount"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:        true,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}: true,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:       true,
}

// FactsOf returns what to ask about the object; nothing about one that is as it should be by being there.
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

// Values are facts by name: text, whole numbers and truth values.
type Values map[string]any

// Ask reads the facts from an object, as an agent would: what is missing is left out.
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

// read evaluates the path, which is of one of two forms: members by name, with escaped dots within a name, or a member
// of the condition of a type.
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

// number returns the value, or otherwise where there is none: a status leaves out what is 0.
func (v Values) number(name string, otherwise int64) int64 {
	if n, ok := v[name].(int64); ok {
		return n
	}
	return otherwise
}
