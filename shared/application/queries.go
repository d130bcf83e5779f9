package application

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/etag"
	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/history/recorded"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/paging"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

const columns = `a.id, a.name, a.description, a.namespace, a.dialect, a.descriptor, a.compose_needs, ` + desiredNow + `, a.version, a.judged, a.owner,
a.created_at, a.updated_at, a.unwatched, a.unwatched_at, a.away`

const (
	selectOne = `select ` + columns + ` from applications a where a.id = $1 and a.deleted_at is null`

	selectThese = `select ` + columns + ` from applications a where a.id = any($1) and a.deleted_at is null`

	// No stronger a lock: a report that holds its job may insert a clean-up, which refers to the application, and the
	// two would deadlock.
	selectOneForUpdate = selectOne + ` for no key update`

	// Rows of an earlier version have no digest; then the document itself is compared, which is known until the first
	// update.
	selectByKey = `select a.id, a.desired = 'deleted' as deleted,
  coalesce(a.submitted = sha256(convert_to($3, 'UTF8')), a.version > 1 or a.descriptor = $3) as same
from applications a where a.owner = $1 and a.idempotency_key = $2`

	selectIDByName = `select a.id from applications a where a.name = $1 and a.deleted_at is null order by a.created_at limit 1`

	selectByName = `select ` + columns + ` from applications a where a.name = $1 and a.deleted_at is null order by a.created_at limit 2`

	// The descriptor, which may be large, is in no listing.
	selectList = `select a.id, a.name, a.description, a.namespace, a.dialect, '' as descriptor, null::jsonb as compose_needs, ` + desiredNow + `, a.version, a.judged,
  a.owner, a.created_at, a.updated_at, a.unwatched, a.unwatched_at, a.away from applications a where a.deleted_at is null and (a.created_at, a.id) > ($1, $2)
and ($3 = '' or a.name = $3 or a.id::text = any(string_to_array($3, ',')))
and (($4 = '' and $5 = '' and $6 = '') or exists (select 1 from jobs j where j.application_id = a.id and j.cleans is null
  and ($4 = '' or j.state = $4) and ($5 = '' or j.orchestrator = $5) and ($6 = '' or j.owner_id = $6)))
order by a.created_at, a.id limit $7`

	insertOne = `insert into applications (id, name, description, namespace, descriptor, owner, idempotency_key, submitted, dialect, compose_needs)
values ($1, $2, $3, $4, $5, $6, $7, sha256(convert_to($5, 'UTF8')), $8, $9) returning created_at, updated_at, desired, version, judged,
not exists (select from applications where deleted_at is null)`

	updateDescriptor = `update applications set descriptor = $2, description = $3, compose_needs = $4, version = version + 1,
updated_at = now() where id = $1 returning version, updated_at`

	// A stopped application has no place that an update could make wrong, and a started one gets new places.
	updateDesired = `update applications set desired = $2, judged = version, updated_at = now() where id = $1`

	selectPolicies = `select exists (select 1 from policies where instance = $1)`

	updateHandled = `update applications set judged = version where id = $1 and judged < version`

	markDeleted = `update applications set desired = 'deleted', deleted_at = now(), updated_at = now() where id = $1`
)

// Get returns the application with its jobs. The error is NotFound, also for one that was deleted.
func Get(ctx context.Context, q store.Querier, id uuid.UUID) (*Application, error) {
	a, err := one(ctx, q, selectOne, id)
	if err != nil {
		return nil, err
	}
	a.Jobs, err = job.OfApplications(ctx, q, a.ID)
	return a, err
}

// These returns those of the applications that there are, in the order of the ids, with their jobs, which have no manifests.
func These(ctx context.Context, q store.Querier, ids []uuid.UUID) ([]*Application, error) {
	found, err := many(ctx, q, selectThese, ids)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	by := make(map[uuid.UUID]*Application, len(found))
	for _, a := range found {
		by[a.ID] = a
	}
	found = found[:0]
	for _, id := range ids {
		if a := by[id]; a != nil {
			found = append(found, a)
		}
	}
	return found, job.EachOfApplications(ctx, q, ids, true, func(j *job.Job) bool {
		if a := by[j.ApplicationID]; a != nil {
			a.Jobs = append(a.Jobs, j)
		}
		return true
	})
}

// Lock returns the application with its jobs, without clean-ups, and locks both for this transaction.
func Lock(ctx context.Context, tx *store.Tx, id uuid.UUID) (*Application, error) {
	a, err := one(ctx, tx, selectOneForUpdate, id)
	if err != nil {
		return nil, err
	}
	a.Jobs, err = job.LockOfApplication(ctx, tx, a.ID)
	return a, err
}

// Expect refuses a caller who has not seen the present version of the application, and keeps that version for this
// transaction. The error is NotFound or PreconditionFailed.
func Expect(ctx context.Context, tx *store.Tx, id uuid.UUID, seen etag.Match) error {
	if !seen.Given() {
		return nil
	}
	a, err := one(ctx, tx, selectOneForUpdate, id)
	if err != nil {
		return err
	}
	return seen.Check(a)
}

// IfSeen makes the change only if the caller has seen the present version; see Expect.
func IfSeen(
	seen etag.Match, change func(context.Context, *store.Tx, uuid.UUID) (*Application, error),
) func(context.Context, *store.Tx, uuid.UUID) (*Application, error) {
	return func(ctx context.Context, tx *store.Tx, id uuid.UUID) (*Application, error) {
		if err := Expect(ctx, tx, id, seen); err != nil {
			return nil, err
		}
		return change(ctx, tx, id)
	}
}

