package deployer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/problem"
)

const (
	batch   = 200 // jobs in one read
	abreast = 4   // clusters looked at in parallel; each takes memory
)

// Sync compares all our copies and jobs: it takes jobs whose event was lost, removes copies that a later decision has
// overtaken, reports changes and resumes unfinished work. Each of these steps has its share of the time, so that a slow
// cluster cannot use up that of the later ones.
func (c *Deployer) Sync(ctx context.Context) error {
	if c.Orchestrator == nil {
		return nil
	}
	missed := c.missed(ctx, 0)
	// List only now: an older list would lack what missed has just made.
	listing, cancel := share(ctx, 2)
	defer cancel()
	copies, seen, err := c.Orchestrator.Copies(listing)
	if err != nil {
		return errors.Join(missed, err)
	}
	return errors.Join(missed, c.removeOvertaken(ctx, copies), c.held(ctx, seen))
}

// share returns a context that ends after one of so many equal parts of the time left.
func share(ctx context.Context, parts int) (context.Context, context.CancelFunc) {
	end, ends := ctx.Deadline()
	if !ends {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/time.Duration(parts))
}

// Poll takes what may be taken now, and watches each for a while: what an agent does, whom no event wakes.
func (c *Deployer) Poll(ctx context.Context) error { return c.missed(ctx, c.Settings.Wait) }

// missed takes the jobs whose event did not arrive, and watches each of them for wait. There may be many, so Sync watches
// none; held sees their results.
func (c *Deployer) missed(ctx context.Context, wait time.Duration) error {
	ctx, cancel := share(ctx, 4)
	defer cancel()
	jobs, err := c.Jobs.Executable(ctx, c.Kind, c.id())
	faults := []error{err}
	for _, j := range jobs {
		switch {
		case ctx.Err() != nil:
			return errors.Join(append(faults, ctx.Err())...)
		case j.State != job.Created && j.OwnerID == c.id(): // held will look at it
		case j.State == job.Created && j.OwnerID == "" && time.Since(j.UpdatedAt) > c.Settings.Patience:
			faults = append(faults, c.claimAndDeploy(ctx, about(j), wait))
		default:
			faults = append(faults, c.execute(ctx, about(j), wait))
		}
	}
	return errors.Join(faults...)
}

// removeOvertaken removes the overtaken copies.
func (c *Deployer) removeOvertaken(ctx context.Context, copies []orchestrator.Copy) error {
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

// SyncOne compares one job and its clean-ups with what is there.
func (c *Deployer) SyncOne(ctx context.Context, subject uuid.UUID) error {
	if c.Orchestrator == nil {
		return nil
	}
	return c.compareAll(ctx, c.Orchestrator, "", &subject)
}

func about(j *job.Job) events.Job {
	return events.Job{ID: j.ID, ApplicationID: j.ApplicationID, Orchestrator: j.Orchestrator, Epoch: j.Epoch}
}

// held looks at every job that we own, several clusters in parallel. Each cluster gets an equal share of the time left.
func (c *Deployer) held(ctx context.Context, seen orchestrator.Orchestrator) error {
	clusters, err := c.Jobs.HeldIn(ctx, c.Kind, c.id())
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
			faults[i] = c.compareAll(its, seen, cluster, nil)
		})
	}
	all.Wait()
	return errors.Join(faults...)
}

// compareAll looks at the jobs that we own, one after another: those in cluster unless it is empty, and only subject and
// its clean-ups unless that is nil.
func (c *Deployer) compareAll(
	ctx context.Context, seen orchestrator.Orchestrator, cluster string, subject *uuid.UUID,
) error {
	var faults []error
	var after uuid.UUID
	for {
		jobs, more, err := c.Jobs.Held(ctx, c.Kind, c.id(), after, subject, cluster, batch)
		if err != nil {
			return errors.Join(append(faults, err)...)
		}
		for _, j := range jobs {
			if ctx.Err() != nil { // nobody answers any more
				err := problem.Wrap(problem.Unavailable, ctx.Err(), "not all jobs in %s were looked at in time", j.Cluster)
				return errors.Join(append(faults, err)...)
			}
			if j.State != job.Created {
				faults = append(faults, c.compare(ctx, seen, j))
			}
			after = j.ID
		}
		if !more {
			return errors.Join(faults...)
		}
	}
}

// compare compares a job with its copy.
func (c *Deployer) compare(ctx context.Context, seen orchestrator.Orchestrator, j *job.Job) error {
	s, err := seen.Observe(ctx, j)
	if err == nil && contradicts(j, &s) { // the listing may be older than the job: look again
		s, err = c.Orchestrator.Observe(ctx, j)
	}
	if err != nil {
		return err
	}
	waits := s.Leaving && !s.Stays
	carries := j.State == job.Progressing && (orchestrator.Unsupported(j) != nil || // it must be refused, whatever is there
		outdated(j, &s) && (!waits || j.Type == job.Delete))
	mends := j.State != job.Progressing && outdated(j, &s) && !waits
	if carries || mends {
		if stands, err := c.stands(ctx, j); err != nil || !stands {
			return err
		}
	}
	switch {
	case carries:
		return c.deploy(ctx, j, 0)
	case mends:
		return c.restore(ctx, j, &s)
	case j.State == job.Progressing:
		return c.report(ctx, j, &s)
	}
	return c.observe(ctx, j, &s)
}

