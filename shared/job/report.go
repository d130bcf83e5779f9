package job

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/problem"
)

// Resource is what the orchestrator reports for a job.
type Resource struct {
	UUID         string
	Name         string
	Conditions   []Condition
	Remediations []Remedy
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

// Observation is what is seen of the resource of a job between reports. The job is named by its id, or else by the uuid of
// its resource.
type Observation struct {
	Resource
	Job          uuid.UUID
	ElseResource string // the uuid of its resource, if there is no such job and Resource has none
	OwnerID      string
	Epoch        int64
	Now          string // instead of conditions: the type of one that is True now
}

// conditions returns the conditions that were sent, or the one that the short form names.
func (s *Observation) conditions(faults *problem.Faults) []Condition {
	if s.Now == "" || len(s.Conditions) > 0 {
		return s.Conditions
	}
	names := []string{ConditionCreated, ConditionProgressing, ConditionApplied, ConditionAvailable, ConditionDegraded}
	if !slices.Contains(names, s.Now) {
		faults.Add("status", 0, "%q is not one of %s", s.Now, strings.Join(names, ", "))
		return nil
	}
	return []Condition{{Type: s.Now, Status: "True", Reason: "Reported"}}
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
