// Package bind binds pods that somebody else makes to the nodes that the plan of their group has for them: the part of a scheduler, for
// clusters without a deployment manager of ours. It works like any agent: it takes the job of a workload, binds its pod and reports;
// a pod whose job has moved is deleted, so that its controller makes another. What it does not know it leaves alone.
package bind

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/acm"
	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/groups"
)

const (
	// Scheduler is what pods name as theirs.
	Scheduler = "qos-scheduler"
	// Agent owns the jobs whose pods were bound here.
	Agent = "swm-bind"
)

// ErrGone says that a pod is no longer there, or was bound by somebody else.
var ErrGone = errors.New("the pod is gone, or bound already")

// Pod is one of a group.
type Pod struct {
	Namespace, Name, UID string
	Group                string
	Application          string // and Workload, where labels say so; else the name does
	Workload             string
}

// is reports whether the pod is one of the component, of a group or a CodecoApp of this name.
func (p Pod) is(component string) bool {
	if p.Application != "" && p.Workload != "" {
		return groups.Component(p.Application, p.Workload) == component
	}
	for _, base := range []string{component, p.Group + "-" + component} {
		if p.Name == base || strings.HasPrefix(p.Name, base+"-") {
			return true
		}
	}
	return false
}

// Cluster is where the pods are. It knows only those that name the Scheduler.
type Cluster interface {
	Unbound(ctx context.Context) ([]Pod, error)
	On(ctx context.Context, node string) ([]Pod, error)
	Bind(ctx context.Context, p Pod, node string) error // the error may be ErrGone
	Delete(ctx context.Context, p Pod) error
}

// Settings are those of the binder.
type Settings struct {
	Cluster string        `envconfig:"SWM_CLUSTER"` // as telemetry names the cluster with the pods; empty: nothing is bound
	Lease   time.Duration `envconfig:"DEPLOY_LEASE" default:"600s"`
}

// Binder binds the pods of a cluster.
type Binder struct {
	DB       *store.DB
	Log      *slog.Logger
	Cluster  Cluster
	Settings Settings
}

// Run looks at all pods that wait and at all jobs that have moved away. Again, it finds nothing to do.
func (b *Binder) Run(ctx context.Context) error {
	waiting, err := b.Cluster.Unbound(ctx)
	if err != nil {
		return problem.Wrap(problem.Unavailable, err, "%v", err)
	}
	byGroup := map[[2]string][]Pod{}
	for _, p := range waiting {
		at := [2]string{p.Namespace, p.Group}
		byGroup[at] = append(byGroup[at], p)
	}
	var failed []error
	for at, pods := range byGroup {
		failed = append(failed, b.group(ctx, at[0], at[1], pods))
	}
	return errors.Join(append(failed, b.close(ctx))...)
}

// group binds the pods of a group that has a plan.
func (b *Binder) group(ctx context.Context, namespace, name string, pods []Pod) error {
	id, err := b.runs(ctx, namespace, name)
	if err != nil || id == uuid.Nil {
		return err
	}
	a, err := application.Get(ctx, b.DB, id)
	if problem.KindOf(err) == problem.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	for _, p := range pods {
		j := jobOf(a.Jobs, p)
		if j == nil || j.Cluster != b.Settings.Cluster || j.OwnerID != "" && j.OwnerID != Agent {
			continue
		}
		if err := b.bind(ctx, j, p); err != nil {
			return err
		}
	}
	return nil
}

// runs finds the application of a group, or of a CodecoApp of that name.
func (b *Binder) runs(ctx context.Context, namespace, name string) (uuid.UUID, error) {
	s, err := groups.Get(ctx, b.DB, groups.Key{Kind: groups.ApplicationGroup, Namespace: namespace, Name: name})
	if err == nil && s.Application != nil {
		return *s.Application, nil
	}
	if err != nil && problem.KindOf(err) != problem.NotFound {
		return uuid.Nil, err
	}
	app, err := acm.Get(ctx, b.DB, acm.Key{Namespace: namespace, Name: name})
	if problem.KindOf(err) == problem.NotFound {
		return uuid.Nil, nil
	}
	if err != nil {
		return uuid.Nil, err
	}
	return app.Application.ID, nil
}

// jobOf is the job of the component with the longest name that the pod is of.
func jobOf(jobs []*job.Job, p Pod) *job.Job {
	var best *job.Job
	for _, j := range jobs {
		if j.Live() && j.Placed() && p.is(j.Component) && (best == nil || len(j.Component) > len(best.Component)) {
			best = j
		}
	}
	return best
}

