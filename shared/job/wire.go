package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/problem"
)

// wire is a job as the API shows it: the model of v1.4.1 and that of the D3.2 annex in one, plus epoch, replica, cleans
// and lease_until, which are ours.
type wire struct {
	ID           uuid.UUID       `json:"id"`
	CreatedAt    time.Time       `json:"created_at"`
	UpdatedAt    time.Time       `json:"updated_at"`
	GroupID      uuid.UUID       `json:"job_group_id"`
	GroupName    string          `json:"job_group_name"`
	GroupText    string          `json:"job_group_description"`
	OwnerID      string          `json:"owner_id"`
	Type         Type            `json:"type"`
	SubType      string          `json:"sub_type"`
	State        State           `json:"state"`
	Manifests    []plainManifest `json:"manifests"`
	Targets      Target          `json:"targets"`
	Orchestrator string          `json:"orchestrator"`
	Resource     Resource        `json:"resource"`
	Namespace    string          `json:"namespace"`
	Instruction  wireInstruction `json:"instruction"`
	Epoch        int64           `json:"epoch"`
	Replica      int             `json:"replica"`
	Cleans       *uuid.UUID      `json:"cleans,omitempty"`
	LeaseUntil   *time.Time      `json:"lease_until,omitempty"`
}

type plainManifest struct {
	YAML string `json:"yamlString"`
}

type wireInstruction struct {
	ID            uuid.UUID        `json:"id"`
	JobID         uuid.UUID        `json:"job_id"`
	ComponentName string           `json:"componentName"`
	Type          string           `json:"type"`
	Contents      []Content        `json:"contents"`
	Requirements  wireRequirements `json:"requirements"`
}

// wireRequirements are strings in the contract.
type wireRequirements struct {
	Architecture string `json:"architecture"`
	CPU          string `json:"cpu"`
	Devices      string `json:"devices"`
	Memory       string `json:"memory"`
}

// ID is a UUID that ICOS agents write as "" when they do not know it. Both that and the zero ID mean none.
type ID struct{ uuid.UUID }

// UnmarshalText reads an empty text as none.
func (id *ID) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*id = ID{}
		return nil
	}
	if id.UUID.UnmarshalText(text) != nil {
		return errors.New("is not a UUID") // the parser's error speaks of lengths
	}
	return nil
}

// Given reports whether there is an id.
func (id ID) Given() bool { return id.UUID != uuid.Nil }

// Resource is what the orchestrator reports for a job.
type Resource struct {
	JobID        ID          `json:"job_id"`
	UUID         string      `json:"resource_uuid"`
	Name         string      `json:"resource_name"`
	Conditions   []Condition `json:"conditions"`
	Remediations []Remedy    `json:"remediations,omitempty"`
}

// Resource returns the job's resource.
func (j *Job) Resource() Resource {
	return Resource{JobID: ID{j.ID}, UUID: j.ResourceUUID, Name: j.ResourceName, Conditions: j.shown(), Remediations: j.Remediations}
}

// MarshalJSON writes the API form.
func (j *Job) MarshalJSON() ([]byte, error) {
	typ, subType := j.Type, j.SubType
	if typ == Replace { // agents that read type names know no ReplaceDeployment (shared/docs/contracts.md §1.4)
		typ, subType = Update, string(ReplaceIt)
	}
	w := wire{
		ID: j.ID, CreatedAt: j.CreatedAt, UpdatedAt: j.UpdatedAt,
		GroupID: j.ApplicationID, GroupName: j.ApplicationName, GroupText: j.ApplicationDescription,
		OwnerID: j.OwnerID, Type: typ, SubType: subType, State: j.State,
		Manifests: make([]plainManifest, 0, len(j.Instruction.Contents)),
		Targets:   j.Target, Orchestrator: j.Orchestrator, Resource: j.Resource(), Namespace: j.Namespace,
		Instruction: wireInstruction{
			ID: j.ID, JobID: j.ID, ComponentName: j.Component, Type: j.Instruction.Type, Contents: j.Instruction.Contents,
			Requirements: wireRequirements{
				Architecture: j.Instruction.Requirements.Architecture,
				CPU:          amount(j.CPUMilli, "m"),
				Memory:       amount(j.MemoryBytes, ""),
				Devices:      strings.Join(j.Devices, ","),
			},
		},
		Epoch: j.Epoch, Replica: j.Replica, Cleans: j.Cleans, LeaseUntil: j.LeaseUntil,
	}
	if w.Resource.Conditions == nil {
		w.Resource.Conditions = []Condition{}
	}
	if w.Instruction.Contents == nil {
		w.Instruction.Contents = []Content{}
	}
	for _, c := range j.Instruction.Contents {
		w.Manifests = append(w.Manifests, plainManifest{c.YAML})
	}
	return json.Marshal(w)
}

