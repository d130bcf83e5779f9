package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/trace"
)

// agent is the deployment manager of one cluster, as in shared/docs/contracts.md §6 but without its faults: it respects the
// answer to promote, and names what it makes after the job.
type agent struct {
	fleet   *Fleet
	cluster *Cluster
	client  client
	log     *slog.Logger

	round   sync.Mutex // one round of work at a time
	trouble string     // last logged failure; a manager that is down must not fill the log
}

// atOnce is how many jobs an agent works on at the same time.
const atOnce = 16

// errAsleep ends the work of an agent whose cluster was cut off or drained meanwhile. Jobs that it has taken remain
// tasks, and continue when the cluster is back.
var errAsleep = errors.New("the cluster does not answer")

func newAgent(f *Fleet, c *Cluster) *agent {
	return &agent{
		fleet: f, cluster: c,
		log: f.log.With("cluster", c.Name, "agent_id", c.AgentID),
		client: client{
			base: f.options.API, http: f.options.Client(c.AgentID), orchestrator: c.Type, agentID: c.AgentID,
		},
	}
}

// run polls and reports until ctx ends.
func (a *agent) run(ctx context.Context) {
	var synced time.Time
	each(ctx, a.fleet.options.Poll, func() {
		err := a.poll(ctx)
		if now := a.fleet.options.Now(); err == nil && now.Sub(synced) >= syncEvery {
			synced = now
			err = a.sync(ctx)
		}
		a.logChange(ctx, err)
	})
}

// logChange logs a failure when it begins, when it changes and when it has ended.
func (a *agent) logChange(ctx context.Context, err error) {
	text := ""
	if err != nil && !errors.Is(err, errAsleep) {
		text = err.Error()
	}
	if text == a.trouble || ctx.Err() != nil {
		return
	}
	a.trouble = text
	if text == "" {
		a.log.InfoContext(ctx, "agent works again")
		return
	}
	a.log.WarnContext(ctx, "agent cannot work; it will try again", "error", text)
}

// Poll makes the agent of the cluster do one round of work: continue its tasks, then take jobs.
func (f *Fleet) Poll(ctx context.Context, cluster string) error {
	a, err := f.agentOf(cluster)
	if err != nil {
		return err
	}
	return a.poll(ctx)
}

// Sync makes the agent of the cluster report on everything that runs there.
func (f *Fleet) Sync(ctx context.Context, cluster string) error {
	a, err := f.agentOf(cluster)
	if err != nil {
		return err
	}
	return a.sync(ctx)
}

func (f *Fleet) agentOf(cluster string) (*agent, error) {
	c, err := f.findCluster(cluster)
	if err != nil {
		return nil, err
	}
	if a := f.agents[c.Name]; a != nil {
		return a, nil
	}
	return nil, problem.New(problem.Conflict, "the fleet was started without an API, so nothing works there")
}

func (a *agent) poll(ctx context.Context) error {
	a.round.Lock()
	defer a.round.Unlock()
	ctx = trace.Start(ctx, "")
	if a.asleep() {
		return errAsleep
	}
	resumed := a.each(a.tasks(), func(id string) error { return a.resume(ctx, id) })
	jobs, err := a.client.executable(ctx)
	if err != nil {
		return errors.Join(resumed, err)
	}
	var mine []string
	given := map[string]Job{}
	busy := a.tasks()
	for _, j := range jobs {
		if a.cluster.is(j.Targets.Cluster) && j.ID != "" && !slices.Contains(busy, j.ID) {
			mine = append(mine, j.ID)
			given[j.ID] = j
		}
	}
	taken := a.each(mine, func(id string) error { return a.claim(ctx, given[id]) })
	return errors.Join(resumed, taken, a.observe(ctx, a.changed()))
}

