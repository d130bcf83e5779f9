// Package icoswire is the JSON of ICOS: what its agents and clients send, turned into what the domain understands, and what
// they are answered. The domain knows neither. JobGroups and policies have packages of their own below it, since an agent's
// poll need not carry the parsers of descriptors and policies.
package icoswire

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/job"
)

// Report is the job as an agent knows it, with its new state and resource. Only these fields are read; zero means not given.
type Report struct {
	ID       uuid.UUID `json:"id"`
	OldID    uuid.UUID `json:"ID"` // as v1.4.1 writes it
	OwnerID  string    `json:"owner_id"`
	Type     typ       `json:"type"`
	SubType  string    `json:"sub_type"`
	State    state     `json:"state"`
	Epoch    int64     `json:"epoch"`
	Resource Resource  `json:"resource"`

	// What the agent has deployed, in the format of v1.4.1 or of D3.2, if it returns the job as it was listed. Older
	// agents put other things here, so neither has to be valid.
	Manifests   json.RawMessage `json:"manifests"`
	Instruction json.RawMessage `json:"instruction"`

	// Where it has deployed, in either format: a target, or a list of them.
	Targets json.RawMessage `json:"targets"`
}

// Command is what the report says.
func (r *Report) Command() job.Report {
	c := job.Report{
		ID: cmp.Or(r.ID, r.OldID), OwnerID: r.OwnerID, Type: job.Type(r.Type), SubType: r.SubType, State: job.State(r.State), Epoch: r.Epoch,
		Resource: r.Resource.read(), Deployed: r.deployed(), At: r.at(),
	}
	if r.removed() {
		c.State = job.Finished
	}
	return c
}

// removed recognizes how newer agents report a removal: with the state in which the job was listed, and a condition that
// says it is deleted.
func (r *Report) removed() bool {
	return job.Type(r.Type) == job.Delete && job.State(r.State) == job.Created && slices.ContainsFunc(r.Resource.Conditions, func(c job.Condition) bool {
		return c.Type == job.ConditionDeleted && c.Status == "True"
	})
}

// deployed returns what the agent has deployed, in each format that it used.
func (r *Report) deployed() (given [][]job.Content) {
	var manifests []struct {
		YAML string `json:"yamlString"`
	}
	if json.Unmarshal(r.Manifests, &manifests) == nil && len(manifests) > 0 {
		list := make([]job.Content, len(manifests))
		for i, m := range manifests {
			list[i].YAML = m.YAML
		}
		given = append(given, list)
	}
	var instruction struct {
		Contents []job.Content `json:"contents"`
	}
	if json.Unmarshal(r.Instruction, &instruction) == nil && len(instruction.Contents) > 0 {
		given = append(given, instruction.Contents)
	}
	return given
}

// at returns where the agent has deployed the job; the zero Target when it does not say so in a known way.
func (r *Report) at() job.Target {
	var at target
	if json.Unmarshal(r.Targets, &at) != nil {
		return job.Target{}
	}
	return job.Target(at)
}
