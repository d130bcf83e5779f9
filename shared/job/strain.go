package job

import (
	"context"
	"slices"
	"time"

	"github.com/littoral-project/littoral/shared/store"
)

// What marks the condition of a job that is in the wrong place. An agent knows nothing of it: it sees a copy that runs.
const (
	reasonStrained = "PolicyViolated" // it should leave, and there is nowhere else
	ReasonMisfit   = "DoesNotFit"     // an update asks for what neither its place has nor any other
)

// reasonAsReported is the reason of the condition Degraded of a job whose agent calls it so and does not say why.
const reasonAsReported = "AsReported"

func misplaced(c Condition) bool { return c.Reason == reasonStrained || c.Reason == ReasonMisfit }

// Strained reports whether the job should have left its place, since a policy is violated there, and found no other.
func (j *Job) Strained() bool { return j.Placed() && slices.Contains(j.Excluded, j.Target) }

// Misfits reports whether the job asks for what its place does not have.
func (j *Job) Misfits() bool { return j.Placed() && j.mark(ReasonMisfit) != nil }

// mark returns the condition of that reason, nil when there is none.
func (j *Job) mark(reason string) *Condition {
	i := slices.IndexFunc(j.Conditions, func(c Condition) bool { return c.Reason == reason })
	if i < 0 {
		return nil
	}
	return &j.Conditions[i]
}

// runsWell reports whether nothing is wrong with a degraded job but its place.
func (j *Job) runsWell() bool {
	return slices.ContainsFunc(j.Conditions, misplaced) && !failing(slices.DeleteFunc(slices.Clone(j.Conditions), misplaced))
}

// ours reports whether no agent has said so.
func ours(c Condition) bool { return misplaced(c) || c.Reason == reasonAsReported }

// withMarks returns what was reported with the marks of the job, and with one that says at least who calls it degraded,
// if someone does without a reason. Where nothing was reported, that says nothing about what there is, unless a job that
// failed is Finished now.
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

// explains reports whether the conditions say what is wrong.
func explains(conditions []Condition) bool {
	return failing(conditions) || slices.ContainsFunc(conditions, func(c Condition) bool {
		return c.Type == ConditionApplied && c.Status == "False"
	})
}

// asReported returns the condition of a job that its agent calls degraded, as it is or a new one.
func (j *Job) asReported() Condition {
	if c := j.mark(reasonAsReported); c != nil {
		return *c
	}
	return Condition{
		Type: ConditionDegraded, Status: "True", ObservedGeneration: j.Epoch, LastTransitionTime: time.Now().UTC(),
		Reason: reasonAsReported, Message: "the agent reported Degraded and gave no reason",
	}
}

// Strain notes that the job must leave its place and fits nowhere else: it stays, degraded, until there is room. news
// says whether that, or its reason, is new.
func (j *Job) Strain(ctx context.Context, tx *store.Tx, reason string) (news bool, err error) {
	if c := j.mark(reasonStrained); j.Strained() && c != nil && c.Message == reason {
		return false, nil
	}
	j.Excluded = []Target{j.Target}
	return true, j.setMark(ctx, tx, reasonStrained, reason)
}

// Relieve lets the job stay where it is.
func (j *Job) Relieve(ctx context.Context, tx *store.Tx, reason string) error {
	j.Excluded = nil
	return j.clearMark(ctx, tx, reasonStrained, reason)
}

// Misfit notes that the job asks for what neither its place has nor any other: it stays, degraded, until one has. news
// says whether that, or its reason, is new.
func (j *Job) Misfit(ctx context.Context, tx *store.Tx, reason string) (news bool, err error) {
	if c := j.mark(ReasonMisfit); c != nil && c.Message == reason {
		return false, nil
	}
	return true, j.setMark(ctx, tx, ReasonMisfit, reason)
}

// Fit notes that the job's place has what it asks for. Of one that nobody said otherwise of, it says nothing.
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
	if marked && j.State == Degraded && !failing(j.Conditions) {
		if err := j.move(Finish); err != nil {
			return err
		}
	}
	return j.keepFrom(ctx, tx, Finish, before, reason)
}
