package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// New returns the job of a component that waits for a place, with the two conditions of shared/docs/contracts.md §1.7.
func New(application uuid.UUID, component string, replica int, in Instruction) *Job {
	j := &Job{
		ID: uuid.Must(uuid.NewV7()), ApplicationID: application, Component: component, Replica: replica, ResourceName: component,
	}
	j.start()
	j.instruct(in)
	j.await()
	return j
}

// instruct sets the content and the resources it reserves.
func (j *Job) instruct(in Instruction) {
	j.supersede(in.Contents)
	j.Instruction = in
	j.CPUMilli, j.MemoryBytes, j.Devices = in.Requirements.CPUMilli, in.Requirements.MemoryBytes, in.Requirements.Devices
}

// await resets the job to the state before placement: no owner, no place, nothing running.
func (j *Job) await() {
	now := time.Now().UTC()
	j.Type, j.SubType, j.Tried, j.Misplaced = Create, "", false, nil
	j.Target, j.Silence, j.OwnerID, j.ResourceUUID, j.Remediations = Target{}, Silence{}, "", "", nil
	j.Conditions = []Condition{
		{Type: ConditionCreated, Status: "True", ObservedGeneration: 1, LastTransitionTime: now, Reason: reasonAwaiting},
		{Type: ConditionCreated, Status: "True", ObservedGeneration: 1, LastTransitionTime: now, Reason: "AwaitingForExecution"},
	}
}

// Submit stores a new job.
func (j *Job) Submit(ctx context.Context, tx *store.Tx) error {
	j.insert(tx)
	return j.record(ctx, tx, Submit, none, "waits for a place")
}

// Choose gives a job that is about to be placed the objects for the engine there: those of one component type. It reports
// whether these are others than before.
func (j *Job) Choose(typ string, contents []Content) bool {
	if j.Instruction.Type == typ && slices.Equal(j.Instruction.Contents, contents) {
		return false
	}
	in := j.Instruction
	in.Type, in.Contents = typ, contents
	j.instruct(in)
	return true
}

// Contents returns the manifests as a job has them.
func Contents(manifests []appmodel.Manifest) []Content {
	contents := make([]Content, 0, len(manifests))
	for _, m := range manifests {
		contents = append(contents, Content{Name: m.Name, YAML: m.YAML})
	}
	return contents
}

// Place writes a placement decision, under a new epoch, and hands the job over.
func (j *Job) Place(ctx context.Context, tx *store.Tx, t Target, why string) error {
	return j.place(ctx, tx, t, why, saved{})
}

// PlaceVariant is Place, with the objects of one component type. What runs at the former place is removed by a clean-up,
// which has the former objects.
func (j *Job) PlaceVariant(ctx context.Context, tx *store.Tx, t Target, typ string, contents []Content, why string) error {
	return j.place(ctx, tx, t, why, saved{instruction: j.Choose(typ, contents)})
}

func (j *Job) place(ctx context.Context, tx *store.Tx, t Target, why string, w saved) error {
	before, err := j.move(Place)
	if err != nil {
		return err
	}
	j.Target, j.Tried = t, true
	j.Epoch++
	j.Conditions = j.Conditions[:0]
	j.Conditions = append(j.Conditions, Condition{
		Type: ConditionCreated, Status: "True", ObservedGeneration: j.Epoch, LastTransitionTime: time.Now().UTC(),
		Reason: "AwaitingForExecution", Message: why,
	})
	if err := j.save(ctx, tx, Place, before, w, fmt.Sprintf("on %s: %s", t, why)); err != nil {
		return err
	}
	return j.ready(ctx, tx)
}

// Displace takes the job from its place, for reason, so that it will be placed again. Its owner is fenced and gets a
// clean-up job for the copy left behind. exclude keeps the next decision away from the present place.
func (j *Job) Displace(ctx context.Context, tx *store.Tx, reason string, exclude bool) error {
	return j.leave(ctx, tx, Displace, reason, exclude)
}

// Restart asks a stopped job to run again at a new place. A removal that has not ended becomes a clean-up.
func (j *Job) Restart(ctx context.Context, tx *store.Tx) error {
	return j.leave(ctx, tx, Restart, "asked to run again", false)
}

