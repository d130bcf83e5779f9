// Package tenant says whose telemetry a caller may see: logs and series show what an application does, which is nobody else's
// business.
//
// An application with a token of its own sees itself, a person what he or she handed in, and the role admin everything.
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

// May returns an error unless the caller may see the telemetry of the application: NotFound, or Forbidden.
func May(ctx context.Context, q store.Querier, caller auth.Principal, application uuid.UUID) error {
	if caller.Application != "" && caller.Application != application.String() {
		return problem.New(problem.Forbidden, "this token is for the telemetry of application %s and nothing else", caller.Application)
	}
	var owner string
	err := q.QueryRow(ctx, selectOwner, application).Scan(&owner)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return problem.New(problem.NotFound, "there is no application %s", application)
	case err != nil:
		return fmt.Errorf("read application: %w", err)
	case caller.Application == "" && !caller.Can(auth.Admin) && owner != caller.Subject:
		return problem.New(problem.Forbidden,
			"the telemetry of an application is for who handed it in, itself, and the role %q", auth.Admin)
	}
	return nil
}

// Scope is the applications whose telemetry a caller may see.
type Scope struct {
	All          bool
	Applications []string // their ids, unless All
}

// Of returns the scope of the caller. The error is Conflict when he has too many applications for one question.
func Of(ctx context.Context, q store.Querier, caller auth.Principal) (Scope, error) {
	switch {
	case caller.Application != "":
		return Scope{Applications: []string{caller.Application}}, nil
	case caller.Can(auth.Admin):
		return Scope{All: true}, nil
	}
	rows, err := q.Query(ctx, selectOwned, caller.Subject, MaxApplications+1)
	if err != nil {
		return Scope{}, fmt.Errorf("read applications: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return Scope{}, fmt.Errorf("read applications: %w", err)
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
