package policies

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

const selectViolated = `select coalesce(definition -> 'subject' ->> 'appComponent', ''),
coalesce(definition -> 'action' -> 'extraParams' ->> $2, ''), state from policies
where instance = $1 and deleted_at is null and phase = 'violated'`

// unblame is excuse for a policy that was violated and says nothing any more.
func (p *Policy) unblame(ctx context.Context, tx *store.Tx, before registry.Phase, why string) error {
	if before != registry.Violated {
		return nil
	}
	return p.excuse(ctx, tx, why)
}

// excuse lets components stay that no policy of the application has go any more. Which policy had them go nobody knows: all
// are looked at that move something.
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
	rows, err := tx.Query(ctx, selectViolated, p.Instance, registry.RemediationParam)
	if err != nil {
		return fmt.Errorf("find what is violated: %w", err)
	}
	type violated struct {
		Component, Remediation string
		State                  registry.State
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[violated])
	if err != nil {
		return fmt.Errorf("find what is violated: %w", err)
	}
	all = slices.DeleteFunc(all, func(v violated) bool {
		known, err := job.ParseRemediation(v.Remediation)
		return err != nil || known != job.Reallocate
	})
	for _, j := range app.Jobs {
		blames := func(v violated) bool { return v.State.Blames(j.Component, v.Component) }
		if !j.Strained() || slices.ContainsFunc(all, blames) {
			continue
		}
		if err := j.Relieve(ctx, tx, "policy "+p.Name+" "+why+"; it may stay at "+j.Target.String()); err != nil {
			return err
		}
	}
	return nil
}
