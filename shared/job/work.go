package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// DefaultLease is how long an agent owns a job without renewing it (shared/docs/contracts.md §14).
const DefaultLease = 300 * time.Second

// maxName bounds the names of agents and resources, in bytes. Both are in indexes, which do not take text of any
// length: a job taken by an agent with a longer name could not be stopped or changed any more.
const maxName = 1024

// named checks the name of an agent or a resource.
func named(faults *problem.Faults, path, name string) {
	if len(name) > maxName {
		faults.Add(path, 0, "has more than %d bytes", maxName)
	}
}

// claimJob is all of promote: one conditional update, so of many agents exactly one wins. It takes a job that is free or
// addressed to the caller ($5: the states it may be in), or renews the caller's lease, or takes over a job whose lease
// has lapsed ($6: the states), raising the epoch so that the former owner is fenced. $7: the caller tells copies apart
// by epoch, so it may take the job before it has removed its former copy. It also takes what its owner does not know of
// ($8: the states, $9: DefaultLease). A clean-up keeps its epoch, which says what it removes.
var claimJob = `with old as (select id, state, owner_id, lease_until from jobs where id = $1 for update)
update jobs j set state = $4, owner_id = $2, lease_until = now() + $3::interval, updated_at = now(),
  taken_at = coalesce(j.taken_at, now()), applied = j.applied and old.state = $4 and old.owner_id = $2,
  epoch = j.epoch + case when old.owner_id in ('', $2) or j.cleans is not null then 0 else 1 end
from old, applications a where j.id = old.id and a.id = j.application_id and (` + acts + `) and j.cluster <> '' and (old.owner_id = $2 or not ` + othersPlace + `) and ($7 or not ` + ownLeft + `) and (
  (old.state = any($5) and (old.owner_id = $2 or (old.owner_id = '' and j.type = 'CreateDeployment')))
  or (old.state = $4 and old.owner_id = $2)
  or (old.state = any($6) and j.type = 'CreateDeployment' and old.lease_until < now())
  or (old.state = any($8) and ` + stray("$9") + `))
returning j.id, j.application_id, j.component, j.type, j.cluster, j.node, j.state, old.state, old.owner_id`

// Claim makes the agent the owner of the job under a lease. Repeating it renews the lease. The error is NotFound,
// Invalid, or Conflict for everyone but the winner.
func Claim(ctx context.Context, tx *store.Tx, id uuid.UUID, agent string, lease time.Duration) error {
	var faults problem.Faults
	if agent == "" {
		faults.Add("owner_id", 0, "is required: it names the agent")
	}
	named(&faults, "owner_id", agent)
	if err := faults.Err("the agent cannot take a job"); err != nil {
		return err
	}
	return claim(ctx, tx, id, agent, lease, false)
}

func claim(ctx context.Context, tx *store.Tx, id uuid.UUID, agent string, lease time.Duration, fenced bool) error {
	var claimed Job // what history needs of it
	var before State
	var formerly string
	promote, takeOver := transitionOf(Promote), transitionOf(TakeOver)
	err := tx.QueryRow(ctx, claimJob, id, agent, lease, promote.to, promote.from, takeOver.from, fenced, transitionOf(Adopt).from, DefaultLease).Scan(
		&claimed.ID, &claimed.ApplicationID, &claimed.Component, &claimed.Type, &claimed.Target.Cluster, &claimed.Target.Node,
		&claimed.State, &before, &formerly)
	if errors.Is(err, pgx.ErrNoRows) {
		j, err := Get(ctx, tx, id)
		if err != nil {
			return err
		}
		return refuseClaim(ctx, tx, j, agent)
	}
	if err != nil {
		return fmt.Errorf("promote: %w", err)
	}
	if formerly == agent && before == Progressing {
		return nil // only the lease has moved
	}
	move, message := Promote, fmt.Sprintf("%s took it for %s", agent, lease)
	if claimed.Type == Delete {
		message = fmt.Sprintf("%s took it, to remove it from %s", agent, claimed.Target)
	}
	switch {
	case formerly == "" || formerly == agent:
	case before == Created || claimed.Type != Create:
		move, message = Adopt, fmt.Sprintf("%s took it over: %s does not serve %s and had left it alone", agent, formerly, claimed.Target)
	default:
		move, message = TakeOver, fmt.Sprintf("%s took it over: the lease of %s had run out", agent, formerly)
	}
	return claimed.record(ctx, tx, move, before, message)
}

