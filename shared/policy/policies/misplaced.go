package policies

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// If a policy is about several instances, package registry decides whether it is about this one.
const selectViolated = `select definition -> 'subject', coalesce(definition -> 'action' -> 'extraParams' ->> $2, ''), state
from policies where (instance = $1 or instance = '*' or instance like '/%') and deleted_at is null and phase = 'violated'`

// releaseAll calls releaseMisplaced for a policy that was violated and no longer is.
func (p *Policy) releaseAll(ctx context.Context, tx *store.Tx, before registry.State, why string) error {
	if err := p.withdraw(ctx, tx); err != nil {
		return err
	}
	for _, instance := range before.Instances() {
		if err := p.releaseMisplaced(ctx, tx, cmp.Or(instance, p.Instance), why); err != nil {
			return err
		}
	}
	return nil
}

// releaseMisplaced lets a component of the instance stay where it is if no violated policy asks to move it any more. Which policy had
// asked is not stored, so all policies that move something are considered.
func (p *Policy) releaseMisplaced(ctx context.Context, tx *store.Tx, instance, why string) error {
	id := instanceID(instance)
	if id == nil {
		return nil // it is about no application of ours
	}
	app, err := application.Lock(ctx, tx, *id)
	if problem.KindOf(err) == problem.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	type violated struct {
		Subject     registry.Subject
		Remediation string
		State       registry.State
	}
	all, err := store.Collect(ctx, tx, "find what is violated", pgx.RowToStructByPos[violated],
		selectViolated, instance, registry.RemediationParam)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(v violated) bool {
		known, err := job.ParseRemediation(v.Remediation)
		return err != nil || known != job.Reallocate
	})
	for _, j := range app.Jobs {
		blames := func(v violated) bool { return v.State.Blames(instance, j.Component, v.Subject) }
		if !j.IsMisplaced(job.Violating) || slices.ContainsFunc(all, blames) {
			continue
		}
		if err := j.ReleaseMisplaced(ctx, tx, job.Violating, "policy "+p.Name+" "+why+"; it may stay at "+j.Target.String()); err != nil {
			return err
		}
	}
	return nil
}
