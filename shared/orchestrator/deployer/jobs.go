package deployer

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/job"
)

// Jobs is where the jobs of one orchestrator are kept: in Postgres for the functions (package stored), behind the public API
// for an agent on a machine of its own (package polled). Each method that changes something does so in one step.
type Jobs interface {
	// Get reads a job; the error is NotFound when there is none.
	Get(ctx context.Context, id uuid.UUID) (*job.Job, error)

	// Executable lists what the owner may take now.
	Executable(ctx context.Context, kind, owner string) ([]*job.Job, error)

	// HeldIn names the clusters in which the owner has jobs.
	HeldIn(ctx context.Context, kind, owner string) ([]string, error)

	// Held lists the owner's jobs after an id: those in a cluster unless it is empty, and only a subject and its clean-ups
	// unless that is nil. more says that there are others after them.
	Held(
		ctx context.Context, kind, owner string, after uuid.UUID, subject *uuid.UUID, cluster string, most int,
	) (jobs []*job.Job, more bool, err error)

	// OnLostNode reports whether the node of the job counts as lost.
	OnLostNode(ctx context.Context, id uuid.UUID) (bool, error)

	// Claim takes the job for the owner if it is of the epoch and to be had; otherwise it returns nil.
	Claim(ctx context.Context, id uuid.UUID, epoch int64, owner string, lease time.Duration) (*job.Job, error)

	// Report stores the result of the work on j, unless the job has changed since it was read.
	Report(ctx context.Context, j *job.Job, result job.Report, lease time.Duration) (Outcome, error)

	// Observe stores what is seen of a copy that is not being worked on. The error is Conflict or NotFound when the job has
	// moved on.
	Observe(ctx context.Context, seen job.Observation, lease time.Duration) error
}

// Outcome is what became of a report.
type Outcome int

// Outcomes.
const (
	Stored  Outcome = iota
	Waiting         // the job is to be taken again, which an event or the next poll brings about
	Changed         // it was changed under the same decision, so what was carried out may lie over a newer content
	Fenced          // it belongs to another decision or owner, or to nobody any more
)

// SameWork reports whether two readings of a job ask for the same. Two remediations of one type are two different
// requests.
func SameWork(a, b *job.Job) bool {
	return a.Type == b.Type && a.SubType == b.SubType && reflect.DeepEqual(a.Instruction, b.Instruction) &&
		slices.EqualFunc(a.Remediations, b.Remediations, func(a, b job.Remedy) bool { return a.ID == b.ID })
}
