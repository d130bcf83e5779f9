// Package orchestrator defines what every kind of orchestrator does, how what it deploys is called and marked, and what
// its status means for a job. It does no I/O, and knows nothing of Kubernetes.
//
// Package manifest makes Kubernetes objects of a job; the packages ocm and kubernetes bring them to clusters; package
// carry takes jobs and reports on them. What a newcomer gets wrong: an orchestrator
// never decides the state of a job. It reports what is there, and Status.Verdict derives the state, in the same way for
// all of them.
//
// "Copy" means what a job has put at one place: its objects in one cluster.
package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/problem"
)

// Orchestrator carries out jobs at some kind of place. Every method may be repeated: names derive from ids, so a repeat
// updates and never creates a second copy. A job with an older epoch than the existing copy changes nothing.
type Orchestrator interface {
	// Knows reports whether this orchestrator can reach the cluster at all.
	Knows(ctx context.Context, cluster string) (bool, error)

	// Apply makes the job's copy as the job describes it. It does not wait for pods. The error is a Refusal, ErrFenced,
	// ErrLeaving, ErrSilent, or one that a repeat may cure.
	Apply(ctx context.Context, j *job.Job) error

	// Remove removes the copy that the job is about, unless it already belongs to a later decision. That takes time and
	// may need several calls; Observe tells when it is gone. The errors are those of Apply.
	Remove(ctx context.Context, j *job.Job) error

	// Observe returns the status of the copy that the job is about.
	Observe(ctx context.Context, j *job.Job) (Status, error)

	// Copies lists all our copies, and returns an Orchestrator whose Observe uses what was just listed instead of
	// asking again. Clusters that do not answer or refuse are left out.
	Copies(ctx context.Context) ([]Copy, Orchestrator, error)
}

// Errors that are not the job's fault.
var (
	ErrFenced        = errors.New("a newer decision is in place")
	ErrLeaving error = problem.New(problem.Unavailable, "the former copy is still being removed")
	ErrSilent  error = problem.New(problem.Unavailable, "the cluster does not answer")
)

// ErrFailing says that the place, or what stands before it, cannot answer now (an API server's 5xx). Someone who only
// reads treats that like silence; a write is tried again first, since such failures are often over soon.
var ErrFailing = errors.New("the place fails now")

// Failed marks err as ErrFailing and leaves its text as it is.
func Failed(err error) error { return failed{err} }

type failed struct{ error }

func (f failed) Unwrap() error { return f.error }

func (f failed) Is(target error) bool { return target == ErrFailing } // this is the comparison

// Refusal is the error for a no that a repeat would not change, with its reason.
type Refusal struct {
	Reason  string // one CamelCase word, like the reasons of Kubernetes
	Message string
	Err     error // the cause, for the log only
}

func (r *Refusal) Error() string { return r.Reason + ": " + r.Message }

func (r *Refusal) Unwrap() error { return r.Err }

// Refuse returns a Refusal with a formatted message.
func Refuse(reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Known tells from the error of opening a cluster whether the cluster is known.
func Known(err error) (bool, error) {
	var refusal *Refusal
	if errors.As(err, &refusal) { // any other refusal is reported with the job
		return refusal.Reason != ReasonClusterNotFound, nil
	}
	return err == nil, err
}

// Reasons of refusals and of conditions.
const (
	ReasonClusterNotFound = "ClusterNotFound"
	ReasonClusterSilent   = job.ReasonOutOfReach
	ReasonNodeNotFound    = "NodeNotFound"
	ReasonApplyConflict   = "ApplyConflict" // another field manager holds a field that we would change
	ReasonNameTaken       = "NameTaken"     // an object of that name exists and is not ours
	ReasonUnknownKind     = "UnknownKind"   // the cluster does not have the kind, and the job does not define it
	ReasonBadManifest     = "BadManifest"
	ReasonQuotaExceeded   = "QuotaExceeded"
	ReasonDenied          = "Denied" // by a webhook that gives no reason
	ReasonNotSupported    = job.ReasonNotSupported
	ReasonRetrying        = "Retrying" // the API server, or a webhook that it calls, fails
	ReasonMissing         = "Missing"
	ReasonOutdated        = "Outdated"
	ReasonNewerCopy       = "NewerCopy"                // its epoch is later than any in the database, as after a restore
	ReasonOverdue         = "ProgressDeadlineExceeded" // as a Deployment's controller calls it
	ReasonRemoved         = "Removed"
	ReasonLeaving         = "Terminating"
)

// Copy identifies a copy of a job in a cluster.
type Copy struct {
	Record

	Cluster string
}

// Job returns a job that removes the copy.
func (c *Copy) Job(orchestrator string) *job.Job {
	return &job.Job{
		ID: c.Subject, Component: c.Component, Namespace: c.Namespace, Epoch: c.Epoch, Type: job.Delete,
		Target: job.Target{Orchestrator: orchestrator, Cluster: c.Cluster},
	}
}

// Subject returns the id of the job whose copy j is about: a clean-up is about the copy of another job.
func Subject(j *job.Job) uuid.UUID {
	if j.Cleans != nil {
		return *j.Cleans
	}
	return j.ID
}
