// Package tenant says whose telemetry a caller may see: logs and series show what an application does, which is nobody else's
// business.
//
// An application with a token of its own sees itself, a person what he or she handed in, and the role admin everything. Postgres is told
// too for whom it is asked: a statement that forgot to look whose rows it takes finds none of others.
package tenant

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/auth"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// MaxApplications is how many applications one question may be about.
const MaxApplications = 200

const (
	selectOwner = `select owner from applications where id = $1`
	selectOwned = `select id from applications where owner = $1 and deleted_at is null order by created_at desc, id limit $2`
)

func of(caller auth.Principal) store.Tenant {
	switch {
	case caller.Application != "":
		return store.Application(caller.Application)
	case caller.Can(auth.Admin):
		return store.Everybody
	}
	return store.Person(caller.Subject)
}

// OnBus returns whose values of the bus the caller may see: people read it for the site.
func OnBus(caller auth.Principal) store.Tenant {
	if caller.Application != "" {
		return store.Application(caller.Application)
	}
	return store.Everybody
}

// May returns an error unless the caller may see the telemetry of the application: NotFound, or Forbidden. What is then read for the
// caller is read through the store that it returns.
func May(ctx context.Context, db *store.DB, caller auth.Principal, application uuid.UUID) (store.Querier, error) {
	if caller.Application != "" && caller.Application != application.String() {
		return nil, problem.New(problem.Forbidden, "this token is for the telemetry of application %s and nothing else", caller.Application)
	}
	var owner string
	// For the caller alone, one of somebody else could not be told from one that is not there.
	err := db.As(store.Everybody).QueryRow(ctx, selectOwner, application).Scan(&owner)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, problem.New(problem.NotFound, "there is no application %s", application)
	case err != nil:
		return nil, fmt.Errorf("read application: %w", err)
	case caller.Application == "" && !caller.Can(auth.Admin) && owner != caller.Subject:
		return nil, problem.New(problem.Forbidden,
			"the telemetry of an application is for who handed it in, itself, and the role %q", auth.Admin)
	}
	return db.As(of(caller)), nil
}

// Scope is the applications whose telemetry a caller may see.
type Scope struct {
	All          bool
	Applications []string // their ids, unless All
}

// Of returns the scope of the caller. The error is Conflict when he has too many applications for one question.
func Of(ctx context.Context, db *store.DB, caller auth.Principal) (Scope, error) {
	switch {
	case caller.Application != "":
		return Scope{Applications: []string{caller.Application}}, nil
	case caller.Can(auth.Admin):
		return Scope{All: true}, nil
	}
	ids, err := store.Collect(ctx, db.As(of(caller)), "read applications", pgx.RowTo[uuid.UUID],
		selectOwned, caller.Subject, MaxApplications+1)
	if err != nil {
		return Scope{}, err
	}
	if len(ids) > MaxApplications {
		return Scope{}, problem.New(problem.Conflict, "you have more than %d applications: name one with app", MaxApplications)
	}
	s := Scope{Applications: make([]string, len(ids))}
	for i, id := range ids {
		s.Applications[i] = id.String()
	}
	return s, nil
}
