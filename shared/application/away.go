package application

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Elsewhere is wanted of an application that another controller is responsible for at present: nothing is decided on it here.
// It is also read for one that was handed to this controller under a lease that is over (shared/docs/controllers.md).
const Elsewhere Desired = "away"

// Handed is the status of such an application.
const Handed Status = "Away"

// Away says which controller is responsible for an application, and what that one reported last.
type Away struct {
	Controller string `json:"controller"`
	Address    string `json:"address,omitempty"`
	Status     string `json:"status,omitempty"`
	Message    string `json:"message,omitempty"`
}

// desiredNow is what is wanted now: nothing, while the lease of this controller is over.
const desiredNow = `case when a.acts_until <= now() and a.desired <> 'deleted' then 'away' else a.desired end as desired`

const (
	updateAway      = `update applications set away = $2, updated_at = now() where id = $1`
	updateActsUntil = `update applications set acts_until = $2 where id = $1`

	// A controller may be given an application that it had before, and has deleted since. Its version then goes on, so that
	// no revision has the number of another.
	adopt = `insert into applications (id, name, description, namespace, descriptor, owner, dialect, version, judged, acts_until, submitted,
  compose_needs)
values ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9, sha256(convert_to($5, 'UTF8')), $10)
on conflict (id) do update set description = excluded.description, descriptor = excluded.descriptor, dialect = excluded.dialect,
  compose_needs = excluded.compose_needs,
  desired = 'running', deleted_at = null, away = null, acts_until = excluded.acts_until, updated_at = now(),
  version = greatest(applications.version + 1, excluded.version), judged = greatest(applications.version + 1, excluded.version)
returning version, not exists (select from applications where deleted_at is null)`
)

// elsewhere refuses what only the responsible controller may do.
func (a *Application) elsewhere() error {
	switch {
	case a.Desired != Elsewhere:
		return nil
	case a.Away == nil:
		return problem.New(problem.Unavailable,
			"the lease under which this controller has application %s is over, and the controller that gave it does not answer", a.ID)
	}
	return problem.New(problem.Conflict, "controller %s is responsible for application %s now: ask it at %s, or call the application "+
		"back (littoral move %s --home)", a.Away.Controller, a.ID, a.Away.Address, a.Name)
}

