package icoswire

import (
	"strings"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/job"
)

// Read returns the job that an answer is about, as far as whoever carries it out has to know it.
func (j *Job) Read() *job.Job {
	out := &job.Job{
		ID: j.ID, ApplicationID: j.GroupID, ApplicationName: j.GroupName, ApplicationDescription: j.GroupText,
		Namespace: j.Namespace, Component: j.Instruction.ComponentName, Replica: j.Replica, Cleans: j.Cleans,
		Type: j.Type, SubType: j.SubType, State: j.State, Target: j.Targets, OwnerID: j.OwnerID, Epoch: j.Epoch,
		LeaseUntil: j.LeaseUntil, ResourceUUID: j.Resource.UUID, ResourceName: j.Resource.Name,
		Conditions: j.Resource.Conditions, Remediations: j.Resource.Remediations, CreatedAt: j.CreatedAt, UpdatedAt: j.UpdatedAt,
		Instruction: job.Instruction{
			ComponentName: j.Instruction.ComponentName, Type: j.Instruction.Type, Contents: j.Instruction.Contents,
			Requirements: appmodel.Requirements{Architecture: j.Instruction.Requirements.Architecture},
		},
	}
	if out.Orchestrator == "" {
		out.Orchestrator = j.Orchestrator
	}
	if devices := j.Instruction.Requirements.Devices; devices != "" {
		out.Instruction.Requirements.Devices = strings.Split(devices, ",")
	}
	return out
}