// each calls work for every id, several at a time, and returns the first failure.
func (a *agent) each(ids []string, work func(id string) error) error {
	var all sync.WaitGroup
	var mu sync.Mutex
	var first error
	slots := make(chan struct{}, atOnce)
	for _, id := range ids {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if err := work(id); err != nil {
				mu.Lock()
				first = cmp.Or(first, err)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return first
}

// claim asks for a job and carries it out if the agent gets it. The intent is stored first, so that after a kill between
// the answer and the work the task can be continued.
func (a *agent) claim(ctx context.Context, j Job) error {
	if err := a.change(func(at *clusterState) { at.Tasks[j.ID] = &task{Job: j} }); err != nil {
		return err
	}
	got, err := a.client.promote(ctx, j.ID)
	if err != nil {
		return err // it may be ours or not; resume finds out
	}
	if got != accepted {
		a.log.DebugContext(ctx, "job went to another", "job_id", j.ID)
		return a.drop(j.ID)
	}
	return a.resume(ctx, j.ID)
}

// resume continues an unfinished task. It reads the job once the agent owns it and carries that out: the job may have
// changed since it was listed, and whoever changes it from now on makes it promoted again. After a kill nobody knows
// whether promote got through, and asking for the job again could take what has since been given to another cluster.
func (a *agent) resume(ctx context.Context, id string) error {
	t := a.task(id)
	if t.Taken {
		return a.execute(ctx, id)
	}
	j, got, err := a.client.job(ctx, id)
	if err != nil {
		return err
	}
	if got != accepted || j.OwnerID != a.cluster.AgentID || j.State != stateProgressing {
		return a.drop(id) // if it is free or has changed, the next poll lists it
	}
	if err := a.change(func(at *clusterState) { at.Tasks[id] = &task{Job: j, Taken: true} }); err != nil {
		return err
	}
	return a.execute(ctx, id)
}

// execute carries out a taken job and reports each step. Every step may be repeated.
func (a *agent) execute(ctx context.Context, id string) error {
	delay := a.fleet.options.Delay
	t := a.task(id)
	if t.Job.Type == typeDelete {
		return a.stepwise(ctx, id, []step{{delay * 2 / 7, a.apply}, {0, a.finish}})
	}
	return a.stepwise(ctx, id, []step{
		{delay * 3 / 7, a.progressing},
		{delay * 2 / 7, a.apply},
		{0, a.applied},
		{delay * 2 / 7, a.finish},
	})
}

// step is a change to make after a delay; done ends the task.
type step struct {
	after time.Duration
	do    func(ctx context.Context, id string, t task) (done bool, err error)
}

func (a *agent) stepwise(ctx context.Context, id string, steps []step) error {
	for _, s := range steps {
		if err := wait(ctx, s.after); err != nil {
			return err
		}
		if a.asleep() {
			return errAsleep
		}
		if done, err := s.do(ctx, id, a.task(id)); done || err != nil {
			return err
		}
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (a *agent) progressing(ctx context.Context, id string, t task) (bool, error) {
	if t.Applied {
		return false, nil
	}
	return a.reportStep(ctx, id, t, stateProgressing, "Progressing")
}

func (a *agent) applied(ctx context.Context, id string, t task) (bool, error) {
	return a.reportStep(ctx, id, t, stateProgressing, "Progressing", "Applied")
}

// apply changes what runs, unless that was done before the last kill or a newer decision is there already. A newer copy
// stays; for a removal that makes no difference, as the older copy is gone either way.
func (a *agent) apply(ctx context.Context, id string, t task) (bool, error) {
	if t.Applied {
		return false, nil
	}
	admitted := true
	err := a.change(func(at *clusterState) {
		if admitted = at.admits(&t.Job); admitted {
			at.apply(&t.Job, a.fleet.options.Now())
		}
		at.Tasks[id].Applied = true
	})
	if err != nil {
		return true, err
	}
	if !admitted {
		a.log.InfoContext(ctx, "older decision left a newer copy alone", "job_id", id, "epoch", t.Job.Epoch)
		if t.Job.Type != typeDelete {
			return true, a.drop(id)
		}
	}
	return false, nil
}

// finish reports how it ended. A copy that is yet to become ready stays a task, which the next round continues.
func (a *agent) finish(ctx context.Context, id string, t task) (bool, error) {
	state, types := stateFinished, []string{"Progressing", "Applied", "Available"}
	if t.Job.Type != typeDelete && t.Job.SubType != reallocate {
		switch v := a.verdict(t.Job.ID); {
		case v.reason == reasonStarting:
			return true, nil
		case !v.running:
			state = stateDegraded
		}
	}
	if done, err := a.reportStep(ctx, id, t, state, types...); done || err != nil {
		return done, err
	}
	a.log.InfoContext(ctx, "job done", "job_id", id, "type", t.Job.Type, "state", state, "epoch", t.Job.Epoch)
	return true, a.change(func(at *clusterState) {
		delete(at.Tasks, id)
		if c := at.Copies[id]; c != nil && !c.Removed {
			c.Told = reasonOf(a.fleet.schedule(a.cluster).verdicts[id])
		}
	})
}

// reportStep reports, and acts on the answer: when the job has moved on, what was made for it is removed.
func (a *agent) reportStep(ctx context.Context, id string, t task, state string, types ...string) (bool, error) {
	got, err := a.client.update(ctx, &t.Job, state, a.resource(t.Job, types...))
	if err != nil || got == accepted {
		return false, err
	}
	a.log.InfoContext(ctx, "fenced: the job has moved on", "job_id", id, "epoch", t.Job.Epoch)
	return true, a.change(func(at *clusterState) {
		delete(at.Tasks, id)
		if t.Job.Type != typeDelete {
			at.fence(id, t.Job.Epoch)
		}
	})
}

// sync reports on every copy that has no task.
func (a *agent) sync(ctx context.Context) error {
	a.round.Lock()
	defer a.round.Unlock()
	ctx = trace.Start(ctx, "")
	if a.asleep() {
		return errAsleep
	}
	return a.observe(ctx, a.copies(func(*Copy) bool { return true }))
}

// changed lists the copies whose condition has changed since the last report.
func (a *agent) changed() []string {
	return a.copies(func(c *Copy) bool { return c.Told != reasonOf(a.fleet.schedule(a.cluster).verdicts[c.Job]) })
}

// observe reports the conditions of copies.
func (a *agent) observe(ctx context.Context, ids []string) error {
	return a.each(ids, func(id string) error {
		c, v := a.copy(id), a.verdict(id)
		if c == nil || a.asleep() {
			return nil
		}
		j := Job{ID: id, Epoch: c.Epoch, Type: typeCreate}
		got, err := a.client.observed(ctx, c.Epoch, a.resource(j, "Progressing", "Applied", "Available"))
		if err != nil {
			return err
		}
		if got == accepted && c.Told == reasonOf(v) {
			return nil
		}
		if got == accepted {
			return a.change(func(at *clusterState) {
				if now := at.Copies[id]; now != nil && now.Epoch == c.Epoch {
					now.Told = reasonOf(v)
				}
			})
		}
		return a.fenced(ctx, id, c.Epoch)
	})
}

// fenced finds out why a report was refused, since the job manager also refuses reports on a copy that it is about to
// have changed. The copy is removed when its job belongs to another agent, has a newer decision or no longer exists.
func (a *agent) fenced(ctx context.Context, id string, epoch int64) error {
	j, got, err := a.client.job(ctx, id)
	if err != nil {
		return err
	}
	if got == accepted && j.OwnerID == a.cluster.AgentID && j.Epoch == epoch {
		return nil
	}
	return a.change(func(at *clusterState) {
		if at.fence(id, epoch) {
			a.log.InfoContext(ctx, "fenced: the copy was removed", "job_id", id, "epoch", epoch)
		}
	})
}

// resource describes the job's copy with conditions of these types; Available is the copy's real condition.
func (a *agent) resource(j Job, types ...string) Resource {
	now := a.fleet.options.Now().UTC()
	c, v := a.copy(j.subject()), a.verdict(j.subject())
	gone := j.Type == typeDelete || j.SubType == reallocate
	if gone || c == nil || c.Epoch != j.Epoch {
		c = &Copy{
			Job: j.subject(), Epoch: j.Epoch, Component: cmp.Or(j.Instruction.ComponentName, j.Resource.Name),
			Node: j.Targets.Node, Changed: now, Generation: 1,
		}
	}
	r := Resource{JobID: j.ID, UUID: c.ResourceUUID(a.cluster.Name), Name: c.ResourceName()}
	for _, t := range types {
		condition := Condition{
			Type: t, Status: "True", ObservedGeneration: c.Generation, LastTransitionTime: c.Changed.UTC(),
			Reason: "AsExpected", Message: fmt.Sprintf("%s on %s/%s", r.Name, a.cluster.Name, c.Node),
		}
		switch {
		case gone:
			condition.Status, condition.Reason = "False", "Removed"
			condition.Message = fmt.Sprintf("%s is gone from %s", r.Name, a.cluster.Name)
		case t == "Available":
			condition.Reason, condition.Message = v.reason, v.message
			if !v.running {
				condition.Status = "False"
			}
		}
		r.Conditions = append(r.Conditions, condition)
	}
	return r
}

func reasonOf(v verdict) string { return v.reason + ": " + v.message }

// The remaining methods read and change the state of the agent's cluster under the fleet's lock.

func (a *agent) asleep() bool {
	a.fleet.mu.Lock()
	defer a.fleet.mu.Unlock()
	return len(a.fleet.awake(a.cluster)) == 0
}

func (a *agent) change(alter func(*clusterState)) error {
	return a.fleet.change(func() { alter(a.fleet.state.Clusters[a.cluster.Name]) })
}

func (a *agent) drop(id string) error {
	return a.change(func(at *clusterState) { delete(at.Tasks, id) })
}

// task returns the task in its present state; the zero task if it has ended.
func (a *agent) task(id string) task {
	a.fleet.mu.Lock()
	defer a.fleet.mu.Unlock()
	if t := a.fleet.state.Clusters[a.cluster.Name].Tasks[id]; t != nil {
		return *t
	}
	return task{}
}

func (a *agent) tasks() []string {
	a.fleet.mu.Lock()
	defer a.fleet.mu.Unlock()
	var ids []string
	for id := range a.fleet.state.Clusters[a.cluster.Name].Tasks {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, strings.Compare)
	return ids
}

func (a *agent) copy(id string) *Copy {
	a.fleet.mu.Lock()
	defer a.fleet.mu.Unlock()
	if c := a.fleet.state.Clusters[a.cluster.Name].Copies[id]; c != nil && !c.Removed {
		shown := *c
		return &shown
	}
	return nil
}

// copies lists the copies without a task for which keep returns true; keep is called under the lock.
func (a *agent) copies(keep func(*Copy) bool) []string {
	a.fleet.mu.Lock()
	defer a.fleet.mu.Unlock()
	at := a.fleet.state.Clusters[a.cluster.Name]
	var ids []string
	for id, c := range at.Copies {
		if !c.Removed && at.Tasks[id] == nil && keep(c) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, strings.Compare)
	return ids
}

func (a *agent) verdict(id string) verdict {
	a.fleet.mu.Lock()
	defer a.fleet.mu.Unlock()
	return a.fleet.schedule(a.cluster).verdicts[id]
}
