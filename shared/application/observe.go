package application

import (
	"context"
	"time"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Observe stores what an agent sees (job.Observe) of one job, or of all jobs of a group that the agent owns. The error
// is also NotFound when it owns none.
func Observe(ctx context.Context, tx *store.Tx, s job.Status, lease time.Duration) ([]job.Resource, error) {
	if !s.OfGroup() {
		j, err := job.Observe(ctx, tx, s, lease)
		if err != nil {
			return nil, err
		}
		return []job.Resource{j.Resource()}, nil
	}
	if s.OwnerID == "" {
		s.OwnerID = auth.From(ctx).AgentID
	}
	a, err := Lock(ctx, tx, s.GroupID.UUID)
	if err != nil {
		return nil, err
	}
	var seen []job.Resource
	for _, j := range a.Jobs {
		if s.OwnerID == "" || j.OwnerID != s.OwnerID || j.State == job.Created {
			continue
		}
		s.JobID = job.ID{UUID: j.ID}
		now, err := job.Observe(ctx, tx, s, lease)
		if err != nil {
			return nil, err
		}
		seen = append(seen, now.Resource())
	}
	if len(seen) == 0 {
		return nil, problem.New(problem.NotFound, "agent %q runs nothing of application %s", s.OwnerID, s.GroupID)
	}
	return seen, nil
}
