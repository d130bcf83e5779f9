// Package job is the work on one component: its states, the rules who may change them, and its rows.
//
// A job keeps its id while its component moves. Each placement decision and each change of owner raises its epoch, the
// fencing token: a report with an older epoch, or from anyone but the owner, is refused and changes nothing. The copy
// that a moved component leaves behind is removed by a clean-up job of its own, addressed to the former owner, so a
// dead place never keeps the component from running elsewhere.
package job

import (
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/appmodel"
)

// State is where a job stands.
type State string

// The states of a job (contract: JobState).
const (
	Created     State = "Created"     // waits for a place or for its agent
	Progressing State = "Progressing" // an agent works on it, under a lease
	Finished    State = "Finished"    // done as asked
	Degraded    State = "Degraded"    // done, or tried, but not well
)

// Type is what the agent has to do.
type Type string

// The types of a job (contract: JobType).
const (
	Create  Type = "CreateDeployment"
	Delete  Type = "DeleteDeployment"
	Update  Type = "UpdateDeployment"  // a remediation, named by SubType
	Replace Type = "ReplaceDeployment" // written in the API as an Update with the sub type replace
)

// Remediation is what a violated policy asks for; it is the sub type of an Update job.
type Remediation string

// The remediations (contract: RemediationType).
const (
	NoRemediation Remediation = "none" // record only
	ScaleUp       Remediation = "scale-up"
	ScaleDown     Remediation = "scale-down"
	ScaleOut      Remediation = "scale-out"
	ScaleIn       Remediation = "scale-in"
	Patch         Remediation = "patch"
	Reallocate    Remediation = "reallocate"
	ReplaceIt     Remediation = "replace"
	Secure        Remediation = "secure"
)

// Rewrites reports whether the remediation writes the objects as they stand in the job, which undoes all scaling before
// it.
func (r Remediation) Rewrites() bool { return r == Patch || r == ReplaceIt }

// Condition types that orchestrators report (contract: ResourceState).
const (
	ConditionCreated     = "Created"
	ConditionProgressing = "Progressing"
	ConditionApplied     = "Applied"
	ConditionAvailable   = "Available"
	ConditionDegraded    = "Degraded"
	ConditionDeleted     = "Deleted" // newer ICOS agents report a removal by it
)

// Job is the work on one component (and replica), or the removal of a copy it left behind.
type Job struct {
	ID                     uuid.UUID  `db:"id"`
	ApplicationID          uuid.UUID  `db:"application_id"`
	ApplicationName        string     `db:"application_name"`
	ApplicationDescription string     `db:"application_description"`
	Namespace              string     `db:"namespace"`
	Component              string     `db:"component"`
	Replica                int        `db:"replica"`
	Cleans                 *uuid.UUID `db:"cleans"` // the job whose former copy this one removes
	Type                   Type       `db:"type"`
	SubType                string     `db:"sub_type"`
	State                  State      `db:"state"`
	Target
	Silence
	OwnerID      string        `db:"owner_id"` // the agent that took it; empty = free
	Epoch        int64         `db:"epoch"`
	LeaseUntil   *time.Time    `db:"lease_until"` // after it another agent may take over a progressing or degraded job
	Applied      bool          `db:"applied"`     // the owner has reported, since it took the job, that it has done its part
	Instruction  Instruction   `db:"instruction"`
	Superseded   []string      `db:"superseded"`   // digests of the contents before the present one, the newest last
	CPUMilli     int64         `db:"cpu_milli"`    // reserved at the target
	MemoryBytes  int64         `db:"memory_bytes"` // reserved at the target
	Devices      []string      `db:"devices"`      // reserved at the target
	LostAfter    time.Duration `db:"lost_after"`   // a component is moved when its node is silent for so long
	Excluded     []Target      `db:"excluded"`     // where it must not go, since a policy was violated there
	Tried        bool          `db:"tried"`        // the matchmaker has looked for a place since the job waits for one
	Misplaced    []Misplaced   `db:"misplaced"`    // why it should not be where it is
	ResourceUUID string        `db:"resource_uuid"`
	ResourceName string        `db:"resource_name"`
	Conditions   []Condition   `db:"conditions"`
	Remediations []Remedy      `db:"remediations"` // asked for since the content of the present copy was written
	CreatedAt    time.Time     `db:"created_at"`
	UpdatedAt    time.Time     `db:"updated_at"`
}

