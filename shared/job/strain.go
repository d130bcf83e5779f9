package job

import (
	"context"
	"slices"
	"time"

	"github.com/littoral-project/littoral/shared/store"
)

// Reasons of the conditions that mark a job as being in the wrong place. They are ours: an agent sees only a copy that
// runs.
const (
	reasonStrained = "PolicyViolated" // it should leave, but fits nowhere else
	ReasonMisfit   = "DoesNotFit"     // an update asks for more than its place, or any other, has
)

// reasonAsReported is the reason of the condition Degraded when an agent calls the job degraded without saying why.
const reasonAsReported = "AsReported"

func misplaced(c Condition) bool { return c.Reason == reasonStrained || c.Reason == ReasonMisfit }

// Strained reports whether the job should have left its place, where a policy is violated, but found no other.
func (j *Job) Strained() bool { return j.Placed() && slices.Contains(j.Excluded, j.Target) }

// Misfits reports whether the job asks for more than its place has.
func (j *Job) Misfits() bool { return j.Placed() && j.mark(ReasonMisfit) != nil }

// mark returns the condition with that reason; nil when there is none.
func (j *Job) mark(reason string) *Condition {
	i := slices.IndexFunc(j.Conditions, func(c Condition) bool { return c.Reason == reason })
	if i < 0 {
		return nil
	}
	return &j.Conditions[i]
}

// runsWell reports whether a degraded job is only in the wrong place.
func (j *Job) runsWell() bool {
	return slices.ContainsFunc(j.Conditions, misplaced) && !explains(slices.DeleteFunc(slices.Clone(j.Conditions), misplaced))
}

// ours reports whether the condition was set here and not by an agent.
func ours(c Condition) bool { return misplaced(c) || c.Reason == reasonAsReported }

// withMarks returns the reported conditions together with our marks on the job. If the job was called degraded without
// a reason, a condition says so. If no conditions were reported the former ones stay, except failures of a job that is
// Finished now.
func (j *Job) withMarks(reported []Condition, degraded bool) []Condition {
	reported = slices.DeleteFunc(slices.Clone(reported), ours) // an echo
	if len(reported) == 0 {
		reported = slices.DeleteFunc(slices.Clone(j.Conditions), func(c Condition) bool {
			return ours(c) || j.State == Finished && fails(c)
		})
	}
	if degraded && !explains(reported) {
		reported = append(reported, j.asReported())
	}
	var marks []Condition
	for _, c := range j.Conditions {
		if misplaced(c) && j.Type != Delete && (c.Reason == ReasonMisfit || j.Strained()) {
			marks = append(marks, c)
		}
	}
	return append(marks, reported...)
}

// explains reports whether some condition says what is wrong.
func explains(conditions []Condition) bool {
	return failing(conditions) || slices.ContainsFunc(conditions, func(c Condition) bool {
		return c.Type == ConditionApplied && c.Status == "False"
	})
}

// asReported returns the condition for a degradation without a reason: the present one if there is one.
func (j *Job) asReported() Condition {
	if c := j.mark(reasonAsReported); c != nil {
		return *c
	}
	return Condition{
		Type: ConditionDegraded, Status: "True", ObservedGeneration: j.Epoch, LastTransitionTime: time.Now().UTC(),
		Reason: reasonAsReported, Message: "the agent reported Degraded and gave no reason",
	}
}

// Strain records that the job must leave its place but fits nowhere else: it stays, degraded, until there is room. news
// says whether that, or the reason, is new.
func (j *Job) Strain(ctx context.Context, tx *store.Tx, reason string) (news bool, err error) {
	if c := j.mark(reasonStrained); j.Strained() && c != nil && c.Message == reason {
		return false, nil
	}
	j.Excluded = []Target{j.Target}
	return true, j.setMark(ctx, tx, reasonStrained, reason)
}

// Relieve ends Strain: the job may stay where it is.
func (j *Job) Relieve(ctx context.Context, tx *store.Tx, reason string) error {
	j.Excluded = nil
	return j.clearMark(ctx, tx, reasonStrained, reason)
}

// Misfit records that the job asks for more than its place, or any other, has: it stays, degraded, until some place has
// it. news says whether that, or the reason, is new.
func (j *Job) Misfit(ctx context.Context, tx *store.Tx, reason string) (news bool, err error) {
	if c := j.mark(ReasonMisfit); c != nil && c.Message == reason {
		return false, nil
	}
	return true, j.setMark(ctx, tx, ReasonMisfit, reason)
}

// Fit ends Misfit: the job's place has what it asks for. Without a Misfit it does nothing.
func (j *Job) Fit(ctx context.Context, tx *store.Tx) error {
	if !j.Misfits() {
		return nil
	}
	return j.clearMark(ctx, tx, ReasonMisfit, "it fits "+j.Target.String()+" again")
}

func (j *Job) setMark(ctx context.Context, tx *store.Tx, as, reason string) error {
	before := j.State
	if j.State == Finished {
		if err := j.move(Degrade); err != nil {
			return err
		}
	}
	j.Conditions = slices.DeleteFunc(j.Conditions, func(c Condition) bool { return c.Reason == as })
	j.Conditions = slices.Insert(j.Conditions, 0, Condition{
		Type: ConditionDegraded, Status: "True", ObservedGeneration: j.Epoch, LastTransitionTime: time.Now().UTC(),
		Reason: as, Message: reason,
	})
	return j.keepFrom(ctx, tx, Degrade, before, reason)
}

func (j *Job) clearMark(ctx context.Context, tx *store.Tx, as, reason string) error {
	before, marked := j.State, j.mark(as) != nil
	j.Conditions = slices.DeleteFunc(j.Conditions, func(c Condition) bool { return c.Reason == as })
	if marked && j.State == Degraded && !explains(j.Conditions) {
		if err := j.move(Finish); err != nil {
			return err
		}
	}
	return j.keepFrom(ctx, tx, Finish, before, reason)
}
