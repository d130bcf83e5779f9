package icoswire

import (
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/job"
)

// Job is a job as it is answered: the model of v1.4.1 and that of the D3.2 annex in one, plus epoch, replica, cleans and
// lease_until, which are ours.
type Job struct {
	ID           uuid.UUID       `json:"id"`
	CreatedAt    time.Time       `json:"created_at"`
	UpdatedAt    time.Time       `json:"updated_at"`
	GroupID      uuid.UUID       `json:"job_group_id"`
	GroupName    string          `json:"job_group_name"`
	GroupText    string          `json:"job_group_description"`
	OwnerID      string          `json:"owner_id"`
	Type         job.Type        `json:"type"`
	SubType      string          `json:"sub_type"`
	State        job.State       `json:"state"`
	Manifests    []plainManifest `json:"manifests"`
	Targets      job.Target      `json:"targets"`
	Orchestrator string          `json:"orchestrator"`
	Resource     Resource        `json:"resource"`
	Namespace    string          `json:"namespace"`
	Instruction  instruction     `json:"instruction"`
	Epoch        int64           `json:"epoch"`
	Replica      int             `json:"replica"`
	Cleans       *uuid.UUID      `json:"cleans,omitempty"`
	LeaseUntil   *time.Time      `json:"lease_until,omitempty"`
}

type plainManifest struct {
	YAML string `json:"yamlString"`
}

type instruction struct {
	ID            uuid.UUID     `json:"id"`
	JobID         uuid.UUID     `json:"job_id"`
	ComponentName string        `json:"componentName"`
	Type          string        `json:"type"`
	Contents      []job.Content `json:"contents"`
	Requirements  requirements  `json:"requirements"`
}

// requirements are strings in the contract.
type requirements struct {
	Architecture string `json:"architecture"`
	CPU          string `json:"cpu"`
	Devices      string `json:"devices"`
	Memory       string `json:"memory"`
}

// JobOf returns the answer for a job.
func JobOf(j *job.Job) *Job {
	is, subType := j.Type, j.SubType
	if is == job.Replace { // agents that read type names know no ReplaceDeployment (shared/docs/contracts.md §1.4)
		is, subType = job.Update, string(job.ReplaceIt)
	}
	out := &Job{
		ID: j.ID, CreatedAt: j.CreatedAt, UpdatedAt: j.UpdatedAt,
		GroupID: j.ApplicationID, GroupName: j.ApplicationName, GroupText: j.ApplicationDescription,
		OwnerID: j.OwnerID, Type: is, SubType: subType, State: j.State,
		Manifests: make([]plainManifest, 0, len(j.Instruction.Contents)),
		Targets:   j.Target, Orchestrator: j.Orchestrator, Resource: ResourceOf(j), Namespace: j.Namespace,
		Instruction: instruction{
			ID: j.ID, JobID: j.ID, ComponentName: j.Component, Type: j.Instruction.Type, Contents: j.Instruction.Contents,
			Requirements: requirements{
				Architecture: j.Instruction.Requirements.Architecture,
				CPU:          amount(j.CPUMilli, "m"),
				Memory:       amount(j.MemoryBytes, ""),
				Devices:      strings.Join(j.Devices, ","),
			},
		},
		Epoch: j.Epoch, Replica: j.Replica, Cleans: j.Cleans, LeaseUntil: j.LeaseUntil,
	}
	if out.Resource.Conditions == nil {
		out.Resource.Conditions = []job.Condition{}
	}
	if out.Instruction.Contents == nil {
		out.Instruction.Contents = []job.Content{}
	}
	for _, c := range j.Instruction.Contents {
		out.Manifests = append(out.Manifests, plainManifest{c.YAML})
	}
	return out
}

// JobsOf returns the answer for a list of jobs, which is never nil.
func JobsOf(jobs []*job.Job) []*Job {
	out := make([]*Job, len(jobs))
	for i, j := range jobs {
		out[i] = JobOf(j)
	}
	return out
}

// amount writes a quantity with its unit, "" for none.
func amount(n int64, unit string) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10) + unit
}

// Resource is what the orchestrator reports for a job, in reports and in answers.
type Resource struct {
	JobID        ID              `json:"job_id"`
	UUID         string          `json:"resource_uuid"`
	Name         string          `json:"resource_name"`
	Conditions   []job.Condition `json:"conditions"`
	Remediations []job.Remedy    `json:"remediations,omitempty"`
}

// ResourceOf returns the answer for the resource of a job.
func ResourceOf(j *job.Job) Resource {
	return Resource{
		JobID: ID{j.ID}, UUID: j.ResourceUUID, Name: j.ResourceName, Conditions: j.ShownConditions(), Remediations: j.Remediations,
	}
}

func (r *Resource) read() job.Resource {
	return job.Resource{UUID: r.UUID, Name: r.Name, Conditions: r.Conditions, Remediations: r.Remediations}
}