// stands reports whether the job is still as it was read, which may be long ago when many were looked at before.
// Whoever has changed it has emitted an event.
func (c *Deployer) stands(ctx context.Context, j *job.Job) (bool, error) {
	now, err := c.Jobs.Get(ctx, j.ID)
	switch {
	case problem.KindOf(err) == problem.NotFound:
		return false, nil
	case err != nil:
		return false, err
	}
	return now.OwnerID == j.OwnerID && now.Epoch == j.Epoch && now.State == j.State && SameWork(now, j), nil
}

// outdated reports whether the copy is not what the job asks for. That holds for refused copies too: they may have former
// content, or have to be removed.
func outdated(j *job.Job, s *orchestrator.Status) bool {
	switch {
	case s.Silent != "", s.Refused != nil && !s.Exists:
		return false
	case j.Type == job.Delete:
		return s.Exists && s.Epoch <= j.Epoch // even if the removal has begun: it may need several calls
	}
	return !s.Exists || s.Outdated(j)
}

// contradicts reports whether the status contradicts the stored state of the job.
func contradicts(j *job.Job, s *orchestrator.Status) bool {
	state, _ := s.Verdict(j)
	return outdated(j, s) || j.State == job.Finished && state != job.Finished && s.Silent == ""
}

// restore restores a copy that somebody changed or removed, and retries one that was refused.
func (c *Deployer) restore(ctx context.Context, j *job.Job, s *orchestrator.Status) error {
	if j.State == job.Finished {
		reason, message := orchestrator.ReasonMissing, "somebody took it away from "+j.Cluster
		if s.Exists {
			reason, message = orchestrator.ReasonOutdated, "what is in "+j.Cluster+" is not what was asked for last"
		}
		reported := []job.Condition{{
			Type: job.ConditionAvailable, Status: "False", ObservedGeneration: j.Epoch, Reason: reason, Message: message,
		}}
		if fenced, err := c.storeConditions(ctx, j, reported); err != nil || fenced {
			return err
		}
		j.State, j.Conditions = job.Degraded, reported // so that the recovery counts as a change
	}
	err := c.Orchestrator.Apply(ctx, j)
	var refusal *orchestrator.Refusal
	switch {
	case errors.As(err, &refusal):
		return c.observe(ctx, j, &orchestrator.Status{Refused: refusal})
	case err != nil && isReported(err):
		return nil
	case err != nil:
		return err
	}
	if err := c.converge(ctx, j); err != nil {
		return err
	}
	now, err := c.Orchestrator.Observe(ctx, j)
	if err != nil {
		return err
	}
	return c.observe(ctx, j, &now)
}

// observe stores the conditions of a job that is not being worked on.
func (c *Deployer) observe(ctx context.Context, j *job.Job, s *orchestrator.Status) error {
	_, conditions := s.Verdict(j)
	_, err := c.storeConditions(ctx, j, conditions)
	return err
}

// storeConditions stores the conditions. fenced means that the job has changed meanwhile; whoever changed it has emitted an event.
func (c *Deployer) storeConditions(ctx context.Context, j *job.Job, conditions []job.Condition) (fenced bool, err error) {
	if j.State == job.Finished && same(j.Conditions, conditions) {
		return false, nil // nothing new: write nothing
	}
	err = c.Jobs.Observe(ctx, job.Observation{
		Job: j.ID, Resource: job.Resource{Name: orchestrator.NameOf(j), Conditions: conditions}, OwnerID: c.id(), Epoch: j.Epoch,
	}, c.lease(conditions))
	if kind := problem.KindOf(err); err != nil && (kind == problem.Conflict || kind == problem.NotFound) {
		return true, nil
	}
	return false, err
}

func same(a, b []job.Condition) bool {
	return slices.EqualFunc(a, b, func(a, b job.Condition) bool {
		return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
	})
}

// overtaken removes a copy that no decision wants any more and that no clean-up is about, as a crash or a network cut
// between two steps may leave it. It leaves a copy alone whose job is not in the database, and one outside the
// namespace of its application: whoever has rights in another namespace can make a Secret that looks like ours, and
// must not have us delete things for him.
func (c *Deployer) overtaken(ctx context.Context, copied orchestrator.Copy) error {
	j, err := c.Jobs.Get(ctx, copied.Subject)
	switch {
	case problem.KindOf(err) == problem.NotFound:
		return nil
	case err != nil:
		return err
	case copied.Namespace != j.Namespace:
		return nil
	case copied.Epoch > j.Epoch: // made by a decision that the database does not know; the next one may get the same number
		c.Log.WarnContext(ctx, "a copy is newer than the database, which was perhaps restored from a backup: see infra/README.md",
			"job_id", copied.Subject, "cluster", copied.Cluster, "epoch", copied.Epoch, "known", j.Epoch)
		return nil
	case copied.Epoch == j.Epoch && !j.Gone():
		return nil // it is the one
	case copied.Cluster == j.Cluster && !j.Gone() && (j.OwnerID == "" || j.OwnerID == c.id()):
		return nil // it is about to become the job's copy; another owner would make its own
	}
	open, _, err := c.Jobs.Held(ctx, c.Kind, c.id(), uuid.Nil, &copied.Subject, copied.Cluster, batch)
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
