// Package deployer does what all deployment managers have in common: it takes jobs under the lease that agents take them
// under, has an orchestrator carry them out, and reports by the same transitions (shared/docs/contracts.md §1.6, §1.7).
//
// A crash anywhere leaves a job that is owned and in progress; the event about it is delivered again, and the next Sync
// finds it too. What a newcomer gets wrong: nothing outside Postgres is touched within a transaction.
package deployer

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/problem"
)

// Settings is read from the environment by envconfig.
type Settings struct {
	// Lease is how long we own a job without a sign of life. It must be longer than two ticks of the synchronisation,
	// or the lease of a job in progress would end between them.
	Lease time.Duration `envconfig:"DEPLOY_LEASE" default:"600s"`
	// ID is the owner of the jobs, the same for all functions of one orchestrator; empty = one made from Kind.
	ID string `envconfig:"DEPLOYMENTMANAGER_ID"`
	// Wait is how long a new copy is watched before that is left to the next Sync.
	Wait time.Duration `envconfig:"DEPLOY_WAIT" default:"5s"`
	// Patience is how long a job for an unknown cluster is left to agents that poll.
	Patience time.Duration `envconfig:"DEPLOY_PATIENCE" default:"1m"`
}

// Deployer carries out jobs of one orchestrator.
type Deployer struct {
	Jobs         Jobs
	Log          *slog.Logger
	Orchestrator orchestrator.Orchestrator // nil: none is configured, jobs are left to agents that poll
	Kind         string                    // as targets name the orchestrator: ocm, kubernetes
	Settings     Settings
}

// Work carries out the job that a JobReady event is about.
func (c *Deployer) Work(ctx context.Context, e cloudevents.Event) error {
	about, err := events.Data[events.Job](e)
	if err != nil {
		return err
	}
	return c.execute(ctx, about, c.Settings.Wait)
}

// id returns the owner id under which this carrier takes jobs.
func (c *Deployer) id() string {
	if c.Settings.ID != "" {
		return c.Settings.ID
	}
	return "deploymentmanager-" + c.Kind
}

// poll is the pause between two looks at a copy that is being watched.
const poll = 250 * time.Millisecond

// execute carries out the job of an event. An error asks for the event again; anything else that is wrong is reported
// in the job's conditions. A job that nobody owns, for a cluster that is unknown here, is left alone, since an agent
// that polls may serve that cluster. If none takes the job, Sync does, and reports the unknown cluster.
func (c *Deployer) execute(ctx context.Context, about events.Job, wait time.Duration) error {
	if about.Orchestrator != c.Kind || c.Orchestrator == nil {
		return nil
	}
	j, err := c.Jobs.Get(ctx, about.ID)
	switch {
	case problem.KindOf(err) == problem.NotFound:
		return nil
	case err != nil:
		return err
	case !j.Placed(): // it was taken from the place that the event is about
		return nil
	case j.OwnerID != c.id():
		if known, err := c.Orchestrator.Knows(ctx, j.Cluster); err != nil || !known {
			return err
		}
	}
	return c.claimAndDeploy(ctx, about, wait)
}

// claimAndDeploy claims the job and carries it out.
func (c *Deployer) claimAndDeploy(ctx context.Context, about events.Job, wait time.Duration) error {
	j, err := c.Jobs.Claim(ctx, about.ID, about.Epoch, c.id(), c.Settings.Lease)
	if err != nil || j == nil {
		return err
	}
	return c.deploy(ctx, j, wait)
}

