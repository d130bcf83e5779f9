// Package orchestrator carries out jobs in clusters: what every kind of orchestrator has to do, the objects that a job
// comes to, and when they count as running.
//
// The objects, their names, labels and readiness are settled here, without I/O; the packages below it (ocm, kubernetes)
// bring them to a cluster, and package carry keeps the books. What a newcomer gets wrong: an orchestrator never decides
// the state of a job. It says what is there, and Status.Verdict is the same for all of them.
package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/problem"
)

// Orchestrator brings about what jobs ask for. Every method may be repeated: names derive from ids, so a repeat changes
// what is there and never makes a second one. An epoch older than the one that is there changes nothing.
type Orchestrator interface {
	// Knows reports whether jobs can be brought to the cluster at all.
	Knows(ctx context.Context, cluster string) (bool, error)

	// Apply makes the job's copy what the job asks for. It does not wait for pods. The error is a Refusal, ErrFenced,
	// ErrLeaving, ErrSilent, or one that a repeat may mend.
	Apply(ctx context.Context, j *job.Job) error

	// Remove takes away the copy that the job is about, the newer one of a later decision excepted. That takes time and
	// may take several goes; Observe says when it is gone. The errors are those of Apply.
	Remove(ctx context.Context, j *job.Job) error

	// Observe says how the copy is doing that the job is about.
	Observe(ctx context.Context, j *job.Job) (Status, error)

	// Copies lists all that is there of ours, with an Orchestrator that observes what was just read instead of asking
	// again. Places that do not answer, or refuse to, are left out.
	Copies(ctx context.Context) ([]Copy, Orchestrator, error)
}

// Errors that are no fault of the job.
var (
	ErrFenced        = errors.New("a newer decision is in place")
	ErrLeaving error = problem.New(problem.Unavailable, "the former copy is still being removed")
	ErrSilent  error = problem.New(problem.Unavailable, "the cluster does not answer")
)

// Refusal is the error for what a repeat would not mend: the place says no, and why.
type Refusal struct {
	Reason  string // one word, as Kubernetes writes reasons
	Message string
	Err     error // the cause, for the log only
}

func (r *Refusal) Error() string { return r.Reason + ": " + r.Message }

func (r *Refusal) Unwrap() error { return r.Err }

// Refuse returns a Refusal with a formatted message.
func Refuse(reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Known reads from the error of opening a cluster whether there is such a cluster.
func Known(err error) (bool, error) {
	var refusal *Refusal
	if errors.As(err, &refusal) { // for another reason, the job is to say so
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
	ReasonNameTaken       = "NameTaken"     // something is there by that name which is not ours to change
	ReasonUnknownKind     = "UnknownKind"   // the cluster has no such kind of objects, and the job does not bring it
	ReasonBadManifest     = "BadManifest"
	ReasonNotSupported    = job.ReasonNotSupported
	ReasonRetrying        = "Retrying" // the API server, or what it asks, fails
	ReasonMissing         = "Missing"
	ReasonOutdated        = "Outdated"
	ReasonNewerCopy       = "NewerCopy"                // it is of a decision that the books do not know, as after they were restored
	ReasonOverdue         = "ProgressDeadlineExceeded" // as a Deployment's controller calls it
	ReasonRemoved         = "Removed"
	ReasonLeaving         = "Terminating"
)

// Copy is what of a job is at a place.
type Copy struct {
	Record

	Cluster string
}

// Job returns a job that is about the copy, enough to remove it.
func (c *Copy) Job(orchestrator string) *job.Job {
	return &job.Job{
		ID: c.Subject, Component: c.Component, Namespace: c.Namespace, Epoch: c.Epoch, Type: job.Delete,
		Target: job.Target{Orchestrator: orchestrator, Cluster: c.Cluster},
	}
}

// Subject returns the id of the job whose copy the job is about: a clean-up is about another's.
func Subject(j *job.Job) uuid.UUID {
	if j.Cleans != nil {
		return *j.Cleans
	}
	return j.ID
}
