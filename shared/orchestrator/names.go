package orchestrator

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/littoral-project/littoral/shared/job"
)

// Marks that telemetry and other parts of ICOS read, on objects and on the templates of their pods (contracts/icos.md
// §6.2, §9), and marks of ours.
const (
	MarkApplication = "app.icos.eu/name"
	MarkInstance    = "app.icos.eu/instance"
	MarkComponent   = "app.icos.eu/component"
	MarkResource    = "jobmanager.icos.eu/manifest"

	LabelManager = "app.kubernetes.io/managed-by"
	LabelJob     = "littoral.dev/job"

	markEpoch     = "littoral.dev/epoch"
	markRevision  = "littoral.dev/revision" // of an object: tells whether a status is about our latest change
	markPods      = "littoral.dev/pods"     // of an object that keeps its pods: digest of the template they were made from
	markContent   = "littoral.dev/content"
	markRemedy    = "littoral.dev/remedy"
	markNamespace = "littoral.dev/namespace"
	markScope     = "littoral.dev/scope" // on an object of a kind that is unknown here
	scopeCluster  = "cluster"            // it is cluster-scoped
)

// Manager is the field manager of what we apply, and the value of LabelManager.
const Manager = "littoral"

// ResourceName is the name of a job's copy: the component and the end of the job's id. (The beginning of an id is a
// time, so it does not tell ids apart.)
func ResourceName(component, subject string) string {
	const most = 50 // so that the whole fits a label
	id := strings.ReplaceAll(subject, "-", "")
	return strings.TrimRight(component[:min(most, len(component))], "-.") + "-" + id[max(0, len(id)-12):]
}

// NameOf returns the name of the copy that the job is about.
func NameOf(j *job.Job) string { return ResourceName(j.Component, Subject(j).String()) }

// resources is the UUID namespace of resource ids.
var resources = uuid.MustParse("6f0e2f6a-3c5b-5c1e-9f43-5d0c6f6a7b11")

// ResourceID stays the same as long as the job stays in its cluster: pods carry it, so it must not change with each
// decision.
func ResourceID(j *job.Job) string {
	return uuid.NewSHA1(resources, []byte(j.Cluster+"/"+Subject(j).String())).String()
}

// Record is what is stored beside a copy about the job that it was made for.
type Record struct {
	Subject   uuid.UUID // the job
	Component string
	Namespace string
	Epoch     int64
	Content   string // Content of the job; "" = only a part of it is there so far
	Remedy    string // id of the last remediation that was carried out; "" = none since the content was written
}

// RecordOf returns the record of a copy that is made for the job now.
func RecordOf(j *job.Job) Record {
	remedy, scalings := remedies(j)
	if n := len(scalings); n > 0 {
		remedy = scalings[n-1].ID.String()
	}
	return Record{
		Subject: Subject(j), Component: j.Component, Namespace: j.Namespace, Epoch: j.Epoch, Content: Content(j),
		Remedy: remedy,
	}
}

// Content is a digest of what the job deploys and where.
func Content(j *job.Job) string {
	text, err := json.Marshal([]any{j.Instruction.Contents, j.Target, j.Namespace})
	if err != nil {
		return "" // strings only: it does not happen
	}
	return digest(text)
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Mark writes the record onto the object that keeps it.
func (r Record) Mark(object *unstructured.Unstructured) {
	merge(
		object,
		"labels",
		map[string]string{LabelManager: Manager, LabelJob: r.Subject.String(), MarkComponent: labelValue(r.Component)},
	)
	merge(object, "annotations", map[string]string{
		MarkComponent: r.Component, markNamespace: r.Namespace, markEpoch: strconv.FormatInt(r.Epoch, 10),
		markContent: r.Content, markRemedy: r.Remedy,
	})
	for mark, value := range map[string]string{markContent: r.Content, markRemedy: r.Remedy} {
		if value == "" {
			unstructured.RemoveNestedField(object.Object, "metadata", "annotations", mark)
		}
	}
}

// ReadRecord returns the record on the object; ok is false when it is not ours.
func ReadRecord(object *unstructured.Unstructured) (r Record, ok bool) {
	labels, notes := object.GetLabels(), object.GetAnnotations()
	subject, err := uuid.Parse(labels[LabelJob])
	epoch, numeric := strconv.ParseInt(notes[markEpoch], 10, 64)
	if err != nil || numeric != nil || labels[LabelManager] != Manager {
		return Record{}, false
	}
	return Record{
		Subject: subject, Component: notes[MarkComponent], Namespace: notes[markNamespace], Epoch: epoch,
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
