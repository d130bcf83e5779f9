package carry

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

const (
	batch   = 200 // jobs that are read at once
	abreast = 4   // clusters that are looked at side by side; each takes memory
)

// Sync compares everything of ours with the books: it takes what nobody was told of, removes copies that a later decision
// has overtaken, reports what has changed and goes on with what was left in the middle. None of these keeps the time of
// those after it, however slow a cluster is.
func (c *Carrier) Sync(ctx context.Context) error {
	if c.Orchestrator == nil {
		return nil
	}
	missed := c.missed(ctx)
	// Listed only now: by an older list, what was just made would be missing.
	listing, cancel := share(ctx, 2)
	defer cancel()
	copies, seen, err := c.Orchestrator.Copies(listing)
	if err != nil {
		return errors.Join(missed, err)
	}
	return errors.Join(missed, c.tidy(ctx, copies), c.held(ctx, seen))
}

// share is a context with one part of so many of the time that is left.
func share(ctx context.Context, parts int) (context.Context, context.CancelFunc) {
	end, ends := ctx.Deadline()
	if !ends {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/time.Duration(parts))
}

// missed takes the jobs that nobody was told of. It watches none of them, since there may be many: the looks that follow
// see what becomes of them.
func (c *Carrier) missed(ctx context.Context) error {
	ctx, cancel := share(ctx, 4)
	defer cancel()
	jobs, err := job.Executable(ctx, c.DB, c.Kind, c.id())
	faults := []error{err}
	for _, j := range jobs {
		switch {
		case ctx.Err() != nil:
			return errors.Join(append(faults, ctx.Err())...)
		case j.State != job.Created && j.OwnerID == c.id(): // held will look at it
		case j.State == job.Created && j.OwnerID == "" && time.Since(j.UpdatedAt) > c.Settings.Patience:
			faults = append(faults, c.take(ctx, about(j), 0))
		default:
			faults = append(faults, c.execute(ctx, about(j), 0))
		}
	}
	return errors.Join(faults...)
}

// tidy removes the copies that were overtaken.
func (c *Carrier) tidy(ctx context.Context, copies []orchestrator.Copy) error {
	ctx, cancel := share(ctx, 4)
	defer cancel()
	var faults []error
	for _, copied := range copies {
		if ctx.Err() != nil {
			return errors.Join(append(faults, ctx.Err())...)
		}
		faults = append(faults, c.overtaken(ctx, copied))
	}
	return errors.Join(faults...)
}

// SyncOne compares one job, and what it left behind, with what is there.
func (c *Carrier) SyncOne(ctx context.Context, subject uuid.UUID) error {
	if c.Orchestrator == nil {
		return nil
	}
	return c.lookAll(ctx, c.Orchestrator, "", &subject)
}

func about(j *job.Job) events.Job {
	return events.Job{ID: j.ID, ApplicationID: j.ApplicationID, Orchestrator: j.Orchestrator, Epoch: j.Epoch}
}

// held looks at every job that is ours, in several clusters side by side. Each cluster has an equal share of the time
// that is left, so that a slow one uses up no other's.
func (c *Carrier) held(ctx context.Context, seen orchestrator.Orchestrator) error {
	clusters, err := job.HeldIn(ctx, c.DB, c.Kind, c.id())
	if err != nil {
		return err
	}
	faults := make([]error, len(clusters))
	slots := make(chan struct{}, abreast)
	var all sync.WaitGroup
	for i, cluster := range clusters {
		slots <- struct{}{}
		rounds := (len(clusters) - i + abreast - 1) / abreast
		all.Go(func() {
			defer func() { <-slots }()
			its, cancel := share(ctx, rounds)
			defer cancel()
			faults[i] = c.lookAll(its, seen, cluster, nil)
		})
	}
	all.Wait()
	return errors.Join(faults...)
}

