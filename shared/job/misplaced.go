package job

import (
	"context"
	"slices"
	"time"

	"github.com/littoral-project/littoral/shared/store"
)

// Misplaced is why a job should not be where it is.
type Misplaced string

// Why a job is misplaced. A job may be so for several reasons.
const (
	Violating Misplaced = "violating" // a policy is violated there, and it fits nowhere else
	TooLarge  Misplaced = "too-large" // an update asks for more than its place, or any other, has
)

// Reasons of the conditions that tell of it. They are ours: an agent sees only a copy that runs.
const (
	reasonViolating = "PolicyViolated"
	ReasonTooLarge  = "DoesNotFit"
)

var reasonOf = map[Misplaced]string{Violating: reasonViolating, TooLarge: ReasonTooLarge}

// reasonAsReported is the reason of the condition Degraded when an agent calls the job degraded without saying why;
// reasonAwaiting that of a job without a place.
const (
	reasonAsReported = "AsReported"
	reasonAwaiting   = "AwaitingForTarget"
)

func misplaced(c Condition) bool { return c.Reason == reasonViolating || c.Reason == ReasonTooLarge }

// IsMisplaced reports whether the job should not be where it is, for that reason.
func (j *Job) IsMisplaced(why Misplaced) bool { return j.Placed() && slices.Contains(j.Misplaced, why) }

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
	return len(j.Misplaced) > 0 && !explains(slices.DeleteFunc(slices.Clone(j.Conditions), misplaced))
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
	for _, why := range j.Misplaced {
		if c := j.mark(reasonOf[why]); c != nil && j.Type != Delete {
			marks = append(marks, *c)
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

// MarkMisplaced records that the job should leave its place but fits nowhere else: it stays, degraded, until there is
// room. news says whether that, or the reason, is new.
func (j *Job) MarkMisplaced(ctx context.Context, tx *store.Tx, why Misplaced, reason string) (news bool, err error) {
	if c := j.mark(reasonOf[why]); j.IsMisplaced(why) && c != nil && c.Message == reason {
		return false, nil
	}
	m := MarkMisplaced
	if j.State == Finished || j.State == Degraded {
		m = Degrade
	}
	before, err := j.move(m)
	if err != nil {
		return false, err
	}
	j.unmark(why)
	j.Misplaced = slices.Insert(j.Misplaced, 0, why)
	if why == Violating {
		j.Excluded = []Target{j.Target}
	}
	j.Conditions = slices.Insert(j.Conditions, 0, Condition{
		Type: ConditionDegraded, Status: "True", ObservedGeneration: j.Epoch, LastTransitionTime: time.Now().UTC(),
		Reason: reasonOf[why], Message: reason,
	})
	return true, j.save(ctx, tx, m, before, saved{lease: sameLease}, reason)
}

// ReleaseMisplaced ends MarkMisplaced: the job may stay where it is. It does nothing if that is not misplaced.
func (j *Job) ReleaseMisplaced(ctx context.Context, tx *store.Tx, why Misplaced, reason string) error {
	if !j.IsMisplaced(why) {
		return nil
	}
	j.unmark(why)
	if why == Violating {
		j.Excluded = nil
	}
	m := ReleaseMisplaced
	if j.State == Degraded && !explains(j.Conditions) {
		m = Finish
	}
	before, err := j.move(m)
	if err != nil {
		return err
	}
	return j.save(ctx, tx, m, before, saved{lease: sameLease}, reason)
}

func (j *Job) unmark(why Misplaced) {
	j.Misplaced = slices.DeleteFunc(j.Misplaced, func(w Misplaced) bool { return w == why })
	j.Conditions = slices.DeleteFunc(j.Conditions, func(c Condition) bool { return c.Reason == reasonOf[why] })
}
