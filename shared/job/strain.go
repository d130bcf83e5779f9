package job

import (
	"context"
	"slices"
	"time"

	"github.com/littoral-project/littoral/shared/store"
)

// reasonStrained marks the condition of a job that should leave its place and cannot.
const reasonStrained = "PolicyViolated"

// Strained reports whether the job should have left its place, since a policy is violated there, and found no other.
func (j *Job) Strained() bool { return j.Placed() && slices.Contains(j.Excluded, j.Target) }

// strain returns the condition by which Strain says so, nil when there is none.
func (j *Job) strain() *Condition {
	i := slices.IndexFunc(j.Conditions, func(c Condition) bool { return c.Reason == reasonStrained })
	if i < 0 {
		return nil
	}
	return &j.Conditions[i]
}

// runsWell reports whether nothing is wrong with a degraded job but its place.
func (j *Job) runsWell() bool {
	own := slices.DeleteFunc(slices.Clone(j.Conditions), func(c Condition) bool { return c.Reason == reasonStrained })
	return j.strain() != nil && !failing(own)
}

// withStrain returns what was reported with that condition, of which an agent knows nothing: it sees a copy that runs.
func (j *Job) withStrain(reported []Condition) []Condition {
	if len(reported) == 0 {
		return reported
	}
	reported = slices.DeleteFunc(reported, func(c Condition) bool { return c.Reason == reasonStrained }) // an echo
	if c := j.strain(); c != nil && j.Strained() && j.Type != Delete {
		reported = slices.Insert(reported, 0, *c)
	}
	return reported
}

// Strain notes that the job must leave its place and fits nowhere else: it stays, degraded, until there is room. news
// says whether that, or its reason, is new.
func (j *Job) Strain(ctx context.Context, tx *store.Tx, reason string) (news bool, err error) {
	if c := j.strain(); j.Strained() && c != nil && c.Message == reason {
		return false, nil
	}
	before := j.State
	if j.State == Finished {
		if err := j.move(Degrade); err != nil {
			return false, err
		}
	}
	j.Excluded = []Target{j.Target}
	j.Conditions = slices.DeleteFunc(j.Conditions, func(c Condition) bool { return c.Reason == reasonStrained })
	j.Conditions = slices.Insert(j.Conditions, 0, Condition{
		Type: ConditionDegraded, Status: "True", ObservedGeneration: j.Epoch, LastTransitionTime: time.Now().UTC(),
		Reason: reasonStrained, Message: reason,
	})
	return true, j.keepFrom(ctx, tx, Degrade, before, reason)
}

// Relieve lets the job stay where it is.
func (j *Job) Relieve(ctx context.Context, tx *store.Tx, reason string) error {
	before := j.State
	j.Excluded = nil
	ours := j.strain() != nil
	j.Conditions = slices.DeleteFunc(j.Conditions, func(c Condition) bool { return c.Reason == reasonStrained })
	if ours && j.State == Degraded && !failing(j.Conditions) {
		if err := j.move(Finish); err != nil {
			return err
		}
	}
	return j.keepFrom(ctx, tx, Finish, before, reason)
}
