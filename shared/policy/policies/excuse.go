package policies

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

const otherViolations = `select coalesce(definition -> 'subject' ->> 'appComponent', '') from policies
where instance = $1 and id <> $2 and deleted_at is null and phase = 'violated'`

// Excuse lets components that had nowhere else to go stay where they are, now that the policy is kept there again.
func Excuse(ctx context.Context, tx *store.Tx, p *Policy) error {
	return p.excuse(ctx, tx, "is kept again")
}

// unblame is excuse for a policy that was violated and says nothing any more.
func (p *Policy) unblame(ctx context.Context, tx *store.Tx, before registry.Phase, why string) error {
	if before != registry.Violated {
		return nil
	}
	return p.excuse(ctx, tx, why)
}

// excuse lets components stay that no other policy of the application has go. Which policy had them go nobody knows: all
// are looked at.
func (p *Policy) excuse(ctx context.Context, tx *store.Tx, why string) error {
	id, err := uuid.Parse(p.Instance)
	if err != nil {
		return nil //nolint:nilerr // it is about no application of ours
	}
	app, err := application.Lock(ctx, tx, id)
	if problem.KindOf(err) == problem.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	rows, err := tx.Query(ctx, otherViolations, p.Instance, p.UUID())
	if err != nil {
		return fmt.Errorf("find what else is violated: %w", err)
	}
	others, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("find what else is violated: %w", err)
	}
	for _, j := range app.Jobs {
		blamed := func(component string) bool { return registry.Matches(component, j.Component) }
		if !j.Strained() || slices.ContainsFunc(others, blamed) {
			continue
		}
		if err := j.Relieve(ctx, tx, "policy "+p.Name+" "+why+"; it may stay at "+j.Target.String()); err != nil {
			return err
		}
	}
	return nil
}
