package application

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/history/recorded"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/store"
)

const (
	setUnwatched = `update applications set unwatched = $2,
  unwatched_at = case when $2 = '{}'::jsonb then null else coalesce(unwatched_at, now()) end
where id = $1 and deleted_at is null and unwatched <> $2`

	addUnwatched = `update applications set unwatched = unwatched || jsonb_build_object($2::text, $3::text),
  unwatched_at = coalesce(unwatched_at, now())
where id = $1 and deleted_at is null and unwatched ->> $2 is distinct from $3`

	dropUnwatched = `update applications set unwatched = unwatched - $2,
  unwatched_at = case when unwatched - $2 = '{}'::jsonb then null else unwatched_at end
where id = $1 and unwatched ? $2`
)

// ConditionWatched says whether all policies of the application can be watched.
const ConditionWatched = "Watched"

// Unwatch records that a policy of the application cannot be watched, and why; history has it once. An instance that is
// none of our applications is left alone. Policies are locked before their application.
func Unwatch(ctx context.Context, tx *store.Tx, instance, policy, why string) error {
	id, err := uuid.Parse(instance)
	if err != nil {
		return nil // it is known elsewhere
	}
	done, err := tx.Exec(ctx, addUnwatched, id, policy, why)
	if err != nil {
		return fmt.Errorf("store what is not watched: %w", err)
	}
	if done.RowsAffected() == 0 {
		return nil
	}
	return history.Record(ctx, tx, history.Entry{
		ApplicationID: &id, Event: recorded.PolicyRefused, Message: policy + " is not watched: " + why,
	})
}

// Watch takes back Unwatch: the policy is watched, or gone.
func Watch(ctx context.Context, tx *store.Tx, instance, policy string) error {
	id, err := uuid.Parse(instance)
	if err != nil {
		return nil // it is known elsewhere
	}
	if _, err := tx.Exec(ctx, dropUnwatched, id, policy); err != nil {
		return fmt.Errorf("store what is watched: %w", err)
	}
	return nil
}

// SetUnwatched replaces what is recorded by Unwatch, without an entry in history.
func (a *Application) SetUnwatched(ctx context.Context, tx *store.Tx, why map[string]string) error {
	if maps.Equal(a.Unwatched, why) {
		return nil
	}
	if why == nil {
		why = map[string]string{}
	}
	if _, err := tx.Exec(ctx, setUnwatched, a.ID, why); err != nil {
		return fmt.Errorf("store what is not watched: %w", err)
	}
	a.Unwatched = why
	return nil
}

// listed is how many policies a condition lists.
const listed = 5

// Conditions returns what is observed about the application as a whole; what its components report is with its jobs.
func (a *Application) Conditions() []job.Condition {
	var list []job.Condition
	if c := a.unknown(); c != nil {
		list = append(list, *c)
	}
	if c := a.unwatched(); c != nil {
		list = append(list, *c)
	}
	return list
}

// unwatched is the condition of an application some of whose policies cannot be watched; nil when all are.
func (a *Application) unwatched() *job.Condition {
	if len(a.Unwatched) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(a.Unwatched))
	texts := make([]string, 0, listed+1)
	for _, name := range names[:min(len(names), listed)] {
		texts = append(texts, name+": "+a.Unwatched[name])
	}
	if more := len(names) - listed; more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	c := job.Condition{
		Type: ConditionWatched, Status: "False", ObservedGeneration: a.Version, Reason: "PolicyRefused",
		Message: strings.Join(texts, "; "),
	}
	if a.UnwatchedAt != nil {
		c.LastTransitionTime = a.UnwatchedAt.Truncate(time.Microsecond)
	}
	return &c
}