// deploy does what the job asks for, watches the copy for a while and reports the result.
func (c *Deployer) deploy(ctx context.Context, j *job.Job, wait time.Duration) error {
	err := c.apply(ctx, j)
	var refusal *orchestrator.Refusal
	switch {
	case errors.Is(err, errKept): // for hours perhaps, which only Sync can wait
		return c.report(ctx, j, &orchestrator.Status{Exists: true, Leaving: true, Remains: ": " + errKept.Error()})
	case errors.As(err, &refusal):
		return c.report(ctx, j, &orchestrator.Status{Refused: refusal, Exists: true})
	case errors.Is(err, orchestrator.ErrSilent):
		return c.report(ctx, j, &orchestrator.Status{Silent: err.Error()})
	case errors.Is(err, orchestrator.ErrLeaving):
		if err := c.report(ctx, j, &orchestrator.Status{Exists: true, Leaving: true}); err != nil {
			return err
		}
		return c.leaving(ctx, j)
	case errors.Is(err, orchestrator.ErrFenced):
		c.Log.InfoContext(ctx, "an older decision left a newer copy alone", "job_id", j.ID, "epoch", j.Epoch)
	case errors.Is(err, orchestrator.ErrFailing) && ctx.Err() == nil: // reported, and the error asks for a repeat
		return errors.Join(err, c.report(ctx, j, &orchestrator.Status{Failing: err.Error(), Exists: true}))
	case err != nil:
		return err
	}
	s, err := c.watch(ctx, j, wait)
	if err != nil {
		return err
	}
	return c.report(ctx, j, s)
}

// leaving asks for a repeat while the former copy is being removed. If its cluster is silent, only Sync can wait that
// long, so the silence is reported instead.
func (c *Deployer) leaving(ctx context.Context, j *job.Job) error {
	s, err := c.Orchestrator.Observe(ctx, j)
	if err != nil || s.Silent == "" {
		return problem.New(
			problem.Unavailable,
			"the former copy of job %s in %s is still being removed; try again",
			j.ID,
			j.Cluster,
		)
	}
	return c.report(ctx, j, &s)
}

// apply calls the method of the orchestrator that the job needs.
func (c *Deployer) apply(ctx context.Context, j *job.Job) error {
	if refusal := orchestrator.Unsupported(j); refusal != nil {
		return refusal
	}
	if j.Type == job.Delete || j.Type == job.Update && j.SubType == string(job.Reallocate) {
		if stays, err := c.stays(ctx, j); err != nil || stays {
			return err
		}
		return c.Orchestrator.Remove(ctx, j)
	}
	return c.Orchestrator.Apply(ctx, j)
}

// stays reports whether the copy that a clean-up is about is kept to become the copy of its successor. Once its removal
// has begun it cannot be kept: nothing is applied on top of it, so it has to go first.
func (c *Deployer) stays(ctx context.Context, j *job.Job) (bool, error) {
	succeeded, err := c.succeeded(ctx, j)
	if err != nil || !succeeded {
		return false, err
	}
	s, err := c.Orchestrator.Observe(ctx, j)
	return !s.Leaving, err
}

// grace is how long a clean-up waits at least for its job to be placed again, also if nothing fits at first.
const grace = 10 * time.Second

// errKept says why a copy is not removed yet. Its removal would not end, and what gets a place in the cluster would wait for it.
var errKept = errors.New("its node is lost, so not before that is back or the component has another place")

// succeeded reports whether the job that a clean-up is about was placed in the same cluster again and is still ours to
// carry out. Then the copy is not removed but becomes the new one: on a lost node a removal would never end, and it
// would block the name for the successor. Until somebody has looked for the next place it is not known; then the error asks
// for a repeat. Where nothing fits, it is errKept for what is on a lost node.
func (c *Deployer) succeeded(ctx context.Context, j *job.Job) (bool, error) {
	if j.Cleans == nil {
		return false, nil
	}
	heir, err := c.Jobs.Get(ctx, *j.Cleans)
	switch {
	case problem.KindOf(err) == problem.NotFound:
		return false, nil
	case err != nil:
		return false, err
	case heir.Placed():
		ours := heir.Orchestrator == j.Orchestrator && (heir.OwnerID == "" || heir.OwnerID == c.id())
		sameEngine := heir.Instruction.Type == j.Instruction.Type // otherwise its objects are of another kind
		return ours && sameEngine && heir.Epoch > j.Epoch && heir.Cluster == j.Cluster && heir.Live(), nil
	case heir.State != job.Created || !heir.Live():
		return false, nil
	case !heir.Tried || time.Since(j.CreatedAt) < grace:
		return false, problem.New(problem.Unavailable, "job %s is about to be placed anew; try again", heir.ID)
	}
	lost, err := c.Jobs.OnLostNode(ctx, j.ID)
	if err == nil && lost {
		err = errKept
	}
	return false, err
}

