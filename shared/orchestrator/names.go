package orchestrator

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/job"
)

// Labels of ours that identify a copy.
const (
	LabelManager = "app.kubernetes.io/managed-by"
	LabelJob     = "littoral.dev/job"
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
	return Digest(text)
}

// Digest is a short digest, to tell texts apart.
func Digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
