package plan

import (
	"context"
	"strings"
	"time"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/groups"
	"github.com/littoral-project/littoral/shared/swm/ipam"
)

// Name is that of the AssignmentPlan of a group.
func Name(group string) string { return group + "-assignment-plan" }

// GroupStatus is the status of an ApplicationGroup.
type GroupStatus struct {
	Phase              string     `json:"phase"`
	LastUpdateTime     *time.Time `json:"lastUpdateTime,omitempty"`
	SolverAttemptCount int64      `json:"solverAttemptCount,omitempty"`
}

// ApplicationStatus is the status of an Application.
type ApplicationStatus struct {
	Phase      string      `json:"phase"` // Waiting, Scheduling, Pending, Running or Failing
	Conditions []Condition `json:"conditions,omitempty"`
}

// Condition says something about a part of an Application.
type Condition struct {
	Type           string     `json:"type"`
	LastUpdateTime *time.Time `json:"lastUpdateTime,omitempty"`
	Entity         string     `json:"entity"` // the workload or the channel
	Reason         string     `json:"reason,omitempty"`
	Status         string     `json:"status"`
}

// Types of conditions.
const (
	ChannelNack     = "ChannelNack"
	ChannelQoS      = "ChannelQoS"
	ChannelCanceled = "ChannelCanceled"
	PodUnscheduled  = "PodUnschedulable"
	NotRunning      = "NotRunning"
	PodFailed       = "PodFailed"
	Ok              = "Ok"
)

// StatusOf tells how an object fares; nil for kinds that have no status.
func StatusOf(ctx context.Context, q store.Querier, s *groups.Stored) (any, error) {
	switch s.Kind {
	case groups.ApplicationGroup:
		return groupStatus(ctx, q, s)
	case groups.Application:
		group, err := groups.Get(ctx, q, groups.Key{Kind: groups.ApplicationGroup, Namespace: s.Namespace, Name: s.MemberOf})
		if problem.KindOf(err) == problem.NotFound || err == nil && group.Application == nil {
			return ApplicationStatus{Phase: Waiting}, nil
		}
		if err != nil {
			return nil, err
		}
		p, err := Of(ctx, q, *group.Application)
		if problem.KindOf(err) == problem.NotFound {
			return ApplicationStatus{Phase: Waiting}, nil
		}
		if err != nil {
			return nil, err
		}
		return p.Member(s.Name), nil
	case groups.Ipam:
		return ipam.Of(ctx, q, s.Namespace, s.Name)
	}
	return nil, nil
}

func groupStatus(ctx context.Context, q store.Querier, s *groups.Stored) (any, error) {
	if s.Application == nil {
		return GroupStatus{Phase: Waiting}, nil
	}
	p, err := Of(ctx, q, *s.Application)
	if problem.KindOf(err) == problem.NotFound {
		return GroupStatus{Phase: Waiting}, nil
	}
	if err != nil {
		return nil, err
	}
	return p.Group(), nil
}

// Group is the status of the group.
func (p *Planned) Group() GroupStatus {
	at := p.Application.UpdatedAt
	var attempts int64
	for _, j := range p.Application.Jobs {
		attempts = max(attempts, j.Epoch)
	}
	return GroupStatus{Phase: p.PhaseOf(), LastUpdateTime: &at, SolverAttemptCount: attempts}
}

// Member is the status of one application of the group.
func (p *Planned) Member(name string) ApplicationStatus {
	s := ApplicationStatus{Phase: "Running"}
	worst := func(phase string) {
		order := []string{"Running", "Pending", "Scheduling", "Waiting", "Failing"}
		for i, one := range order {
			if one == s.Phase {
				for _, worse := range order[i+1:] {
					if worse == phase {
						s.Phase = phase
					}
				}
				return
			}
		}
	}
	say := func(typ, entity, reason string, at time.Time) {
		s.Conditions = append(s.Conditions, Condition{typ, &at, entity, reason, "True"})
	}
	for _, j := range p.Application.Jobs {
		if !j.Live() || !strings.HasPrefix(j.Component, groups.Component(name, "")) {
			continue
		}
		entity := job.ReplicaName(j.Component, j.Replica)
		switch {
		case !j.Placed() && j.Tried:
			worst("Pending")
			say(PodUnscheduled, entity, message(j), j.UpdatedAt)
		case !j.Placed():
			worst("Scheduling")
		case j.State == job.Degraded:
			worst("Failing")
			say(PodFailed, entity, message(j), j.UpdatedAt)
		case !j.Available():
			worst("Scheduling")
			say(NotRunning, entity, message(j), j.UpdatedAt)
		}
	}
	for _, c := range p.Channels {
		if !strings.HasPrefix(c.Source, groups.Component(name, "")) {
			continue
		}
		at := p.Application.UpdatedAt
		switch c.Status {
		case Rejected:
			say(ChannelNack, c.Name, c.Reason, at)
		case OutOfQoS:
			worst("Failing")
			say(ChannelQoS, c.Name, c.Reason, at)
		case Canceled:
			say(ChannelCanceled, c.Name, c.Reason, at)
		}
	}
	if len(s.Conditions) == 0 && s.Phase == "Running" {
		say(Ok, name, "", p.Application.UpdatedAt)
	}
	return s
}
