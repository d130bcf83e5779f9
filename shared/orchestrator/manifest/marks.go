package manifest

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/littoral-project/littoral/shared/label"
	"github.com/littoral-project/littoral/shared/orchestrator"
)

// Marks of ours on objects, besides the labels of package orchestrator.
const (
	markEpoch     = "littoral.dev/epoch"
	markRevision  = "littoral.dev/revision" // of an object: tells whether a status is about our latest change
	markPods      = "littoral.dev/pods"     // of an object that keeps its pods: digest of the template they were made from
	markContent   = "littoral.dev/content"
	markRemedy    = "littoral.dev/remedy"
	markNamespace = "littoral.dev/namespace"
	markScope     = "littoral.dev/scope" // on an object of a kind that is unknown here
	scopeCluster  = "cluster"            // it is cluster-scoped
)

// Mark writes the record of a copy onto the object that keeps it.
func Mark(object *unstructured.Unstructured, r orchestrator.Record) {
	merge(
		object,
		"labels",
		map[string]string{orchestrator.LabelManager: orchestrator.Manager, orchestrator.LabelJob: r.Subject.String(), label.MarkComponent: labelValue(r.Component)},
	)
	merge(object, "annotations", map[string]string{
		label.MarkComponent: r.Component, markNamespace: r.Namespace, markEpoch: strconv.FormatInt(r.Epoch, 10),
		markContent: r.Content, markRemedy: r.Remedy,
	})
	for mark, value := range map[string]string{markContent: r.Content, markRemedy: r.Remedy} {
		if value == "" {
			unstructured.RemoveNestedField(object.Object, "metadata", "annotations", mark)
		}
	}
}

// ReadRecord returns the record on the object; ok is false when it is not ours.
func ReadRecord(object *unstructured.Unstructured) (r orchestrator.Record, ok bool) {
	labels, notes := object.GetLabels(), object.GetAnnotations()
	subject, err := uuid.Parse(labels[orchestrator.LabelJob])
	epoch, numeric := strconv.ParseInt(notes[markEpoch], 10, 64)
	if err != nil || numeric != nil || labels[orchestrator.LabelManager] != orchestrator.Manager {
		return orchestrator.Record{}, false
	}
	return orchestrator.Record{
		Subject: subject, Component: notes[label.MarkComponent], Namespace: notes[markNamespace], Epoch: epoch,
		Content: notes[markContent], Remedy: notes[markRemedy],
	}, true
}

// EpochOf returns the epoch that the object is marked with; 0 when it has none, as an object without pods.
func EpochOf(object *unstructured.Unstructured) int64 {
	n, _ := strconv.ParseInt(object.GetAnnotations()[markEpoch], 10, 64)
	return n
}

var unlabelled = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// labelValue makes the text a valid label value.
func labelValue(s string) string {
	const most = 63
	s = unlabelled.ReplaceAllString(s, "-")
	return strings.Trim(s[:min(most, len(s))], "-._")
}

// merge adds to the labels or annotations of the object.
func merge(object *unstructured.Unstructured, field string, values map[string]string) {
	mergeAt(object.Object, values, "metadata", field)
}

func mergeAt(in map[string]any, values map[string]string, path ...string) {
	have, _, err := unstructured.NestedMap(in, path...)
	if err != nil || have == nil {
		have = map[string]any{}
	}
	for key, value := range values {
		if value != "" {
			have[key] = value
		}
	}
	_ = unstructured.SetNestedMap(in, have, path...) // fails only where Build has found the parents to be objects
}