// lockHere is Lock for what people ask for: only the responsible controller does it.
func lockHere(ctx context.Context, tx *store.Tx, id uuid.UUID) (*Application, error) {
	a, err := Lock(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	return a, a.elsewhere()
}

// awayStatus is the status of an application that is elsewhere.
func (a *Application) awayStatus() (Status, string) {
	if a.Away == nil {
		return Handed, "the lease of this controller is over; what runs goes on, and nothing is decided until the giver answers"
	}
	message := "at controller " + a.Away.Controller
	if a.Away.Status != "" {
		message += ": " + a.Away.Status
	}
	if a.Away.Message != "" {
		message += ", " + a.Away.Message
	}
	return Handed, message
}

// Release makes this controller stop acting on a running application, for another: what runs here is removed. The error is
// Conflict for one that is not meant to run.
func Release(ctx context.Context, tx *store.Tx, id uuid.UUID, to Away, why string) error {
	a, err := Lock(ctx, tx, id)
	if err != nil {
		return err
	}
	if a.Desired != Running {
		return problem.New(problem.Conflict, "application %s is not meant to run", id)
	}
	if err := a.remove(ctx, tx); err != nil {
		return err
	}
	if err := a.want(ctx, tx, Elsewhere); err != nil {
		return err
	}
	tx.Append(updateAway, id, to)
	return a.announce(ctx, tx, events.ApplicationStopped, "released", why)
}

// Reported notes what the responsible controller says.
func Reported(tx *store.Tx, id uuid.UUID, away Away) { tx.Append(updateAway, id, away) }

// Resume makes this controller act again on an application that it had released, with the descriptor that the other one had
// last, and what its compose files ask for. It does nothing for one that is not released.
func Resume(
	ctx context.Context, tx *store.Tx, id uuid.UUID, descriptor string, needs []appmodel.ComposeNeeds, why string,
	lostAfter time.Duration,
) error {
	a, err := Lock(ctx, tx, id)
	if problem.KindOf(err) == problem.NotFound {
		return nil
	}
	if err != nil || a.Desired != Elsewhere {
		return err
	}
	app, err := a.Parsed()
	if err != nil {
		return err
	}
	if err := a.want(ctx, tx, Running); err != nil {
		return err
	}
	tx.Append(updateAway, id, nil)
	if _, err := a.reconcile(ctx, tx, a.wanted(app, lostAfter)); err != nil {
		return err
	}
	if err := a.announce(ctx, tx, events.ApplicationStarted, "resumed", why); err != nil {
		return err
	}
	if descriptor == "" || descriptor == a.Descriptor {
		return nil
	}
	changed, err := stored(a.Dialect, descriptor, needs)
	if err != nil {
		return err
	}
	_, err = update(ctx, tx, id, []byte(descriptor), changed, authorship{}, lostAfter)
	return err
}

// Forgotten deletes an application that the responsible controller has deleted.
func Forgotten(ctx context.Context, tx *store.Tx, id uuid.UUID) error {
	a, err := Lock(ctx, tx, id)
	if problem.KindOf(err) == problem.NotFound {
		return nil
	}
	if err != nil || a.Desired != Elsewhere {
		return err
	}
	if err := a.want(ctx, tx, Deleted); err != nil {
		return err
	}
	return a.completeDeletion(ctx, tx)
}

// Adoption is an application that another controller has handed over.
type Adoption struct {
	ID         uuid.UUID
	Name       string
	Dialect    appmodel.Dialect
	Descriptor string
	Needs      []appmodel.ComposeNeeds
	Owner      string
	Version    int64
	Until      time.Time // the end of the first lease
}

// Adopt makes this controller responsible for the application, until the lease ends. Its id stays the same everywhere.
func Adopt(ctx context.Context, tx *store.Tx, in Adoption, why string, lostAfter time.Duration) error {
	app, err := stored(in.Dialect, in.Descriptor, in.Needs)
	if err != nil {
		return err
	}
	var version int64
	var first bool
	err = tx.QueryRow(ctx, adopt, in.ID, in.Name, app.Description, Namespace(in.Name, in.ID), in.Descriptor, in.Owner, in.Dialect,
		max(in.Version, 1), in.Until, in.Needs).Scan(&version, &first)
	if err != nil {
		return fmt.Errorf("adopt application: %w", err)
	}
	a, err := Lock(ctx, tx, in.ID)
	if err != nil {
		return err
	}
	if err := a.announceDescriptor(ctx, tx, events.ApplicationSubmitted, "adopted", why); err != nil {
		return err
	}
	if first {
		if err := tx.Emit(ctx, events.ApplicationFirst, events.Clocks, events.Application{ID: a.ID, Name: a.Name}); err != nil {
			return err
		}
	}
	if _, err := a.reconcile(ctx, tx, a.wanted(app, lostAfter)); err != nil {
		return err
	}
	a.revise(tx, authorship{author: in.Owner}, why)
	return nil
}

// ActUntil moves the end of the lease under which this controller is responsible.
func ActUntil(tx *store.Tx, id uuid.UUID, until time.Time) { tx.Append(updateActsUntil, id, until) }

// Yield ends the responsibility of this controller: what runs here is removed, and the application is forgotten when that is
// done.
func Yield(ctx context.Context, tx *store.Tx, id uuid.UUID, why string) error {
	if _, err := tx.Exec(ctx, updateActsUntil, id, nil); err != nil {
		return fmt.Errorf("end a lease: %w", err)
	}
	a, err := Lock(ctx, tx, id)
	if problem.KindOf(err) == problem.NotFound {
		return nil
	}
	if err != nil || a.Desired == Deleted {
		return err
	}
	before := a.Desired
	if err := a.remove(ctx, tx); err != nil {
		return err
	}
	if err := a.want(ctx, tx, Deleted); err != nil {
		return err
	}
	if before == Running {
		if err := a.announce(ctx, tx, events.ApplicationStopped, "yielded", why); err != nil {
			return err
		}
	}
	return a.completeDeletion(ctx, tx)
}
