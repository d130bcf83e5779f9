package orchestrator

import (
	"fmt"
	"time"

	"github.com/littoral-project/littoral/shared/job"
)

// Status is what an orchestrator says about a copy.
type Status struct {
	Silent  string // why nothing can be known now; empty = the rest is known
	Failing string // why the place does not do what it is asked for now, and is asked again; empty = the rest is known
	Exists  bool   // something of the copy is there, be it on its way out

	Record           // of the copy that is there
	Leaving bool     // it is being removed
	Remains string   // what that waits for, as the end of a sentence; empty = nobody here knows
	Applied bool     // the place has taken all objects as they were applied last
	Refused *Refusal // why it has not
	Objects []Health
}

// overdue is for how long a copy may be on its way before its job is Degraded: as long as a Deployment may, unless it says
// otherwise. Of other kinds no controller says that pods wait for what does not come, such as a quota with room.
const overdue = 10 * time.Minute

// Outdated reports whether what is there is not what the job asks for now.
func (s *Status) Outdated(j *job.Job) bool {
	want := RecordOf(j)
	return s.Epoch < want.Epoch || s.Epoch == want.Epoch && (s.Content != want.Content || s.Remedy != want.Remedy)
}

// stray says of a copy that it is of a later decision than the job, "" of others. While the books know every decision, it
// is the job that was read before the latest one, and what comes of it is fenced. Only where the books were restored from
// a backup does such a copy stay: nothing that they say can be brought about then.
func (s *Status) stray(j *job.Job) string {
	if !s.Exists || s.Epoch <= j.Epoch {
		return ""
	}
	return fmt.Sprintf("what is in %s is of epoch %d, and the database knows none after %d: if it was restored from a backup, "+
		"do what infra/README.md says under \"Restore from a backup\"", j.Cluster, s.Epoch, j.Epoch)
}

// Verdict is the state that a job comes to by what was seen: Finished or Degraded, or Progressing while it may still
// become either, with the conditions of its resource.
func (s *Status) Verdict(j *job.Job) (job.State, []job.Condition) {
	if j.Type == job.Delete {
		return s.removal(j)
	}
	c := conditions{job: j}
	switch {
	case s.Silent != "":
		c.set(job.ConditionAvailable, "Unknown", ReasonClusterSilent, s.Silent)
		return job.Progressing, c.list
	case s.Failing != "":
		c.set(job.ConditionProgressing, "True", ReasonRetrying, s.Failing)
		c.set(job.ConditionAvailable, "False", ReasonRetrying, s.Failing)
		return job.Progressing, c.list
	case s.stray(j) != "":
		c.set(job.ConditionApplied, "False", ReasonNewerCopy, s.stray(j))
		c.set(job.ConditionAvailable, "Unknown", ReasonNewerCopy, s.stray(j))
		c.set(job.ConditionDegraded, "True", ReasonNewerCopy, s.stray(j))
		return job.Degraded, c.list
	case s.Refused != nil:
		c.set(job.ConditionApplied, "False", s.Refused.Reason, s.Refused.Message)
		c.set(job.ConditionAvailable, "False", s.Refused.Reason, s.Refused.Message)
		c.set(job.ConditionDegraded, "True", s.Refused.Reason, s.Refused.Message)
		return job.Degraded, c.list
	case !s.Exists:
		c.set(job.ConditionAvailable, "False", ReasonMissing, "nothing of it is in "+j.Cluster)
		return job.Progressing, c.list
	case s.Leaving:
		c.set(job.ConditionAvailable, "False", ReasonLeaving, "the former copy in "+j.Cluster+" is still being removed"+s.Remains)
		return job.Progressing, c.list
	case !s.Applied:
		c.set(job.ConditionProgressing, "True", "AwaitingAgent", "handed to "+j.Cluster)
		c.set(job.ConditionAvailable, "False", "AwaitingAgent", j.Cluster+" has not applied it yet")
		return job.Progressing, c.list
	}
	c.set(job.ConditionProgressing, "True", "AsExpected", "")
	c.set(job.ConditionApplied, "True", "AsExpected", fmt.Sprintf("%d objects in %s", len(s.Objects), j.Cluster))
	var running, wanted int64
	for _, h := range s.Objects {
		running, wanted = running+h.Pods, wanted+h.Wanted
	}
	for _, h := range s.Objects {
		if h.Failed {
			c.set(job.ConditionAvailable, "False", h.Reason, h.Message)
			c.set(job.ConditionDegraded, "True", h.Reason, h.Message)
			return job.Degraded, c.list
		}
	}
	if h := s.awaited(); h != nil {
		c.set(job.ConditionAvailable, "False", h.Reason, h.Message)
		if since := c.list[len(c.list)-1].LastTransitionTime; h.Timed || time.Since(since) < overdue {
			return job.Progressing, c.list
		}
		c.set(job.ConditionDegraded, "True", ReasonOverdue, fmt.Sprintf(
			"%s, for more than %.0f minutes; its events and those of its pods in %s may say why",
			h.Message, overdue.Minutes(), j.Cluster))
		return job.Degraded, c.list
	}
	where := j.Node
	if where == "" {
		where = j.Cluster
	}
	c.set(job.ConditionAvailable, "True", "AsExpected", fmt.Sprintf("%d of %d pods run on %s", running, wanted, where))
	return job.Finished, c.list
}

