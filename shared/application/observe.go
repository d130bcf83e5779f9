package application

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// ObserveAll stores what an agent sees (job.Observe) of all jobs of the application that the agent owns, and returns these.
// The error is also NotFound when it owns none.
func ObserveAll(ctx context.Context, tx *store.Tx, id uuid.UUID, s job.Observation, lease time.Duration) ([]*job.Job, error) {
	if s.OwnerID == "" {
		s.OwnerID = auth.From(ctx).AgentID
	}
	a, err := Lock(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	var seen []*job.Job
	for _, j := range a.Jobs {
		if s.OwnerID == "" || j.OwnerID != s.OwnerID || j.State == job.Created {
			continue
		}
		s.Job = j.ID
		now, err := job.Observe(ctx, tx, s, lease)
		if err != nil {
			return nil, err
		}
		seen = append(seen, now)
	}
	if len(seen) == 0 {
		return nil, problem.New(problem.NotFound, "agent %q runs nothing of application %s", s.OwnerID, id)
	}
	return seen, nil
}
