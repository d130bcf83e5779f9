package application

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/clusterlink"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/history/recorded"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/policy/registry"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Submission is a descriptor that was handed in.
type Submission struct {
	Document       []byte
	Parsed         *appmodel.Application // Document, as it was read (package submission)
	Caller         string
	IdempotencyKey string        // the same key from the same caller gives the same application; "" = none
	First          bool          // only if no application has the name
	LostAfter      time.Duration // for components whose descriptor does not say
}

// Submit stores a new application whose components wait for places. fresh is false when the idempotency key was used
// before; then the application stored with it is returned, as it is now. The error is
// Conflict when the key came with another document, or its application was deleted; or PreconditionFailed when it must
// be the first of its name and is not.
func Submit(ctx context.Context, tx *store.Tx, s Submission) (a *Application, fresh bool, err error) {
	app := s.Parsed
	warnings := problem.Texts(registry.Warnings(app))
	if s.IdempotencyKey != "" {
		if a, err := submitted(ctx, tx, s); a != nil || err != nil {
			if a != nil {
				a.Warnings = warnings
			}
			return a, false, err
		}
	}
	if s.First {
		if err := unnamed(ctx, tx, app.Name); err != nil {
			return nil, false, err
		}
	}
	id := uuid.New() // random, not by time: the first eight digits keep namespaces apart
	name := app.Name
	if name == "" {
		name = "app-" + id.String()[24:] // the contract gives a nameless application a random one
	}
	a = &Application{
		ID: id, Name: name, Description: app.Description, Namespace: Namespace(name, id),
		Dialect: app.Dialect, Descriptor: string(s.Document), Needs: app.Needs, Owner: s.Caller, Warnings: warnings, parsed: app,
	}
	var key *string
	if s.IdempotencyKey != "" {
		key = &s.IdempotencyKey
	}
	var first bool
	err = tx.QueryRow(ctx, insertOne, a.ID, a.Name, a.Description, a.Namespace, a.Descriptor, a.Owner, key, a.Dialect, a.Needs).
		Scan(&a.CreatedAt, &a.UpdatedAt, &a.Desired, &a.Version, &a.HandledVersion, &first)
	if store.IsUniqueViolation(err, "applications_idempotency_key_idx") {
		return nil, false, problem.Wrap(problem.Unavailable, err, "the same Idempotency-Key is being worked on; try again")
	}
	if err != nil {
		return nil, false, fmt.Errorf("store application: %w", err)
	}
	message := "1 component"
	if n := len(app.Components); n != 1 {
		message = fmt.Sprintf("%d components", n)
	}
	if err := a.announceDescriptor(ctx, tx, events.ApplicationSubmitted, recorded.ApplicationSubmitted, message); err != nil {
		return nil, false, err
	}
	if first {
		if err := tx.Emit(ctx, events.ApplicationFirst, events.Clocks, events.Application{ID: a.ID, Name: a.Name}); err != nil {
			return nil, false, err
		}
	}
	for _, want := range a.wanted(app, s.LostAfter) {
		if err := a.add(ctx, tx, want); err != nil {
			return nil, false, err
		}
	}
	a.revise(tx, authorship{author: s.Caller}, message)
	a.Jobs, err = job.OfApplications(ctx, tx, a.ID) // as stored, so that the answer equals a later GET
	return a, true, err
}

// unnamed refuses a name that another application has. Requests for one name take turns.
func unnamed(ctx context.Context, tx *store.Tx, name string) error {
	if err := tx.AwaitTurn(ctx, store.TurnApplicationName, name); err != nil {
		return err
	}
	var id uuid.UUID
	err := tx.QueryRow(ctx, selectIDByName, name).Scan(&id)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("look for the name: %w", err)
	}
	return problem.New(problem.PreconditionFailed, "application %s has the name %q already", id, name)
}

func submitted(ctx context.Context, tx *store.Tx, s Submission) (*Application, error) {
	// Two requests with one key take turns, so the second finds what the first has stored.
	if err := tx.AwaitTurn(ctx, store.TurnIdempotencyKey, s.Caller+"\n"+s.IdempotencyKey); err != nil {
		return nil, err
	}
	var id uuid.UUID
	var deleted, same bool
	err := tx.QueryRow(ctx, selectByKey, s.Caller, s.IdempotencyKey, s.Document).Scan(&id, &deleted, &same)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look for the idempotency key: %w", err)
	case deleted: // a late repeat must not bring it back
		return nil, problem.New(problem.Conflict, "the application of this Idempotency-Key, %s, was deleted; use another key", id)
	case !same:
		return nil, problem.New(problem.Conflict, "this Idempotency-Key came with another document before")
	}
	return Get(ctx, tx, id)
}