// Named returns the id of the only application of that name. The error is NotFound, or Conflict when there are several.
func Named(ctx context.Context, q store.Querier, name string) (uuid.UUID, error) {
	found, err := many(ctx, q, selectByName, name)
	switch {
	case err != nil:
		return uuid.Nil, err
	case len(found) == 0:
		return uuid.Nil, problem.New(problem.NotFound, "there is no application named %q", name)
	case len(found) > 1:
		return uuid.Nil, problem.New(problem.Conflict, "there are several applications named %q; name one by its id", name)
	}
	return found[0].ID, nil
}

// List returns a page of applications with their jobs, oldest first. cut says that the page is shorter than asked for,
// since the applications are large, or since not all of them have the health that is looked for.
func List(ctx context.Context, q store.Querier, f Filter, page paging.Page) (found []*Application, cut bool, err error) {
	for {
		some, cut, err := list(ctx, q, f.Filter, page)
		if err != nil || f.Health == "" || len(some) == 0 {
			return some, cut, err
		}
		more := cut || len(some) == page.Limit
		last := some[len(some)-1]
		some = slices.DeleteFunc(some, func(a *Application) bool { return a.Health() != f.Health })
		if len(some) > 0 || !more {
			return some, more, nil
		}
		page.After = paging.Cursor{At: last.CreatedAt, ID: last.ID}
	}
}

func list(ctx context.Context, q store.Querier, f job.Filter, page paging.Page) (found []*Application, cut bool, err error) {
	found, err = many(ctx, q, selectList, page.After.At, page.After.ID, f.Application, f.State, f.Orchestrator, f.Owner, page.Limit)
	if err != nil || len(found) == 0 {
		return found, false, err
	}
	ids := make([]uuid.UUID, len(found))
	place := make(map[uuid.UUID]int, len(found))
	for i, a := range found {
		ids[i], place[a.ID] = a.ID, i
	}
	size, end := 0, len(found)
	err = job.EachOfApplications(ctx, q, ids, f.Light, func(j *job.Job) bool {
		i := place[j.ApplicationID]
		a := found[i]
		if size += j.Size(); size > store.PageBytes && i > 0 && len(a.Jobs) == 0 {
			end = i
			return false
		}
		a.Jobs = append(a.Jobs, j)
		return true
	})
	return found[:end], end < len(found), err
}

func one(ctx context.Context, q store.Querier, sql string, id uuid.UUID) (*Application, error) {
	a, err := store.One(ctx, q, "read application", pgx.RowToAddrOfStructByName[Application], sql, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, problem.New(problem.NotFound, "there is no application %s", id)
	}
	return a, err
}

func many(ctx context.Context, q store.Querier, sql string, args ...any) ([]*Application, error) {
	return store.Collect(ctx, q, "read applications", pgx.RowToAddrOfStructByName[Application], sql, args...)
}

// announce writes to history what happened to the application and emits an event.
func (a *Application) announce(ctx context.Context, tx *store.Tx, typ, what, message string, components ...string) error {
	return a.announceWith(ctx, tx, typ, what, message, nil, components...)
}

// announceDescriptor is announce for a descriptor that was handed in; history also keeps its warnings.
func (a *Application) announceDescriptor(ctx context.Context, tx *store.Tx, typ, what, message string) error {
	if len(a.Warnings) == 0 {
		return a.announce(ctx, tx, typ, what, message)
	}
	data, err := json.Marshal(map[string]any{"warnings": a.Warnings})
	if err != nil {
		return fmt.Errorf("encode warnings: %w", err)
	}
	return a.announceWith(ctx, tx, typ, what, fmt.Sprintf("%s; warnings: %d", message, len(a.Warnings)), data)
}

func (a *Application) announceWith(
	ctx context.Context, tx *store.Tx, typ, what, message string, data json.RawMessage, components ...string,
) error {
	err := history.Record(ctx, tx, history.Entry{ApplicationID: &a.ID, Event: what, Message: message, Data: data})
	if err != nil {
		return err
	}
	watched, err := a.watched(ctx, tx)
	if err != nil {
		return err
	}
	return tx.Emit(ctx, typ, a.ID.String(), events.Application{
		ID: a.ID, Name: a.Name, Version: a.Version, Components: components, Reason: message, Watched: watched,
		Dialect: string(a.Dialect),
	})
}

// watched reports whether there are policies about the application, or will be. Functions that follow policies are not
// woken by events about other applications.
func (a *Application) watched(ctx context.Context, tx *store.Tx) (bool, error) {
	if parsed, err := a.Parsed(); err != nil || parsed.Watched() {
		return true, nil // unreadable: leave it to those who follow policies
	}
	var found bool // made by hand, or left by an earlier descriptor
	if err := tx.QueryRow(ctx, selectPolicies, a.ID.String()).Scan(&found); err != nil {
		return false, fmt.Errorf("look for policies: %w", err)
	}
	return found, nil
}

// Placed records and announces a placement decision, with the plan as JSON.
func (a *Application) Placed(ctx context.Context, tx *store.Tx, message string, plan json.RawMessage) error {
	return a.announceWith(ctx, tx, events.ApplicationPlaced, recorded.ApplicationPlaced, message, plan)
}

// Unplaced records and announces that components fit nowhere at present, with the plan, if any, as JSON.
func (a *Application) Unplaced(
	ctx context.Context, tx *store.Tx, message string, components []string, plan json.RawMessage,
) error {
	return a.announceWith(ctx, tx, events.ApplicationUnplaced, recorded.ApplicationUnplaced, message, plan, components...)
}