const selectOwnLeft = `select exists (select 1 from jobs j where j.id = $1 and ` + ownLeft + `)`

func refuseClaim(ctx context.Context, tx *store.Tx, j *Job, agent string) error {
	var left bool
	if err := tx.QueryRow(ctx, selectOwnLeft, j.ID, agent).Scan(&left); err != nil {
		return fmt.Errorf("look for a former copy: %w", err)
	}
	switch {
	case left:
		return problem.New(problem.Conflict, "%s has to remove its former copy of job %s from %s first", agent, j.ID, j.Target)
	case !j.Placed():
		return problem.New(problem.Conflict, "job %s has no place yet", j.ID)
	case j.OwnerID != "":
		return problem.New(problem.Conflict, "job %s is %s and belongs to %s", j.ID, j.State, j.OwnerID)
	}
	if j.State == Created {
		return problem.New(problem.Conflict, "job %s is for %s, which is another agent's", j.ID, j.Target)
	}
	return problem.New(problem.Conflict, "job %s is %s; only a job in state %s can be promoted", j.ID, j.State, Created)
}

// Release makes a job of the agent free for the next one that polls (oldest contract: unlock).
func Release(ctx context.Context, tx *store.Tx, id uuid.UUID, agent string) error {
	j, err := Lock(ctx, tx, id)
	if err != nil {
		return err
	}
	if err := j.fence(agent, 0); err != nil {
		return err
	}
	if j.State != Progressing || j.Type != Create {
		return problem.New(problem.Conflict, "job %s is %s %s; only a creation in progress can be given back", id, j.State, j.Type)
	}
	before, err := j.move(GiveBack)
	if err != nil {
		return err
	}
	j.OwnerID = ""
	j.Epoch++
	if err := j.save(ctx, tx, GiveBack, before, saved{}, agent+" gave it back"); err != nil {
		return err
	}
	return j.ready(ctx, tx)
}

// fence refuses anyone but the owner of the job at its epoch; epoch 0 means not given.
func (j *Job) fence(agent string, epoch int64) error {
	switch {
	case j.OwnerID == "" && j.State == Created:
		return problem.New(problem.Conflict, "job %s is %s and nobody has taken it (epoch %d)", j.ID, j.State, j.Epoch)
	case j.OwnerID == "":
		return problem.New(problem.Conflict, "job %s is %s and nobody has it (epoch %d)", j.ID, j.State, j.Epoch)
	case agent != j.OwnerID:
		return problem.New(problem.Conflict, "job %s belongs to %q, not to %q (epoch %d)", j.ID, j.OwnerID, agent, j.Epoch)
	case epoch != 0 && epoch != j.Epoch:
		return problem.New(problem.Conflict, "job %s has moved on to epoch %d; epoch %d is fenced", j.ID, j.Epoch, epoch)
	}
	return nil
}

// Work stores a report of the owner: how far it has come and what the orchestrator says. A repeated report changes
// nothing. A report on content that was replaced before the job was taken, or on a place that the job had left before,
// puts the job back for its owner. The error is NotFound, Invalid, or Conflict for a fenced owner and for a report on
// other work.
func Work(ctx context.Context, tx *store.Tx, r Report, lease time.Duration) (*Job, error) {
	var faults problem.Faults
	named(&faults, "resource.resource_uuid", r.Resource.UUID)
	r.Resource.Conditions = clean(&faults, "resource.conditions", r.Resource.Conditions, time.Now().UTC())
	move := moveOf(&faults, r.State)
	if err := faults.Err("the report is not valid"); err != nil {
		return nil, err
	}
	j, err := Lock(ctx, tx, r.ID)
	if err != nil {
		return nil, err
	}
	agent := r.OwnerID
	if caller := auth.From(ctx); agent == "" {
		agent = caller.AgentID
		if agent == "" {
			agent = caller.Subject
		}
	}
	if j.removedBy(r) {
		return j, nil
	}
	if err := j.fence(agent, r.Epoch); err != nil {
		return nil, err
	}
	if !r.about(j) {
		return nil, problem.New(problem.Conflict, "job %s is a %s now; the report is about a %s", j.ID, j.Type, r.Type)
	}
	typ := j.Type
	before, err := j.move(move)
	if err != nil {
		return nil, err
	}
	at, err := j.elsewhere(ctx, tx, &r)
	switch {
	case err != nil:
		return nil, err
	case at.Cluster != "":
		return j, j.redoHere(ctx, tx, before, at, r.Resource)
	case j.outdated(&r):
		return j, j.redo(ctx, tx, before, r.Resource)
	}
	news := move == Progress && applied(r.Resource.Conditions) && !j.Applied
	j.Applied = j.Applied || news
	conditions := j.withMarks(r.Resource.Conditions, move == Degrade)
	return j, j.report(ctx, tx, reported{move, before, typ, r.Resource, conditions, news}, lease)
}