// want is one job that a descriptor asks for.
type want struct {
	component   string
	replica     int
	instruction job.Instruction
	lostAfter   time.Duration
}

// wanted lists the jobs of a descriptor: one per component or replica, with the numbers of the stored jobs.
func (a *Application) wanted(app *appmodel.Application, lostAfter time.Duration) []want {
	var list []want
	for i := range app.Components {
		c := &app.Components[i]
		after, ok := app.LostTelemetry(c.Name)
		if !ok {
			after = lostAfter
		}
		all := job.Contents(c.Manifests)
		for _, r := range job.Replicas(c, a.Jobs) {
			in := job.Instruction{
				ComponentName: c.Name, Type: c.Type, Contents: all, Requirements: c.Requirements, Labels: r.Labels,
				Calls: clusterlink.Calls(app, c),
			}
			if c.Type == appmodel.TypeMultiple {
				a.retainVariant(&in, app, c, r.Index)
			}
			list = append(list, want{component: c.Name, replica: r.Index, lostAfter: after, instruction: in})
		}
	}
	return list
}

// retainVariant leaves the stored job of a component with variants the one that it was placed with. If that is gone, so
// that it has to leave its place, it keeps what runs until it is placed elsewhere.
func (a *Application) retainVariant(in *job.Instruction, app *appmodel.Application, c *appmodel.Component, replica int) {
	at := slices.IndexFunc(a.Jobs, func(j *job.Job) bool {
		return j.Cleans == nil && j.Component == c.Name && j.Replica == replica
	})
	if at < 0 || a.Jobs[at].Instruction.Type == appmodel.TypeMultiple {
		return
	}
	in.Type = a.Jobs[at].Instruction.Type
	if slices.Contains(app.Engines(c), in.Type) {
		in.Contents = job.Contents(c.Variant(in.Type))
	} else {
		in.Contents = a.Jobs[at].Instruction.Contents
	}
}

// add stores a job that waits for a place, or for the application to be started.
func (a *Application) add(ctx context.Context, tx *store.Tx, w want) error {
	j := job.New(a.ID, w.component, w.replica, w.instruction)
	j.LostAfter = w.lostAfter
	if err := j.Submit(ctx, tx); err != nil || a.Desired == Running {
		return err
	}
	return j.Stop(ctx, tx)
}