// lookAll looks at the jobs that are ours, one after another; with a cluster at those in it, with a subject at that one
// and what it left behind.
func (c *Carrier) lookAll(
	ctx context.Context, seen orchestrator.Orchestrator, cluster string, subject *uuid.UUID,
) error {
	var faults []error
	var after uuid.UUID
	for {
		jobs, more, err := job.Held(ctx, c.DB, c.Kind, c.id(), after, subject, cluster, batch)
		if err != nil {
			return errors.Join(append(faults, err)...)
		}
		for _, j := range jobs {
			if ctx.Err() != nil { // nobody answers any more
				err := problem.Wrap(problem.Unavailable, ctx.Err(), "not all jobs in %s were looked at in time", j.Cluster)
				return errors.Join(append(faults, err)...)
			}
			if j.State != job.Created {
				faults = append(faults, c.look(ctx, seen, j))
			}
			after = j.ID
		}
		if !more {
			return errors.Join(faults...)
		}
	}
}

// look compares a job with its copy.
func (c *Carrier) look(ctx context.Context, seen orchestrator.Orchestrator, j *job.Job) error {
	s, err := seen.Observe(ctx, j)
	if err == nil && belied(j, &s) { // what was seen may be older than the books: once more
		s, err = c.Orchestrator.Observe(ctx, j)
	}
	if err != nil {
		return err
	}
	carries := j.State == job.Progressing && (orchestrator.Unsupported(j) != nil || // it is to be refused, whatever is there
		undone(j, &s) && (!s.Leaving || j.Type == job.Delete))
	mends := j.State != job.Progressing && undone(j, &s) && !s.Leaving
	if carries || mends {
		if stands, err := c.stands(ctx, j); err != nil || !stands {
			return err
		}
	}
	switch {
	case carries:
		return c.carry(ctx, j, 0)
	case mends:
		return c.mend(ctx, j, &s)
	case j.State == job.Progressing:
		return c.report(ctx, j, &s)
	}
	return c.observe(ctx, j, &s)
}

// stands reports whether the job is still what was read, perhaps long ago since many were looked at before it. Whoever
// has changed it has told of that.
func (c *Carrier) stands(ctx context.Context, j *job.Job) (bool, error) {
	now, err := job.Get(ctx, c.DB, j.ID)
	switch {
	case problem.KindOf(err) == problem.NotFound:
		return false, nil
	case err != nil:
		return false, err
	}
	return now.OwnerID == j.OwnerID && now.Epoch == j.Epoch && now.State == j.State && sameWork(now, j), nil
}

// undone reports whether what was seen is not what the job asks for. A copy that was refused may be of former content, or
// be one that is to go.
func undone(j *job.Job, s *orchestrator.Status) bool {
	switch {
	case s.Silent != "", s.Refused != nil && !s.Exists:
		return false
	case j.Type == job.Delete:
		return s.Exists && s.Epoch <= j.Epoch // also when it has begun: some need several goes
	}
	return !s.Exists || s.Outdated(j)
}

// belied reports whether what was seen speaks against what the books say of the job.
func belied(j *job.Job, s *orchestrator.Status) bool {
	state, _ := s.Verdict(j)
	return undone(j, s) || j.State == job.Finished && state != job.Finished && s.Silent == ""
}

// mend puts back what somebody took away, and tries again what was refused; the books hear of it when it makes a
// difference.
func (c *Carrier) mend(ctx context.Context, j *job.Job, s *orchestrator.Status) error {
	if j.State == job.Finished {
		reason, message := orchestrator.ReasonMissing, "somebody took it away from "+j.Cluster
		if s.Exists {
			reason, message = orchestrator.ReasonOutdated, "what is in "+j.Cluster+" is not what was asked for last"
		}
		told := []job.Condition{{
			Type: job.ConditionAvailable, Status: "False", ObservedGeneration: j.Epoch, Reason: reason, Message: message,
		}}
		if fenced, err := c.tell(ctx, j, told); err != nil || fenced {
			return err
		}
		j.State, j.Conditions = job.Degraded, told // so that it makes a difference when it is back
	}
	err := c.Orchestrator.Apply(ctx, j)
	var refusal *orchestrator.Refusal
	switch {
	case errors.As(err, &refusal):
		return c.observe(ctx, j, &orchestrator.Status{Refused: refusal})
	case err != nil && told(err):
		return nil
	case err != nil:
		return err
	}
	if err := c.settle(ctx, j); err != nil {
		return err
	}
	now, err := c.Orchestrator.Observe(ctx, j)
	if err != nil {
		return err
	}
	return c.observe(ctx, j, &now)
}