// removedBy recognizes a repeat of the report that ended a removal, which has cleared the owner.
func (j *Job) removedBy(r Report) bool {
	return j.State == Finished && j.Type == Delete && j.OwnerID == "" && r.Type == Delete && r.State == Finished && r.Epoch == j.Epoch
}

func moveOf(faults *problem.Faults, s State) Move {
	switch s {
	case Progressing:
		return Progress
	case Finished:
		return Finish
	case Degraded:
		return Degrade
	}
	faults.Add("state", 0, "an agent reports Progressing, Finished or Degraded")
	return ""
}

// reported is what was reported, or observed, and what follows from it.
type reported struct {
	move       Move
	before     State // of the job
	typ        Type  // of the job
	resource   Resource
	conditions []Condition
	news       bool // something changed that these do not show
}

// report stores what was reported and announces it once. A job with failing conditions is not Finished even if its agent
// says so: an agent that has done its part does not know that the place is the wrong one.
func (j *Job) report(ctx context.Context, tx *store.Tx, in reported, lasts time.Duration) error {
	m, before, r, conditions := in.move, in.before, in.resource, in.conditions
	if j.State == Finished && in.typ != Delete && failing(conditions) {
		if _, err := j.move(Degrade); err != nil {
			return err
		}
	}
	changed := j.State != before || in.news || !sameConditions(j.Conditions, conditions) || r.UUID != "" && r.UUID != j.ResourceUUID
	if r.UUID != "" {
		j.ResourceUUID = r.UUID
	}
	if r.Name != "" {
		j.ResourceName = r.Name
	}
	j.Conditions = conditions
	left := leaseOf(lasts)
	switch m {
	case Finish:
		left = noLease
		changed = j.closeRemedies(m, r) || changed
		if in.typ == Delete {
			j.OwnerID, j.ResourceUUID, j.Conditions = "", "", nil
		}
		if j.State == Degraded {
			m = Degrade
		}
	case Degrade:
		changed = j.closeRemedies(m, r) || changed
	}
	if j.State == Degraded && j.runsWell() {
		left = noLease // nobody has anything to do: when it ended, the job would be carried out once more
	}
	if !changed {
		return j.renew(ctx, tx, left)
	}
	if err := j.save(ctx, tx, m, before, saved{lease: left}, j.message()); err != nil {
		return err
	}
	if j.State == before {
		return j.emit(ctx, tx, events.ResourceChanged)
	}
	switch j.State {
	case Finished:
		return j.emit(ctx, tx, events.JobFinished)
	case Degraded:
		return j.emit(ctx, tx, events.JobDegraded)
	}
	return nil
}

const renewLease = `update jobs set lease_until = now() + $2::interval where id = $1`

// renew extends the lease only, without a history row.
func (j *Job) renew(ctx context.Context, tx *store.Tx, l lease) error {
	if _, err := tx.Exec(ctx, renewLease, j.ID, l.lasts); err != nil {
		return fmt.Errorf("renew lease: %w", err)
	}
	return nil
}

// closeRemedies sets the outcome of pending remediations from a report that the job is Finished or Degraded. news says
// whether that changed any.
func (j *Job) closeRemedies(m Move, reported Resource) (news bool) {
	for i := range j.Remediations {
		if r := &j.Remediations[i]; r.Status == RemedyPending {
			r.Status = r.outcome(m, conditionOf(reported.Conditions, ConditionApplied), r.saidIn(reported.Remediations))
			news = news || r.Status != RemedyPending
		}
	}
	return news
}