// Start asks a stopped application to run again, as its present descriptor says; its components are placed anew.
func Start(ctx context.Context, tx *store.Tx, id uuid.UUID, lostAfter time.Duration) (*Application, error) {
	a, err := lockHere(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	switch a.Desired {
	case Running:
		return Get(ctx, tx, id) // it already runs: asking twice is no fault
	case Deleted:
		return nil, problem.New(problem.Conflict, "application %s is being deleted", id)
	}
	app, err := a.Parsed()
	if err != nil {
		return nil, err
	}
	if err := a.want(ctx, tx, Running); err != nil {
		return nil, err
	}
	if _, err := a.reconcile(ctx, tx, a.wanted(app, lostAfter)); err != nil {
		return nil, err
	}
	if err := a.announce(ctx, tx, events.ApplicationStarted, recorded.ApplicationStarted, "asked to run again"); err != nil {
		return nil, err
	}
	return Get(ctx, tx, id)
}

// Stop removes what runs of an application and keeps the application.
func Stop(ctx context.Context, tx *store.Tx, id uuid.UUID) (*Application, error) {
	a, err := lockHere(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	if a.Desired == Running {
		err = a.stop(ctx, tx, Stopped)
	} else {
		err = a.remove(ctx, tx)
	}
	if err != nil {
		return nil, err
	}
	return Get(ctx, tx, id)
}

func (a *Application) stop(ctx context.Context, tx *store.Tx, to Desired) error {
	before := a.Desired
	if err := a.remove(ctx, tx); err != nil {
		return err
	}
	if err := a.want(ctx, tx, to); err != nil || before != Running {
		return err
	}
	return a.announce(ctx, tx, events.ApplicationStopped, recorded.ApplicationStopped, "asked to stop")
}

// remove asks for the removal of all that runs or waits, except what is being removed already.
func (a *Application) remove(ctx context.Context, tx *store.Tx) error {
	for _, j := range a.Jobs {
		if err := j.Stop(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

func (a *Application) want(ctx context.Context, tx *store.Tx, d Desired) error {
	if _, err := tx.Exec(ctx, updateDesired, a.ID, d); err != nil {
		return fmt.Errorf("store desired state: %w", err)
	}
	a.Desired = d
	return nil
}

// Delete deletes an application. It must be stopped, or never have run (shared/docs/contracts.md §1.7), else the error is
// Conflict; unless stop is set: then what runs is removed first, and the application is deleted when its last removal
// is reported. A deletion that has begun continues. If nothing is left, or nobody carries out the removal, it is
// deleted at once. gone says whether it is.
func Delete(ctx context.Context, tx *store.Tx, id uuid.UUID, stop bool) (a *Application, gone bool, err error) {
	if a, err = lockHere(ctx, tx, id); err != nil {
		return nil, false, err
	}
	abandoned, deletable := a.abandoned(), a.deletable()
	switch {
	case a.Desired == Deleted && !abandoned && (stop || !deletable):
		err = a.remove(ctx, tx) // the request is repeated, perhaps because the answer was lost
	case abandoned || deletable:
		err = a.forget(ctx, tx)
	case !stop:
		return nil, false, problem.New(problem.Conflict,
			"application %s still runs: stop it first (PUT /jobmanager/groups/stop/%s), or delete it with ?stop=true", id, id)
	default:
		err = a.stop(ctx, tx, Deleted)
	}
	if err == nil && !a.gone {
		err = a.completeDeletion(ctx, tx)
	}
	if err != nil || !a.gone {
		return a, false, err
	}
	a.Jobs, err = job.OfApplications(ctx, tx, a.ID) // including clean-ups at former places
	return a, true, err
}

// abandoned reports whether nobody carries out the removal of an application that is not to run. If its agent comes
// back, the removal continues without the application.
func (a *Application) abandoned() bool {
	return a.Desired != Running && !slices.ContainsFunc(a.Jobs, func(j *job.Job) bool {
		return !j.Gone() && !j.OutOfReach() && !j.Untended()
	})
}

// deletable is the rule of the contract; open removals continue without their application.
func (a *Application) deletable() bool {
	return a.Desired != Running && !slices.ContainsFunc(a.Jobs, func(j *job.Job) bool {
		return !j.Gone() && (j.Type != job.Delete || j.State != job.Created)
	})
}

func (a *Application) forget(ctx context.Context, tx *store.Tx) error {
	if _, err := tx.Exec(ctx, markDeleted, a.ID); err != nil {
		return fmt.Errorf("delete application: %w", err)
	}
	a.Desired, a.gone = Deleted, true
	return a.announce(ctx, tx, events.ApplicationDeleted, recorded.ApplicationDeleted, "gone")
}

// completeDeletionAfterRemoval ends a deletion whose last removal was just reported.
func completeDeletionAfterRemoval(ctx context.Context, tx *store.Tx, id uuid.UUID) error {
	a, err := Lock(ctx, tx, id)
	if problem.KindOf(err) == problem.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	return a.completeDeletion(ctx, tx)
}

func (a *Application) completeDeletion(ctx context.Context, tx *store.Tx) error {
	if a.Desired != Deleted || slices.ContainsFunc(a.Jobs, func(j *job.Job) bool { return !j.Gone() && !j.OutOfReach() }) {
		return nil
	}
	return a.forget(ctx, tx)
}

const lockOfRemoval = `select from applications where id = (
  select application_id from jobs where id = $1 and type = 'DeleteDeployment' and cleans is null) for no key update`

// LockOfRemoval locks the application whose job is being removed before the job itself is locked, the usual order.
// After a removal all jobs of the application are looked at; several reports at a time, each with its own job locked,
// would deadlock. The statement is sent together with the one that locks the job.
func LockOfRemoval(tx *store.Tx, id uuid.UUID) { tx.Append(lockOfRemoval, id) }

// Report stores an agent's report on a job (job.Work) and updates its application: a deletion ends with the last
// removal. A removal in a cluster that does not answer continues without its application.
func Report(ctx context.Context, tx *store.Tx, r job.Report, lease time.Duration) (*job.Job, error) {
	if r.Type == "" || r.Type == job.Delete {
		LockOfRemoval(tx, r.ID)
	}
	j, err := job.Work(ctx, tx, r, lease)
	if err != nil || j.Type != job.Delete || j.State != job.Finished && !j.OutOfReach() || j.Cleans != nil {
		return j, err
	}
	return j, completeDeletionAfterRemoval(ctx, tx, j.ApplicationID)
}
