// Package carry keeps the books of what an orchestrator does: it takes jobs under the lease that agents take them
// under, has them carried out, and reports by the same transitions (contracts/icos.md §1.6, §1.7).
//
// A crash anywhere leaves a job that is owned and in progress; the event that told of it is delivered again, and the
// next Sync finds it as well. What a newcomer gets wrong: nothing outside Postgres is touched within a transaction.
package carry

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/function"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Emits are the events that carrying out jobs may produce.
var Emits = []string{events.JobFinished, events.JobDegraded, events.ResourceChanged, events.ApplicationDeleted}

// Settings is read from the environment by envconfig.
type Settings struct {
	// Lease is how long a job is ours without a sign of life: longer than from one synchronisation to the end of the next, so
	// that none in progress lapses between them.
	Lease time.Duration `envconfig:"DEPLOY_LEASE" default:"600s"`
	// ID is whose jobs are: that of the functions of one orchestrator together.
	ID string `envconfig:"DEPLOYMENTMANAGER_ID"`
	// Wait is for how long a deployment watches what it has made before it leaves that to the next Sync.
	Wait time.Duration `envconfig:"DEPLOY_WAIT" default:"5s"`
	// Patience is how long a job for a cluster that nobody here knows is left to agents that ask for jobs.
	Patience time.Duration `envconfig:"DEPLOY_PATIENCE" default:"1m"`
}

// Carrier carries out jobs of one orchestrator.
type Carrier struct {
	DB           *store.DB
	Log          *slog.Logger
	Orchestrator orchestrator.Orchestrator // nil: none is set, and jobs are left to agents that ask for them
	Kind         string                    // that jobs call the orchestrator by: ocm, kubernetes
	Settings     Settings
}

// Open returns the carrier of a function: kind is what targets call the orchestrator, open makes it from its settings, and what its
// calls go through. It dials nobody.
func Open[Config any](
	env *function.Env, kind string,
	open func(Config, func(http.RoundTripper) http.RoundTripper) (orchestrator.Orchestrator, error),
) (*Carrier, error) {
	c := &Carrier{DB: env.DB, Log: env.Log, Kind: kind}
	var config Config
	if err := errors.Join(env.Config(&c.Settings), env.Config(&config)); err != nil {
		return nil, err
	}
	var err error
	c.Orchestrator, err = open(config, env.Observe.Transport)
	return c, err
}

// Work carries out the job that a JobReady event tells of.
func (c *Carrier) Work(ctx context.Context, e cloudevents.Event) error {
	about, err := events.Data[events.Job](e)
	if err != nil {
		return err
	}
	return c.execute(ctx, about, c.Settings.Wait)
}

// id returns whom jobs belong to that this carries out.
func (c *Carrier) id() string {
	if c.Settings.ID != "" {
		return c.Settings.ID
	}
	return "deploymentmanager-" + c.Kind
}

// poll is how often what was made is looked at while waiting.
const poll = 250 * time.Millisecond

// execute carries out the job that an event tells of. Errors are worth a repeat; whatever else is wrong stands in the
// job's conditions. A free job for a cluster that nobody here knows is left alone: it may be that of an agent that asks
// for its jobs. When none takes it, Sync says so.
func (c *Carrier) execute(ctx context.Context, about events.Job, wait time.Duration) error {
	if about.Orchestrator != c.Kind || c.Orchestrator == nil {
		return nil
	}
	j, err := job.Get(ctx, c.DB, about.ID)
	switch {
	case problem.KindOf(err) == problem.NotFound:
		return nil
	case err != nil:
		return err
	case !j.Placed(): // it has left the place that the event is about
		return nil
	case j.OwnerID != c.id():
		if known, err := c.Orchestrator.Knows(ctx, j.Cluster); err != nil || !known {
			return err
		}
	}
	return c.take(ctx, about, wait)
}