// observe tells the books how the copy of a job is doing that is not being worked on.
func (c *Carrier) observe(ctx context.Context, j *job.Job, s *orchestrator.Status) error {
	_, conditions := s.Verdict(j)
	_, err := c.tell(ctx, j, conditions)
	return err
}

// tell has the books take the conditions. It is fenced when the job has moved on meanwhile, of which somebody was told.
func (c *Carrier) tell(ctx context.Context, j *job.Job, conditions []job.Condition) (fenced bool, err error) {
	if j.State == job.Finished && same(j.Conditions, conditions) {
		return false, nil // a healthy system is quiet
	}
	err = c.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := application.Observe(ctx, tx, job.Status{
			Resource: job.Resource{JobID: job.ID{UUID: j.ID}, Name: orchestrator.NameOf(j), Conditions: conditions},
			OwnerID:  c.id(), Epoch: j.Epoch,
		}, c.lease(conditions))
		return err
	})
	if kind := problem.KindOf(err); err != nil && (kind == problem.Conflict || kind == problem.NotFound) {
		return true, nil
	}
	return false, err
}

func same(a, b []job.Condition) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Type != b[i].Type || a[i].Status != b[i].Status || a[i].Reason != b[i].Reason ||
			a[i].Message != b[i].Message {
			return false
		}
	}
	return true
}

// overtaken removes a copy that no decision stands behind any more and that no clean-up is about, as a crash or a cut
// between two steps may leave it. A copy whose job the books do not know is somebody else's, and so is one outside the
// namespace of its application: who has rights there may claim one, but is not done his will by ours.
func (c *Carrier) overtaken(ctx context.Context, copied orchestrator.Copy) error {
	j, err := job.Get(ctx, c.DB, copied.Subject)
	switch {
	case problem.KindOf(err) == problem.NotFound:
		return nil
	case err != nil:
		return err
	case copied.Namespace != j.Namespace:
		return nil
	case copied.Epoch > j.Epoch: // no decision that the books know made it, and the next one may come to the same number
		c.Log.WarnContext(ctx, "a copy is newer than the database, which was perhaps restored from a backup: see infra/README.md",
			"job_id", copied.Subject, "cluster", copied.Cluster, "epoch", copied.Epoch, "known", j.Epoch)
		return nil
	case copied.Epoch == j.Epoch && !j.Gone():
		return nil // it is the one
	case copied.Cluster == j.Cluster && !j.Gone() && (j.OwnerID == "" || j.OwnerID == c.id()):
		return nil // it is about to become it; another who has taken the job makes one of its own
	}
	open, _, err := job.Held(ctx, c.DB, c.Kind, c.id(), uuid.Nil, &copied.Subject, copied.Cluster, batch)
	if err != nil {
		return err
	}
	for _, cleanup := range open {
		if cleanup.Type == job.Delete {
			return nil
		}
	}
	c.Log.InfoContext(ctx, "removing a copy that was overtaken", "job_id", copied.Subject, "cluster", copied.Cluster,
		"epoch", copied.Epoch)
	err = c.Orchestrator.Remove(ctx, copied.Job(c.Kind))
	if errors.Is(err, orchestrator.ErrFenced) || errors.Is(err, orchestrator.ErrSilent) {
		return nil
	}
	return err
}