func (j *Job) leave(ctx context.Context, tx *store.Tx, m Move, reason string, exclude bool) error {
	place := j.Target
	before, err := j.move(m)
	if err != nil {
		return err
	}
	if j.OwnerID != "" {
		if err := j.cleanup().submitCleanup(ctx, tx, reason); err != nil {
			return err
		}
	}
	j.Excluded = nil
	if exclude && place.Cluster != "" {
		j.Excluded = []Target{place}
	}
	j.await()
	return j.save(ctx, tx, m, before, saved{}, reason)
}

// cleanup returns the job that removes the copy which j leaves behind, addressed to the owner of that copy. It holds the
// capacity until the copy is gone.
func (j *Job) cleanup() *Job {
	c := *j
	c.ID, c.Cleans = uuid.Must(uuid.NewV7()), &j.ID
	c.start()
	c.Type, c.SubType, c.LeaseUntil = Delete, string(Reallocate), nil
	c.Remediations, c.Misplaced, c.Silence = nil, nil, Silence{}
	// The conditions reported so far belong to the job. The copy may still run, but must not count as available beside
	// its successor.
	c.Conditions = []Condition{{
		Type: ConditionCreated, Status: "True", ObservedGeneration: j.Epoch, LastTransitionTime: time.Now().UTC(),
		Reason: "AwaitingForExecution",
	}}
	return &c
}

func (j *Job) submitCleanup(ctx context.Context, tx *store.Tx, reason string) error {
	j.insert(tx)
	if err := j.record(ctx, tx, CleanUp, none, fmt.Sprintf("removes what epoch %d left at %s: %s", j.Epoch, j.Target, reason)); err != nil {
		return err
	}
	return j.ready(ctx, tx)
}

// Stop removes what runs; a job that nobody has taken is done at once.
func (j *Job) Stop(ctx context.Context, tx *store.Tx) error {
	if !j.Live() {
		return nil
	}
	j.Misplaced = nil
	if j.OwnerID == "" {
		before, err := j.move(Cancel)
		if err != nil {
			return err
		}
		j.Target, j.Conditions = Target{}, nil
		return j.save(ctx, tx, Cancel, before, saved{}, "stopped before anyone took it")
	}
	before, err := j.move(Stop)
	if err != nil {
		return err
	}
	j.Type, j.SubType = Delete, ""
	if err := j.save(ctx, tx, Stop, before, saved{}, "to be removed from "+j.Target.String()); err != nil {
		return err
	}
	return j.ready(ctx, tx)
}

// Replace gives the job new content. If an agent owns the job it is replaced where it is, else it simply starts with
// the new content.
func (j *Job) Replace(ctx context.Context, tx *store.Tx, in Instruction) error {
	if j.Gone() {
		j.instruct(in)
		return j.save(ctx, tx, Instruct, j.State, saved{instruction: true}, "new content for when it starts again")
	}
	before, err := j.move(Change)
	if err != nil {
		return err
	}
	j.instruct(in)
	j.Remediations = nil // the new content overwrites what they changed
	if j.OwnerID == "" {
		return j.save(ctx, tx, Change, before, saved{instruction: true}, "new content before anyone took it")
	}
	return j.giveContent(ctx, tx, before, saved{instruction: true}, "new content for "+j.Target.String())
}

// giveContent asks the owner of the job to deploy its present content.
func (j *Job) giveContent(ctx context.Context, tx *store.Tx, before State, w saved, message string) error {
	if j.ResourceUUID != "" { // otherwise its agent never got as far as creating it
		j.Type = Replace
	}
	j.SubType = ""
	if err := j.save(ctx, tx, Change, before, w, message); err != nil {
		return err
	}
	return j.ready(ctx, tx)
}

// Remediate asks the owner for a remediation. asked has a Type, and Target and Step where they matter. The error is
// Conflict unless the job is owned and Finished (shared/docs/contracts.md §1.7), or would be Finished but for its place.
func (j *Job) Remediate(ctx context.Context, tx *store.Tx, asked Remedy, reason string) error {
	r := asked.Type
	if j.OwnerID == "" {
		return problem.New(problem.Conflict, "job %s has no owner that could carry out %s", j.ID, r)
	}
	if j.State == Degraded && !j.runsWell() {
		return j.cannot(Remediate)
	}
	before, err := j.move(Remediate)
	if err != nil {
		return err
	}
	j.Type, j.SubType = Update, string(r)
	if r == ReplaceIt {
		j.Type = Replace
	}
	asked.ID, asked.ResourceID, asked.Status = uuid.Must(uuid.NewV7()), j.ResourceUUID, RemedyPending
	j.Remediations = append(j.Remediations, asked)
	if err := j.save(ctx, tx, Remediate, before, saved{}, fmt.Sprintf("%s: %s", r, reason)); err != nil {
		return err
	}
	return j.ready(ctx, tx)
}

