// Package policyread is a policy in the JSON of ICOS.
package policyread

import (
	"time"

	"github.com/littoral-project/littoral/shared/etag"
	"github.com/littoral-project/littoral/shared/policy/policies"
	"github.com/littoral-project/littoral/shared/policy/registry"
)

// Answer is a policy as it is answered: PolicyRead of the contract with version, origin and the instants added.
type Answer struct {
	registry.Policy
	Origin    policies.Origin `json:"origin"`
	Version   int64           `json:"version"`
	Paused    bool            `json:"paused"`
	CreatedAt time.Time       `json:"createdAt"`
	UpdatedAt time.Time       `json:"updatedAt"`
}

// Of returns the answer for a policy.
func Of(p *policies.Policy) *Answer {
	out := &Answer{p.Policy, p.Origin, p.Version, p.Paused, p.CreatedAt, p.UpdatedAt}
	out.Status.Phase = p.State.Phase
	return out
}

// ListOf returns the answer for a list of policies.
func ListOf(list []*policies.Policy) []*Answer {
	out := make([]*Answer, len(list))
	for i, p := range list {
		out[i] = Of(p)
	}
	return out
}

// ETag names the version, which also changes with the phase.
func (p *Answer) ETag() string { return etag.Of(p.Version) }