// watch looks at the copy until its verdict is final, at most for wait. Meanwhile a removal is called again and again.
func (c *Deployer) watch(ctx context.Context, j *job.Job, wait time.Duration) (*orchestrator.Status, error) {
	until := time.Now().Add(wait)
	for {
		s, err := c.Orchestrator.Observe(ctx, j)
		if err != nil {
			return nil, err
		}
		if state, _ := s.Verdict(j); state != job.Progressing || s.Silent != "" || !time.Now().Add(poll).Before(until) {
			return &s, nil
		}
		timer := time.NewTimer(poll)
		select {
		case <-ctx.Done():
			timer.Stop()
			return &s, nil // the last status is still worth reporting
		case <-timer.C:
		}
		if j.Type != job.Delete {
			continue
		}
		if err := c.apply(ctx, j); problem.KindOf(err) == problem.Unavailable && !errors.Is(err, orchestrator.ErrSilent) {
			return nil, err
		}
	}
}

// report stores the result, unless the job has changed meanwhile. When it belongs to another decision by now, what was
// made for this one is removed again.
func (c *Deployer) report(ctx context.Context, j *job.Job, s *orchestrator.Status) error {
	if s.Silent != "" && ctx.Err() != nil { // perhaps only our own time is up, which says nothing about the cluster
		return problem.Wrap(problem.Unavailable, ctx.Err(), "job %s in %s was not looked at in time", j.ID, j.Cluster)
	}
	state, conditions := s.Verdict(j)
	outcome, err := c.Jobs.Report(context.WithoutCancel(ctx), j, job.Report{
		ID: j.ID, OwnerID: c.id(), Type: j.Type, State: state, Epoch: j.Epoch, Resource: resource(j, conditions),
	}, c.lease(conditions))
	switch {
	case err != nil:
		return err
	case outcome == Changed:
		return c.converge(ctx, j)
	case outcome != Fenced, j.Type == job.Delete:
		return nil
	}
	c.Log.InfoContext(ctx, "fenced: the job has moved on", "job_id", j.ID, "epoch", j.Epoch)
	if err := c.Orchestrator.Remove(ctx, j); err != nil && problem.KindOf(err) == problem.Unavailable {
		return err
	}
	return nil
}

// lease returns how long we own a job with these conditions. One whose cluster is unknown here is free at once, for an
// agent that may come to serve it; until then we go on looking for the cluster.
func (c *Deployer) lease(conditions []job.Condition) time.Duration {
	if nowhere(conditions) {
		return 0
	}
	return c.Settings.Lease
}

// nowhere reports whether the conditions say that the cluster is unknown here.
func nowhere(conditions []job.Condition) bool {
	return slices.ContainsFunc(conditions, func(c job.Condition) bool { return c.Reason == orchestrator.ReasonClusterNotFound })
}

// converge repeats the work if the job was changed under the same decision while written was being carried out. Whoever
// carries out the change may have been faster, so that our older content now lies over it.
func (c *Deployer) converge(ctx context.Context, written *job.Job) error {
	for {
		now, err := c.Jobs.Get(ctx, written.ID)
		switch {
		case problem.KindOf(err) == problem.NotFound:
			return nil
		case err != nil:
			return err
		case now.OwnerID != c.id(), now.Epoch != written.Epoch, now.State == job.Created, SameWork(now, written):
			return nil
		}
		if err := c.apply(ctx, now); err != nil && !isReported(err) {
			return err
		}
		written = now
	}
}

// reported reports whether the error is one that the carrier of the job reports in its conditions.
func isReported(err error) bool {
	var refusal *orchestrator.Refusal
	return errors.As(err, &refusal) || errors.Is(err, orchestrator.ErrFenced) ||
		errors.Is(err, orchestrator.ErrLeaving) || errors.Is(err, orchestrator.ErrSilent)
}

// resource describes the copy for a report. In an unknown cluster it has no UUID: with one, new content would make the
// job a replacement, which an agent that comes to serve the cluster could not take.
func resource(j *job.Job, conditions []job.Condition) job.Resource {
	r := job.Resource{Name: orchestrator.NameOf(j), Conditions: conditions}
	if !nowhere(conditions) {
		r.UUID = orchestrator.ResourceID(j)
	}
	return r
}