// take claims the job and carries it out.
func (c *Carrier) take(ctx context.Context, about events.Job, wait time.Duration) error {
	var j *job.Job
	err := c.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		var err error
		j, err = job.Claim(ctx, tx, about.ID, about.Epoch, c.id(), c.Settings.Lease)
		return err
	})
	if err != nil || j == nil {
		return err
	}
	return c.carry(ctx, j, wait)
}

// carry brings about what the job asks for, watches it for a while and reports what comes of it.
func (c *Carrier) carry(ctx context.Context, j *job.Job, wait time.Duration) error {
	err := c.do(ctx, j)
	var refusal *orchestrator.Refusal
	switch {
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
	case orchestrator.Failing(err) && ctx.Err() == nil: // said, and asked for again
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

// leaving asks for a repeat while the former copy goes, unless its cluster is away, which only Sync can wait out.
func (c *Carrier) leaving(ctx context.Context, j *job.Job) error {
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

// do has the orchestrator do what the job says.
func (c *Carrier) do(ctx context.Context, j *job.Job) error {
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

// stays reports whether the copy that a clean-up is about is left to become that of its successor. One whose removal has
// begun cannot: nothing is applied on top of it, so it has to go before the successor can come.
func (c *Carrier) stays(ctx context.Context, j *job.Job) (bool, error) {
	succeeded, err := c.succeeded(ctx, j)
	if err != nil || !succeeded {
		return false, err
	}
	s, err := c.Orchestrator.Observe(ctx, j)
	return !s.Leaving, err
}

// grace is how long a clean-up waits for its job to be placed anew.
const grace = 10 * time.Second

// succeeded reports whether the job whose copy a clean-up is to remove was placed in the same cluster again, and nobody
// else has taken it, who would make a copy of its own. Then the copy is not removed but becomes the new one: on a node
// that is lost, removing would not come to an end, and nothing could be put up under the same name until then. Right
// after a displacement that is not known yet, which is the error.
func (c *Carrier) succeeded(ctx context.Context, j *job.Job) (bool, error) {
	if j.Cleans == nil {
		return false, nil
	}
	heir, err := job.Get(ctx, c.DB, *j.Cleans)
	switch {
	case problem.KindOf(err) == problem.NotFound:
		return false, nil
	case err != nil:
		return false, err
	case heir.Placed():
		ours := heir.Orchestrator == j.Orchestrator && (heir.OwnerID == "" || heir.OwnerID == c.id())
		return ours && heir.Epoch > j.Epoch && heir.Cluster == j.Cluster && heir.Live(), nil
	case heir.State == job.Created && time.Since(j.CreatedAt) < grace:
		return false, problem.New(problem.Unavailable, "job %s is about to be placed anew; try again", heir.ID)
	}
	return false, nil
}

// watch looks at the copy until it has come to something, or for as long as wait. A removal is pressed on meanwhile.
func (c *Carrier) watch(ctx context.Context, j *job.Job, wait time.Duration) (*orchestrator.Status, error) {
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
			return &s, nil //nolint:nilerr // what was seen last is still worth reporting
		case <-timer.C:
		}
		if j.Type != job.Delete {
			continue
		}
		if err := c.do(ctx, j); problem.KindOf(err) == problem.Unavailable && !errors.Is(err, orchestrator.ErrSilent) {
			return nil, err
		}
	}
}

// report tells the books what was seen, unless the job has become other work meanwhile. When it has moved on to another
// decision, what was made for it is taken away again.
func (c *Carrier) report(ctx context.Context, j *job.Job, s *orchestrator.Status) error {
	if s.Silent != "" && ctx.Err() != nil { // it may be our own time that was up, which says nothing about the cluster
		return problem.Wrap(problem.Unavailable, ctx.Err(), "job %s in %s was not looked at in time", j.ID, j.Cluster)
	}
	state, conditions := s.Verdict(j)
	fenced, changed := false, false
	err := c.DB.Tx(context.WithoutCancel(ctx), func(ctx context.Context, tx *store.Tx) error {
		fenced, changed = false, false
		if j.Type == job.Delete {
			application.LockOfRemoval(tx, j.ID)
		}
		now, err := job.Lock(ctx, tx, j.ID)
		switch {
		case problem.KindOf(err) == problem.NotFound:
			fenced = true
			return nil
		case err != nil:
			return err
		case now.OwnerID != c.id() || now.Epoch != j.Epoch:
			fenced = true
			return nil
		case now.State == job.Created:
			return nil // whoever changed it has told of that
		case !sameWork(now, j):
			changed = true
			return nil
		}
		_, err = application.Report(ctx, tx, job.Report{
			ID: j.ID, OwnerID: c.id(), Type: j.Type, State: state, Epoch: j.Epoch, Resource: resource(j, conditions),
		}, c.lease(conditions))
		return err
	})
	switch {
	case err != nil:
		return err
	case changed:
		return c.settle(ctx, j)
	case !fenced, j.Type == job.Delete:
		return nil
	}
	c.Log.InfoContext(ctx, "fenced: the job has moved on", "job_id", j.ID, "epoch", j.Epoch)
	if err := c.Orchestrator.Remove(ctx, j); err != nil && problem.KindOf(err) == problem.Unavailable {
		return err
	}
	return nil
}

// lease is for how long a job is ours of which the conditions are said. One whose cluster nobody here knows is free at once
// for an agent that comes to serve it; until then we go on looking for the cluster.
func (c *Carrier) lease(conditions []job.Condition) time.Duration {
	if nowhere(conditions) {
		return 0
	}
	return c.Settings.Lease
}

// nowhere reports whether the conditions say that nobody here knows the cluster.
func nowhere(conditions []job.Condition) bool {
	return slices.ContainsFunc(conditions, func(c job.Condition) bool { return c.Reason == orchestrator.ReasonClusterNotFound })
}

// settle follows up what was written for a job that may have become other work meanwhile, under the same decision. Whoever
// carries that out may have been ahead of us, so that what we wrote lies over it: it is done once more.
func (c *Carrier) settle(ctx context.Context, written *job.Job) error {
	for {
		now, err := job.Get(ctx, c.DB, written.ID)
		switch {
		case problem.KindOf(err) == problem.NotFound:
			return nil
		case err != nil:
			return err
		case now.OwnerID != c.id(), now.Epoch != written.Epoch, now.State == job.Created, sameWork(now, written):
			return nil
		}
		if err := c.do(ctx, now); err != nil && !told(err) {
			return err
		}
		written = now
	}
}

// told reports whether an error is one that whoever has the job in hand says in its conditions.
func told(err error) bool {
	var refusal *orchestrator.Refusal
	return errors.As(err, &refusal) || errors.Is(err, orchestrator.ErrFenced) ||
		errors.Is(err, orchestrator.ErrLeaving) || errors.Is(err, orchestrator.ErrSilent)
}

// sameWork reports whether two readings of a job ask for the same. One remediation is not another of the same type.
func sameWork(a, b *job.Job) bool {
	return a.Type == b.Type && a.SubType == b.SubType && reflect.DeepEqual(a.Instruction, b.Instruction) &&
		slices.EqualFunc(a.Remediations, b.Remediations, func(a, b job.Remedy) bool { return a.ID == b.ID })
}

// resource is what the books keep of a copy. Where nobody here knows the cluster there is none to name: new content would
// then make a replacement of the job, which no agent that comes to serve the cluster can take.
func resource(j *job.Job, conditions []job.Condition) job.Resource {
	r := job.Resource{JobID: job.ID{UUID: j.ID}, Name: orchestrator.NameOf(j), Conditions: conditions}
	if !nowhere(conditions) {
		r.UUID = orchestrator.ResourceID(j)
	}
	return r
}