// That cluster is not empty is the condition of the partial index: without it a generic plan could not use the index.
const selectOwnedAt = `select id from jobs where cluster = $1 and cluster <> '' and node = $2 and owner_id = $3 order by id`

// HandOver gives the jobs that the former agent owns at the node to another agent, under a new epoch that fences the
// former one. Leases end, so that the new agent can take up unfinished work at once.
func HandOver(ctx context.Context, tx *store.Tx, cluster, node, former, agent string) error {
	ids, err := store.Collect(ctx, tx, "find jobs of a former agent", pgx.RowTo[uuid.UUID], selectOwnedAt, cluster, node, former)
	if err != nil {
		return err
	}
	for _, id := range ids {
		j, err := Lock(ctx, tx, id)
		switch {
		case problem.KindOf(err) == problem.NotFound:
			continue
		case err != nil:
			return err
		case j.OwnerID != former || j.Cluster != cluster || j.Node != node:
			continue // it changed before it could be locked
		}
		j.OwnerID = agent
		j.Epoch++
		left := noLease
		if j.LeaseUntil != nil {
			left = leaseOf(0)
		}
		if err := j.save(ctx, tx, GiveOver, j.State, saved{lease: left}, fmt.Sprintf("%s serves %s now, not %s", agent, j.Target, former)); err != nil {
			return err
		}
		if j.State != Created {
			continue
		}
		if err := j.ready(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

// ForgetCleanups deletes the clean-ups that ended longer than age ago, and returns how many. Until then a repeated
// report of the agent is recognized; history keeps what they did.
func ForgetCleanups(ctx context.Context, q store.Querier, age time.Duration) (int64, error) {
	done, err := q.Exec(ctx, `delete from jobs where cleans is not null and state = 'Finished' and updated_at < now() - $1::interval`, age)
	if err != nil {
		return 0, fmt.Errorf("forget clean-ups: %w", err)
	}
	return done.RowsAffected(), nil
}

const deleteJob = `delete from jobs where id = $1`

// Remove deletes the job. The error is Conflict while something of it may still run.
func Remove(ctx context.Context, tx *store.Tx, id uuid.UUID) error {
	j, err := Lock(ctx, tx, id)
	if err != nil {
		return err
	}
	if j.OwnerID != "" {
		return problem.New(problem.Conflict, "job %s may still run at %s; stop its application first", id, j.Target)
	}
	if _, err := tx.Exec(ctx, `delete from jobs where cleans = $1 and state = 'Finished'`, id); err != nil {
		return fmt.Errorf("forget clean-ups: %w", err)
	}
	var left Target
	err = tx.QueryRow(ctx, `select cluster, node from jobs where cleans = $1 limit 1`, id).Scan(&left.Cluster, &left.Node)
	if err == nil {
		return problem.New(problem.Conflict, "a former copy of job %s is still to be removed from %s", id, left)
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("look for clean-ups: %w", err)
	}
	if _, err := tx.Exec(ctx, deleteJob, id); err != nil {
		return fmt.Errorf("forget job: %w", err)
	}
	if err := j.record(ctx, tx, Forget, j.State, "forgotten"); err != nil || !j.Placed() {
		return err
	}
	e := j.event()
	e.Type, e.State = string(Delete), string(Finished) // tells others that its place is free
	return tx.Emit(ctx, events.JobFinished, j.ID.String(), e)
}

// Require changes the requirements but not the content. Its agent has nothing to do; the matchmaker checks whether the
// job can stay where it is.
func (j *Job) Require(ctx context.Context, tx *store.Tx, in Instruction) error {
	j.instruct(in)
	return j.save(ctx, tx, Require, j.State, saved{lease: sameLease, instruction: true}, "other requirements, the same content")
}

// Wait records why the job has no place. news says whether the reason is a new one.
func (j *Job) Wait(ctx context.Context, tx *store.Tx, reason string) (news bool, err error) {
	i := slices.IndexFunc(j.Conditions, func(c Condition) bool { return c.Reason == reasonAwaiting })
	if i < 0 || j.Tried && j.Conditions[i].Message == reason {
		return false, nil
	}
	j.Conditions[i].Message, j.Tried = reason, true
	return true, j.save(ctx, tx, Wait, j.State, saved{}, reason)
}