// Target is a place; the zero Target means not placed.
type Target struct {
	Orchestrator string `json:"orchestrator" db:"orchestrator"`
	Cluster      string `json:"cluster_name" db:"cluster"`
	Node         string `json:"node_name" db:"node"`
}

// String returns "cluster/node", or "nowhere".
func (t Target) String() string {
	if t.Cluster == "" {
		return "nowhere"
	}
	return t.Cluster + "/" + t.Node
}

// Instruction is what is to be deployed (contract: D3.2 annex).
type Instruction struct {
	ComponentName string                `json:"componentName"`
	Type          string                `json:"type"` // kubernetes or docker; multiple until an engine is chosen
	Contents      []Content             `json:"contents"`
	Requirements  appmodel.Requirements `json:"requirements,omitzero"`
	Labels        map[string][]string   `json:"labels,omitempty"` // node labels this replica asks for
	Calls         bool                  `json:"calls,omitempty"`  // it needs Services that others offer
}

// Content is one object to deploy.
type Content struct {
	Name string `json:"name"`
	YAML string `json:"yaml"`
}

// Condition is one observed fact about a resource, as Kubernetes writes them.
type Condition struct {
	Type               string    `json:"type"`
	Status             string    `json:"status"` // True, False, Unknown
	ObservedGeneration int64     `json:"observedGeneration"`
	LastTransitionTime time.Time `json:"lastTransitionTime"`
	Reason             string    `json:"reason"`
	Message            string    `json:"message"`
}

// How a remediation went (contract: RemediationStatus).
const (
	RemedyPending = "Pending"    // asked for; or refused, to be tried again
	RemedyDone    = "Remediated" // carried out, even if the result does not run well
	RemedyFailed  = "Failed"     // not carried out, and never will be
)

// ReasonNotSupported is the reason of the condition Applied=False when no agent there can carry out the remediation.
const ReasonNotSupported = "NotSupported"

// Remedy is a remediation that was asked for, with how it went.
type Remedy struct {
	ID         uuid.UUID     `json:"id"`
	ResourceID string        `json:"resource_id"`
	Type       Remediation   `json:"remediationType"`
	Status     string        `json:"remediationStatus"`
	Target     *RemedyTarget `json:"remediationTarget,omitempty"`
	Step       int           `json:"remediationStep,omitempty"` // replicas more or fewer; 0 = one
}

// RemedyTarget is the container a "secure" remediation acts on.
type RemedyTarget struct {
	Container string `json:"container"`
	Pod       string `json:"pod"`
	PodUID    string `json:"pod_uid"`
	Node      string `json:"node"`
	Namespace string `json:"namespace"`
	Command   string `json:"command"`
}

// Size returns how large its objects are, in bytes.
func (j *Job) Size() (bytes int) {
	for _, c := range j.Instruction.Contents {
		bytes += len(c.YAML)
	}
	return bytes
}

// Placed reports whether the job has a place.
func (j *Job) Placed() bool { return j.Cluster != "" }

// Condition returns the condition of the type, nil when it was not reported.
func (j *Job) Condition(typ string) *Condition { return conditionOf(j.Conditions, typ) }

func conditionOf(conditions []Condition, typ string) *Condition {
	for i := range conditions {
		if conditions[i].Type == typ {
			return &conditions[i]
		}
	}
	return nil
}

// Available reports whether the component runs. If its orchestrator reports no such condition, a finished job counts as
// available. While its node is silent nobody knows.
func (j *Job) Available() bool {
	c := j.Condition(ConditionAvailable)
	return j.State == Finished && j.Type != Delete && j.OwnerID != "" && (c == nil || c.Status == "True") && !j.Silent()
}

// Gone reports whether nothing of the job runs or is being started: it was removed, or stopped before anyone took it.
func (j *Job) Gone() bool {
	return j.State == Finished && (j.Type == Delete || j.OwnerID == "")
}

// Live reports whether the job runs or is meant to run.
func (j *Job) Live() bool { return j.Cleans == nil && j.Type != Delete && !j.Gone() }