// saidIn is the status of the remediation among those that were reported. Newer ICOS agents write Applied for one that is
// done.
func (r *Remedy) saidIn(reported []Remedy) string {
	for i := range reported {
		if reported[i].ID == r.ID {
			return reported[i].Status
		}
	}
	return ""
}

// outcome is how the remediation went; applied is the condition Applied and said the remediation's own status, as far as
// they were reported. A remediation counts as done even if the result runs badly, except one inside a container, which
// leaves no lasting change. A refused one is tried again until it is done, unless no agent there can do it.
func (r *Remedy) outcome(m Move, applied *Condition, said string) string {
	switch {
	case said == RemedyFailed:
		return RemedyFailed
	case m == Finish, said == RemedyDone, said == ConditionApplied:
		return RemedyDone
	case r.Type == Secure, applied != nil && applied.Reason == ReasonNotSupported:
		return RemedyFailed
	case applied != nil && applied.Status == "True":
		return RemedyDone
	}
	return RemedyPending
}

// message says in one line what the orchestrator reported; for a degraded job, what is wrong.
func (j *Job) message() string {
	if c := j.wrong(); c != nil {
		what := c.Type
		if c.Status == "False" {
			what = "not " + what
		}
		return fmt.Sprintf("%s at %s: %s", what, j.Target, c.says())
	}
	for _, typ := range []string{ConditionDegraded, ConditionAvailable, ConditionApplied, ConditionProgressing} {
		if c := j.Condition(typ); c != nil && c.Status == "True" {
			if c.Message != "" {
				return fmt.Sprintf("%s at %s: %s", c.Type, j.Target, c.Message)
			}
			return fmt.Sprintf("%s at %s", c.Type, j.Target)
		}
	}
	if j.Type == Delete && j.State == Finished {
		return "removed from " + j.Target.String()
	}
	return "at " + j.Target.String()
}

func sameConditions(a, b []Condition) bool {
	return slices.EqualFunc(a, b, func(a, b Condition) bool {
		a.LastTransitionTime, b.LastTransitionTime = time.Time{}, time.Time{}
		return a == b
	})
}

// Observe stores the conditions that an orchestrator shows for the job's resource between reports. It counts only if it
// names the copy that the job is about: by owner or epoch, or else by the uuid of the resource. Once the owner has
// reported that it has done its part, a running copy finishes the job; before that it may have former content. The
// error is NotFound, Invalid, or Conflict for a copy that the job has left or a resource that several jobs have.
func Observe(ctx context.Context, tx *store.Tx, s Observation, lease time.Duration) (*Job, error) {
	var faults problem.Faults
	named(&faults, "resource_uuid", s.UUID)
	s.Conditions = clean(&faults, "conditions", s.conditions(&faults), time.Now().UTC())
	if err := faults.Err("the status is not valid"); err != nil {
		return nil, err
	}
	j, err := s.lock(ctx, tx)
	if err != nil {
		return nil, err
	}
	if err := j.fenceCopy(ctx, s); err != nil {
		return nil, err
	}
	before := j.State
	move := Progress
	unexplained := before == Degraded && j.mark(reasonAsReported) != nil && !running(s.Conditions)
	conditions := j.withMarks(s.Conditions, unexplained)
	switch {
	case before == Created:
		return nil, problem.New(problem.Conflict, "job %s waits to be executed; nothing of it runs by its present decision", j.ID)
	case len(s.Conditions) == 0: // only a sign of life
		move = Notice
	case j.Type == Delete && before != Progressing: // while a removal is not under way, it does not matter how the copy runs
		move = Notice
	case before == Finished && failing(conditions):
		move = Degrade
	case before == Degraded && !explains(conditions) && running(conditions):
		move = Finish
	case before == Progressing && j.Applied && j.Type != Update && j.Type != Delete && !explains(conditions) && running(conditions):
		move = Finish // its agent will not report that
	case before != Progressing:
		move = Notice
	}
	if _, err := j.move(move); err != nil {
		return nil, err
	}
	if move == Notice && before == Finished {
		return j, j.seen(ctx, tx, s.Resource, conditions)
	}
	return j, j.report(ctx, tx, reported{move, before, j.Type, s.Resource, conditions, false}, lease)
}