// amount writes a quantity with its unit, "" for none.
func amount(n int64, unit string) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10) + unit
}

// Report is what an agent says about a job: its new state and resource. Zero means not said.
type Report struct {
	ID       uuid.UUID
	OwnerID  string
	Type     Type
	SubType  string
	State    State
	Epoch    int64
	Resource Resource

	// Deployed is what the agent has deployed. It may say so in several forms, which need not agree: what counts is whether
	// one of them is former content.
	Deployed [][]Content
	// At is where the agent has deployed. Older agents may use their own name for a cluster.
	At Target
}

// about reports whether the report concerns what the job is now. A replacement is listed as an update with the sub type
// replace; v1.4.1 had a type of its own for it.
func (r *Report) about(j *Job) bool {
	if r.Type == Update && (r.SubType == string(ReplaceIt) || r.SubType == "" && j.Type == Replace) {
		return j.Type == Replace
	}
	return r.Type == "" || r.Type == j.Type
}

// Status is what an agent says about the resource of a job between reports. The job is named by JobID, else by ID. ICOS
// agents that synchronise from an orchestrator know a resource by its uuid alone; the oldest of them send that as ID.
type Status struct {
	Resource
	ID      ID     `json:"id"`
	GroupID ID     `json:"job_group_id"` // instead of a job: all jobs of this group that the agent owns
	OwnerID string `json:"owner_id"`
	Epoch   int64  `json:"epoch"`
	State   string `json:"status"` // short form: the type of a condition that is True now
}

// OfGroup reports whether it is about a group and not about one job.
func (s *Status) OfGroup() bool { return s.GroupID.Given() && !s.JobID.Given() && !s.ID.Given() }

// conditions returns the conditions that were sent, or the one that the short form names.
func (s *Status) conditions(faults *problem.Faults) []Condition {
	if s.State == "" || len(s.Conditions) > 0 {
		return s.Conditions
	}
	names := []string{ConditionCreated, ConditionProgressing, ConditionApplied, ConditionAvailable, ConditionDegraded}
	if !slices.Contains(names, s.State) {
		faults.Add("status", 0, "%q is not one of %s", s.State, strings.Join(names, ", "))
		return nil
	}
	return []Condition{{Type: s.State, Status: "True", Reason: "Reported"}}
}

// clean checks the conditions that an agent sent and drops duplicates.
func clean(faults *problem.Faults, path string, conditions []Condition, now time.Time) []Condition {
	kept := make([]Condition, 0, len(conditions))
	at := map[string]int{}
	for i, c := range conditions {
		if c.Type == "" || len(c.Type) > 316 {
			faults.Add(fmt.Sprintf("%s[%d].type", path, i), 0, "is missing or too long")
		}
		if c.Status != "True" && c.Status != "False" && c.Status != "Unknown" {
			faults.Add(fmt.Sprintf("%s[%d].status", path, i), 0, "%q is not True, False or Unknown", c.Status)
		}
		if c.LastTransitionTime.IsZero() {
			c.LastTransitionTime = now
		}
		if before, twice := at[c.Type+"/"+c.Reason]; twice {
			kept[before] = c
			continue
		}
		at[c.Type+"/"+c.Reason] = len(kept)
		kept = append(kept, c)
	}
	return kept
}
