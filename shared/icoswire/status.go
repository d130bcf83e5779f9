package icoswire

import (
	"cmp"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/job"
)

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

// Group returns the application that it is about, if it is not about one job.
func (s *Status) Group() (id uuid.UUID, ok bool) {
	return s.GroupID.UUID, s.GroupID.given() && !s.JobID.given() && !s.ID.given()
}

// Command is what the status says.
func (s *Status) Command() job.Observation {
	o := job.Observation{
		Job: cmp.Or(s.JobID, s.ID).UUID, Resource: s.read(), OwnerID: s.OwnerID, Epoch: s.Epoch, Now: s.State,
	}
	if s.ID.given() {
		o.ElseResource = s.ID.String()
	}
	return o
}
