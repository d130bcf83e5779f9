// Package engine carries out jobs on the container engine of one machine, Docker's or Podman's, by the API of Docker's that
// both speak. A copy is one compose project: its containers, networks and volumes carry the id of the job.
//
// The engine itself is where it is written down what is to run: in the labels of an empty volume, the record of the copy,
// with the compose file. So whoever carries out jobs here keeps nothing, may be killed at any moment, and continues from
// what the engine has. Labels cannot be changed; a newer record is a volume with the next number, and since a volume of one
// name can be made once only, of two who write at the same time one is refused. What a newcomer gets wrong: the record says
// what is to run, and only the containers whether it does.
package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/google/uuid"
	"github.com/moby/moby/client"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/compose"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/orchestrator"
	"github.com/littoral-project/littoral/shared/orchestrator/composefile"
	"github.com/littoral-project/littoral/shared/problem"
)

// Engine is an orchestrator over one engine.
type Engine struct {
	client     *client.Client
	clusters   []string
	hostAccess bool
	authFile   string

	changing [64]sync.Mutex // one change of a copy at a time, by the last byte of its id
}

var _ orchestrator.Orchestrator = (*Engine)(nil)

// Options say what this engine is to the controller.
type Options struct {
	// Clusters are the names under which targets know this machine; the first is told in answers.
	Clusters []string
	// HostAccess lets services have the host's directories and namespaces, and rights beyond those of a container.
	HostAccess bool
	// AuthFile has the names and passwords for registries, as "docker login" writes it.
	AuthFile string
}

// New returns the orchestrator of the engine. Nothing is dialled.
func New(c *client.Client, o Options) *Engine {
	return &Engine{client: c, clusters: o.Clusters, hostAccess: o.HostAccess, authFile: o.AuthFile}
}

// Knows reports whether the cluster is this machine.
func (e *Engine) Knows(_ context.Context, cluster string) (bool, error) {
	return slices.Contains(e.clusters, cluster), nil
}

func (e *Engine) here(cluster string) error {
	if !slices.Contains(e.clusters, cluster) {
		return orchestrator.Refuse(orchestrator.ReasonClusterNotFound, "this machine is %s, not %s",
			strings.Join(e.clusters, ", "), cluster)
	}
	return nil
}

// change begins a change of a copy; the caller ends it.
func (e *Engine) change(subject uuid.UUID) (end func()) {
	one := &e.changing[int(subject[len(subject)-1])%len(e.changing)]
	one.Lock()
	return one.Unlock
}

// Apply writes down what the job asks for, and makes the containers so.
func (e *Engine) Apply(ctx context.Context, j *job.Job) error {
	defer e.change(orchestrator.Subject(j))()
	return classify(e.apply(ctx, j), j)
}

func (e *Engine) apply(ctx context.Context, j *job.Job) error {
	if err := e.here(j.Cluster); err != nil {
		return err
	}
	have, err := e.find(ctx, orchestrator.Subject(j))
	switch {
	case err != nil:
		return err
	case have.record.Epoch > j.Epoch:
		return orchestrator.ErrFenced
	case j.Instruction.Type != appmodel.TypeDocker:
		return orchestrator.Refuse(orchestrator.ReasonNotSupported,
			"component %s is of type %s, and a container engine runs compose files only", j.Component, j.Instruction.Type)
	}
	if want := orchestrator.RecordOf(j); have.number == 0 || have.leaving || have.record != want {
		p, err := e.render(ctx, j, have)
		if err != nil {
			return err
		}
		if err := e.write(ctx, have, want, p, j.Cluster); err != nil {
			return err
		}
	}
	if err := e.tidy(ctx, have); err != nil {
		return err
	}
	if err := e.converge(ctx, j, have); err != nil {
		return err
	}
	return e.settle(ctx, have)
}

// settle looks whether somebody else has changed the copy while it was made so, as another process may that follows a newer
// decision. Of one that was removed meanwhile, what was made since is taken away.
func (e *Engine) settle(ctx context.Context, have *copied) error {
	now, err := e.find(ctx, have.subject)
	switch {
	case err != nil:
		return err
	case now.number == have.number && !now.leaving:
		return nil
	case now.number == 0 || now.leaving:
		if err := e.erase(ctx, now); err != nil {
			return err
		}
	}
	return problem.New(problem.Unavailable, "component %s was changed at the same time; try again", have.record.Component)
}