// lock returns the job that the status is about, by its id or else by its resource, and locks it for this transaction.
func (s *Observation) lock(ctx context.Context, tx *store.Tx) (*Job, error) {
	if s.Job != uuid.Nil {
		j, err := Lock(ctx, tx, s.Job)
		if problem.KindOf(err) != problem.NotFound || s.UUID == "" && s.ElseResource == "" {
			return j, err
		}
	}
	s.UUID = cmp.Or(s.UUID, s.ElseResource)
	if s.UUID == "" {
		var faults problem.Faults
		faults.Add("job_id", 0, "is missing; give it, or job_group_id, or resource_uuid")
		return nil, faults.Err("the status names no job")
	}
	return lockOfResource(ctx, tx, s.UUID)
}

// seen stores new conditions of a finished job, when they differ.
func (j *Job) seen(ctx context.Context, tx *store.Tx, r Resource, conditions []Condition) error {
	if len(r.Conditions) == 0 || sameConditions(j.Conditions, conditions) {
		return nil
	}
	j.Conditions = conditions
	if r.Name != "" {
		j.ResourceName = r.Name
	}
	if err := j.save(ctx, tx, Notice, j.State, saved{}, j.message()); err != nil {
		return err
	}
	return j.emit(ctx, tx, events.ResourceChanged)
}

func (j *Job) fenceCopy(ctx context.Context, s Observation) error {
	owner := s.OwnerID
	if owner == "" {
		owner = auth.From(ctx).AgentID
	}
	switch {
	case s.Epoch != 0 && s.Epoch != j.Epoch, owner != "" && owner != j.OwnerID, s.UUID != "" && j.ResourceUUID != "" && s.UUID != j.ResourceUUID:
		return problem.New(problem.Conflict, "job %s has moved on (epoch %d); this copy is fenced", j.ID, j.Epoch)
	case s.Epoch == 0 && owner == "" && (s.UUID == "" || j.ResourceUUID == ""):
		return problem.New(problem.Conflict, "say which copy of job %s this is: its epoch, owner_id or resource_uuid", j.ID)
	}
	return nil
}

// Wrong says why the job is degraded; "" when it is not.
func (j *Job) Wrong() string {
	if c := j.wrong(); c != nil {
		return c.says()
	}
	return ""
}

// wrong returns the condition that says why the job is degraded, nil when it is not.
func (j *Job) wrong() *Condition {
	if j.State != Degraded {
		return nil
	}
	for _, bad := range [][2]string{{ConditionDegraded, "True"}, {ConditionAvailable, "False"}, {ConditionApplied, "False"}} {
		if c := j.Condition(bad[0]); c != nil && c.Status == bad[1] {
			return c
		}
	}
	return nil
}

// says returns the condition's message, or else its reason.
func (c *Condition) says() string { return cmp.Or(c.Message, c.Reason, "no reason is given") }

func failing(conditions []Condition) bool { return slices.ContainsFunc(conditions, fails) }

func fails(c Condition) bool {
	return c.Type == ConditionDegraded && c.Status == "True" || c.Type == ConditionAvailable && c.Status == "False"
}

func running(conditions []Condition) bool { return holds(conditions, ConditionAvailable) }

// applied reports whether the conditions of a job in progress say that its agent has done its part. Without conditions
// it has only begun.
func applied(conditions []Condition) bool {
	return holds(conditions, ConditionApplied) || holds(conditions, ConditionProgressing) || running(conditions)
}

func holds(conditions []Condition, typ string) bool {
	return slices.ContainsFunc(conditions, func(c Condition) bool { return c.Type == typ && c.Status == "True" })
}

func (j *Job) emit(ctx context.Context, tx *store.Tx, typ string) error {
	return tx.Emit(ctx, typ, j.ID.String(), j.event())
}

func (j *Job) event() events.Job {
	return events.Job{
		ID: j.ID, ApplicationID: j.ApplicationID, Component: j.Component, Type: string(j.Type), State: string(j.State),
		Orchestrator: j.Orchestrator, Cluster: j.Cluster, Node: j.Node, Epoch: j.Epoch,
	}
}

// ready announces that an orchestrator may execute the job.
func (j *Job) ready(ctx context.Context, tx *store.Tx) error { return j.emit(ctx, tx, events.JobReady) }
