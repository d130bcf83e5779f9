package orchestrator

import (
	"fmt"
	"time"

	"github.com/littoral-project/littoral/shared/job"
)

// Status is what an orchestrator found out about a copy.
type Status struct {
	Silent  string // why the cluster cannot be asked now; empty = the fields below are known
	Failing string // why the cluster fails now, to be asked again; empty = the fields below are known
	Exists  bool   // some of the copy is there, perhaps being removed

	Record           // of the copy that is there
	Leaving bool     // it is being removed
	Stays   bool     // though, unless Apply or Remove is called once more
	Remains string   // what the removal waits for, as the end of a sentence; empty = unknown
	Applied bool     // the cluster has accepted all objects in their latest form
	Refused *Refusal // why it has not
	Objects []Health
}

// Health is the state of one object of a copy.
type Health struct {
	Object       string // kind and name
	Pods, Wanted int64  // that run, that should
	Ready        bool
	Failed       bool // waiting will not make it ready
	Timed        bool // its controller reports when waiting takes too long (a Deployment's progressDeadlineSeconds)
	Reason       string
	Message      string
}

// overdue is how long a copy may take until its job counts as Degraded: the default progress deadline of a Deployment.
// For other kinds no controller reports that pods wait in vain, for instance for room in a quota.
const overdue = 10 * time.Minute

// Outdated reports whether the copy is older than what the job asks for now.
func (s *Status) Outdated(j *job.Job) bool {
	want := RecordOf(j)
	return s.Epoch < want.Epoch || s.Epoch == want.Epoch && (s.Content != want.Content || s.Remedy != want.Remedy)
}

// stray explains a copy that is of a later decision than the job; "" for others. Normally the job was just read too
// early, and its report will be fenced. Such a copy persists only after the database was restored from a backup, and
// then nothing that the database asks for can be carried out.
func (s *Status) stray(j *job.Job) string {
	if !s.Exists || s.Epoch <= j.Epoch {
		return ""
	}
	return fmt.Sprintf("what is in %s is of epoch %d, and the database knows none after %d: if it was restored from a backup, "+
		"do what infra/README.md says under \"Backup and restore\"", j.Cluster, s.Epoch, j.Epoch)
}

// Verdict derives the job's state and conditions from what was found: Finished, Degraded, or Progressing while it may
// still become either.
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

// awaited returns an object that is not ready, preferably one whose controller has no deadline of its own; nil if all
// are ready.
func (s *Status) awaited() (waits *Health) {
	for i := range s.Objects {
		if h := &s.Objects[i]; !h.Ready && (waits == nil || waits.Timed && !h.Timed) {
			waits = h
		}
	}
	return waits
}

// removal is the verdict on a copy that is being removed.
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
	case s.Refused != nil && !s.Exists && s.Refused.Reason != ReasonClusterNotFound: // we may not look whether it is there
		c.set(job.ConditionAvailable, "Unknown", ReasonClusterSilent,
			"it goes when the cluster admits us: "+s.Refused.Reason+": "+s.Refused.Message)
		return job.Progressing, c.list
	case s.Refused != nil && s.Refused.Reason == ReasonClusterNotFound, !s.Exists, s.Epoch > j.Epoch:
		// A cluster that was taken from us is beyond our reach. To a clean-up, a newer copy is that of its successor.
		c.set(job.ConditionAvailable, "False", ReasonRemoved, "nothing of it is in "+j.Cluster)
		return job.Finished, c.list
	case s.Refused != nil:
		c.set(job.ConditionAvailable, "Unknown", s.Refused.Reason, s.Refused.Message)
		return job.Progressing, c.list
	}
	c.set(job.ConditionAvailable, "False", ReasonLeaving, "being removed from "+j.Cluster+s.Remains)
	return job.Progressing, c.list
}

// conditions collects the conditions of a job; one whose status has not changed keeps its transition time, unless it was
// about what the job asked for before it was taken now.
type conditions struct {
	job  *job.Job
	list []job.Condition
}

func (c *conditions) set(typ, status, reason, message string) {
	at := time.Now().UTC()
	former := c.job.State == job.Progressing && !c.job.Applied && c.job.Type != job.Delete
	if before := c.job.Condition(typ); before != nil && before.Status == status && !former {
		at = before.LastTransitionTime
	}
	c.list = append(c.list, job.Condition{
		Type: typ, Status: status, ObservedGeneration: c.job.Epoch, LastTransitionTime: at, Reason: reason, Message: message,
	})
}