// bind takes the job, binds the pod and reports. One that broke off in between is taken up again at the next look: the job is ours
// then, and the pod waits or is bound already.
func (b *Binder) bind(ctx context.Context, j *job.Job, p Pod) error {
	err := b.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		if j.State == job.Finished {
			return nil // another pod of it, or the one that follows one that went
		}
		return job.Claim(ctx, tx, j.ID, Agent, b.Settings.Lease)
	})
	if problem.KindOf(err) == problem.Conflict {
		b.Log.InfoContext(ctx, "a pod is left to who has its job", "pod", p.Namespace+"/"+p.Name, "job_id", j.ID)
		return nil
	}
	if err != nil {
		return err
	}
	if err := b.Cluster.Bind(ctx, p, j.Node); err != nil && !errors.Is(err, ErrGone) {
		return problem.Wrap(problem.Unavailable, err, "%v", err)
	}
	b.Log.InfoContext(ctx, "a pod was bound", "pod", p.Namespace+"/"+p.Name, "node", j.Node, "job_id", j.ID)
	return b.report(ctx, j.ID, "", resource(p, j.Node))
}

// resource is what is reported of a pod.
func resource(p Pod, node string) job.Resource {
	return job.Resource{UUID: p.UID, Name: p.Name, Conditions: []job.Condition{
		{Type: job.ConditionApplied, Status: "True", Reason: "Bound", Message: "pod " + p.Name + " is bound to " + node},
	}}
}

func (b *Binder) report(ctx context.Context, id uuid.UUID, typ job.Type, r job.Resource) error {
	err := b.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := application.Report(ctx, tx, job.Report{ID: id, OwnerID: Agent, Type: typ, State: job.Finished, Resource: r}, b.Settings.Lease)
		return err
	})
	if problem.KindOf(err) == problem.Conflict {
		return nil // it was displaced meanwhile: what follows from that comes as a job of its own
	}
	return err
}

const selectOpen = `select id from jobs where owner_id = $1 and cluster = $2 and state in ('Created', 'Progressing') order by id`

// close ends what is ours and open: a removal, or a binding that broke off before it was reported.
func (b *Binder) close(ctx context.Context) error {
	open, err := store.Collect(ctx, b.DB, "look for open jobs", pgx.RowTo[uuid.UUID], selectOpen, Agent, b.Settings.Cluster)
	if err != nil {
		return err
	}
	for _, id := range open {
		j, err := job.Get(ctx, b.DB, id)
		if problem.KindOf(err) == problem.NotFound {
			continue
		}
		if err != nil {
			return err
		}
		if j.Type == job.Delete {
			err = b.leave(ctx, j)
		} else {
			err = b.bound(ctx, j)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bound reports a job whose pod is bound.
func (b *Binder) bound(ctx context.Context, j *job.Job) error {
	pods, err := b.ofJob(ctx, j)
	if err != nil || len(pods) == 0 {
		return err
	}
	return b.report(ctx, j.ID, j.Type, resource(pods[0], j.Node))
}

// leave carries out a removal: the pods of a component that has moved are deleted where they were; those of a group that is gone are
// their maker's.
func (b *Binder) leave(ctx context.Context, j *job.Job) error {
	if j.Cleans != nil {
		pods, err := b.ofJob(ctx, j)
		if err != nil {
			return err
		}
		for _, p := range pods {
			if err := b.Cluster.Delete(ctx, p); err != nil {
				return problem.Wrap(problem.Unavailable, err, "%v", err)
			}
		}
		if len(pods) > 0 {
			return nil // the next look reports that they are gone
		}
	}
	err := b.DB.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
		return job.Claim(ctx, tx, j.ID, Agent, b.Settings.Lease)
	})
	if problem.KindOf(err) == problem.Conflict {
		return nil
	}
	if err != nil {
		return err
	}
	return b.report(ctx, j.ID, job.Delete, job.Resource{})
}

// ofJob are the pods of the job at its place.
func (b *Binder) ofJob(ctx context.Context, j *job.Job) ([]Pod, error) {
	pods, err := b.Cluster.On(ctx, j.Node)
	if err != nil {
		return nil, problem.Wrap(problem.Unavailable, err, "%v", err)
	}
	var own []Pod
	for _, p := range pods {
		id, err := b.runs(ctx, p.Namespace, p.Group)
		if err != nil {
			return nil, err
		}
		if id == j.ApplicationID && p.is(j.Component) {
			own = append(own, p)
		}
	}
	return own, nil
}
