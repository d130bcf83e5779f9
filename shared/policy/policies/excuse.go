package policies

import (
	"context"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

const otherViolations = `select exists (select 1 from policies where instance = $1 and id <> $2 and deleted_at is null
and phase = 'violated')`

// Excuse lets components that had nowhere else to go stay where they are, now that the policy is kept there again.
// While another policy of the application is violated they go on looking.
func Excuse(ctx context.Context, tx *store.Tx, p *Policy) error {
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
	var others bool
	if err := tx.QueryRow(ctx, otherViolations, p.Instance, p.UUID()).Scan(&others); err != nil || others {
		return err
	}
	for _, j := range app.Jobs {
		if !j.Strained() || !registry.Matches(p.Subject.AppComponent, j.Component) {
			continue
		}
		if err := j.Relieve(ctx, tx, "policy "+p.Name+" is kept again at "+j.Target.String()); err != nil {
			return err
		}
	}
	return nil
}