// awaited is the first object that is not ready, one for which nobody else keeps the time where there is any; nil if all are.
func (s *Status) awaited() (waits *Health) {
	for i := range s.Objects {
		if h := &s.Objects[i]; !h.Ready && (waits == nil || waits.Timed && !h.Timed) {
			waits = h
		}
	}
	return waits
}

// removal is the verdict on a copy that is to go.
func (s *Status) removal(j *job.Job) (job.State, []job.Condition) {
	c := conditions{job: j}
	switch {
	case s.Silent != "":
		c.set(job.ConditionAvailable, "Unknown", ReasonClusterSilent, "it goes when the cluster is back: "+s.Silent)
		return job.Progressing, c.list
	case s.Failing != "":
		c.set(job.ConditionAvailable, "Unknown", ReasonRetrying, s.Failing)
		return job.Progressing, c.list
	case s.stray(j) != "" && j.Cleans == nil:
		c.set(job.ConditionAvailable, "Unknown", ReasonNewerCopy, s.stray(j))
		return job.Progressing, c.list
	case s.Refused != nil && !s.Exists && s.Refused.Reason != ReasonClusterNotFound: // nobody may look whether it is there
		c.set(job.ConditionAvailable, "Unknown", ReasonClusterSilent,
			"it goes when the cluster admits us: "+s.Refused.Reason+": "+s.Refused.Message)
		return job.Progressing, c.list
	case s.Refused != nil && s.Refused.Reason == ReasonClusterNotFound, !s.Exists, s.Epoch > j.Epoch:
		// What was in a cluster that was taken from us is out of our hands; to a clean-up, a newer copy is its successor's.
		c.set(job.ConditionAvailable, "False", ReasonRemoved, "nothing of it is in "+j.Cluster)
		return job.Finished, c.list
	case s.Refused != nil:
		c.set(job.ConditionAvailable, "Unknown", s.Refused.Reason, s.Refused.Message)
		return job.Progressing, c.list
	}
	c.set(job.ConditionAvailable, "False", ReasonLeaving, "being removed from "+j.Cluster+s.Remains)
	return job.Progressing, c.list
}

// conditions are those of a job's resource; one that has not changed keeps its time.
type conditions struct {
	job  *job.Job
	list []job.Condition
}

func (c *conditions) set(typ, status, reason, message string) {
	at := time.Now().UTC()
	if before := c.job.Condition(typ); before != nil && before.Status == status {
		at = before.LastTransitionTime
	}
	c.list = append(c.list, job.Condition{
		Type: typ, Status: status, ObservedGeneration: c.job.Epoch, LastTransitionTime: at, Reason: reason, Message: message,
	})
}