// render makes the project that the job asks for, and refuses what may not or cannot run here.
func (e *Engine) render(ctx context.Context, j *job.Job, have *copied) (*compose.Project, error) {
	record, text := have.record, have.text
	if have.leaving {
		record, text = orchestrator.Record{}, ""
	}
	former, contents, scalings := record.Start(j, text)
	p, err := composefile.Build(ctx, j, former, contents, scalings)
	if err != nil {
		return nil, err
	}
	return p, e.admit(j, p.Of())
}

// Remove writes down that the copy is to go, and takes it away.
func (e *Engine) Remove(ctx context.Context, j *job.Job) error {
	defer e.change(orchestrator.Subject(j))()
	return classify(e.remove(ctx, j), j)
}

func (e *Engine) remove(ctx context.Context, j *job.Job) error {
	if err := e.here(j.Cluster); err != nil {
		return err
	}
	have, err := e.find(ctx, orchestrator.Subject(j))
	switch {
	case err != nil:
		return err
	case have.record.Epoch > j.Epoch:
		return orchestrator.ErrFenced
	}
	if have.exists() && !have.leaving {
		record := have.record
		record.Epoch, record.Component, record.Subject = j.Epoch, j.Component, orchestrator.Subject(j)
		if err := e.leave(ctx, have, record); err != nil {
			return err
		}
	}
	return e.erase(ctx, have)
}

// Copies lists what is written down, and what runs without it.
func (e *Engine) Copies(ctx context.Context) ([]orchestrator.Copy, orchestrator.Orchestrator, error) {
	all, err := e.all(ctx)
	if err != nil {
		if err = classify(err, &job.Job{}); errors.Is(err, orchestrator.ErrSilent) {
			return nil, e, nil // the jobs report it
		}
		return nil, nil, err
	}
	var copies []orchestrator.Copy
	for _, c := range all {
		copies = append(copies, orchestrator.Copy{Record: c.record, Cluster: c.cluster})
	}
	return copies, e, nil
}

// Keep starts what is written down and does not run, as after a reboot while no controller can be reached.
func (e *Engine) Keep(ctx context.Context) error {
	all, err := e.all(ctx)
	if err != nil {
		return err
	}
	var faults []error
	for _, c := range all {
		if c.number == 0 || c.leaving {
			continue
		}
		j := &job.Job{ID: c.subject, Component: c.record.Component}
		end := e.change(c.subject)
		now, err := e.find(ctx, c.subject)
		if err == nil && now.number > 0 && !now.leaving {
			err = e.converge(ctx, j, now)
		}
		end()
		faults = append(faults, classify(err, j))
	}
	return errors.Join(faults...)
}

// Reasons of our refusals that no other orchestrator has.
const (
	reasonImage  = "ImagePullFailed"
	reasonEngine = "EngineRefused"
)

// classify turns an error of the engine into what it means for a job.
func classify(err error, j *job.Job) error {
	var refusal *orchestrator.Refusal
	var known *problem.Error
	var network net.Error
	switch {
	case err == nil, errors.As(err, &refusal), errors.As(err, &known), errors.Is(err, orchestrator.ErrFenced):
		return err
	case client.IsErrConnectionFailed(err), errors.As(err, &network), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, context.Canceled), errors.Is(err, os.ErrDeadlineExceeded), strings.Contains(err.Error(), "EOF"):
		return fmt.Errorf("%w: %v", orchestrator.ErrSilent, err) //nolint:errorlint // the cause is for people only
	case errdefs.IsNotFound(err): // it has just gone, or is about to: look again
		return problem.Wrap(problem.Unavailable, err, "the engine has lost a part of component %s; try again", j.Component)
	}
	if errdefs.IsConflict(err) { // of names: somebody else makes it, or has something of that name
		return problem.Wrap(problem.Unavailable, orchestrator.Failed(err), "the engine does not take component %s now; try again", j.Component)
	}
	return &orchestrator.Refusal{Reason: reasonEngine, Message: "component " + j.Component + ": " + err.Error(), Err: err}
}
