// Package history stores what happened: every move of a job or an application is a row with its cause.
package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/trace"
)

// Entry is one thing that happened. ID grows with time; Cause is the caller or event behind it.
type Entry struct {
	ID            int64           `json:"id" db:"id"`
	At            time.Time       `json:"at" db:"at"`
	ApplicationID *uuid.UUID      `json:"applicationId,omitempty" db:"application_id"`
	Application   string          `json:"applicationName,omitempty" db:"application"` // while it is known, also after its deletion
	JobID         *uuid.UUID      `json:"jobId,omitempty" db:"job_id"`
	Component     string          `json:"component,omitempty" db:"component"`
	Event         string          `json:"event" db:"event"`
	FromState     string          `json:"fromState,omitempty" db:"from_state"`
	ToState       string          `json:"toState,omitempty" db:"to_state"`
	Message       string          `json:"message,omitempty" db:"message"`
	Cause         string          `json:"cause,omitempty" db:"cause"`
	TraceID       string          `json:"traceId,omitempty" db:"trace_id"`
	Data          json.RawMessage `json:"data,omitempty" db:"data"`
}

const (
	insert = `insert into history (application_id, job_id, component, event, from_state, to_state, message, cause, trace_id, data)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
	// Filters are added as they are given. With one statement for all filters Postgres would soon keep a generic plan, which
	// reads everybody's history to find that of one application.
	list  = listed + `data` + listedFrom
	light = listed + `null::json as data` + listedFrom

	listed = `select id, at, application_id, coalesce((select name from applications a where a.id = application_id), '') as application, job_id, component, event, from_state, to_state, message, cause, trace_id, `

	listedFrom = ` from history where id > $1 and id <= $2`
)

// Record writes the entry with the commit of the transaction; cause and trace come from ctx. If Postgres refuses the
// entry, the commit returns the error.
func Record(ctx context.Context, tx *store.Tx, e Entry) error {
	tx.Append(insert, e.ApplicationID, e.JobID, e.Component, e.Event, e.FromState, e.ToState, e.Message,
		trace.Cause(ctx), trace.ID(ctx), e.Data)
	return nil
}

// Size is the length of the entry's texts in bytes; the rest is small.
func (e Entry) Size() int { return len(e.Component) + len(e.Message) + len(e.Cause) + len(e.Data) }

// After lists up to limit entries with an id above after, oldest first, and no more than store.Page allows. A nil
// application means all, and so does an empty list of events. A caller that continues after the last entry misses none,
// however transactions overlap.
func After(
	ctx context.Context, q store.Querier, application *uuid.UUID, after int64, limit int, events ...string,
) ([]Entry, error) {
	entries, _, err := Read(ctx, q, &Query{Application: application, After: max(after, 0), Limit: limit, Events: events})
	return entries, err
}

// Before lists the newest entries with an id below before, up to limit, oldest first. cut says that there are more than
// store.Page allows.
func Before(
	ctx context.Context, q store.Querier, application *uuid.UUID, before int64, limit int, events ...string,
) (entries []Entry, cut bool, err error) {
	return Read(ctx, q, &Query{Application: application, After: -1, Before: before, Limit: limit, Events: events})
}

// Read lists what is wanted: as After if that is not negative, else as Before.
func Read(ctx context.Context, q store.Querier, want *Query) (entries []Entry, cut bool, err error) {
	upTo, ok, err := visibleUpTo(ctx, q)
	if err != nil {
		return nil, false, err
	}
	if want.After >= 0 {
		if !ok {
			return []Entry{}, false, nil // the caller asks again
		}
		return page(ctx, q, "order by id", want, want.After, upTo)
	}
	if !ok {
		upTo = math.MaxInt64 // better all there is than nothing
	}
	entries, cut, err = page(ctx, q, "order by id desc", want, 0, min(upTo, want.Before-1))
	slices.Reverse(entries)
	return entries, cut, err
}

const (
	// An application may have a long history, so the search ends at the first entry that is too old.
	last = `select at from history where application_id = $1
and (event = $3 and ($2 = '' or component = $2) or at <= $4) order by id desc limit 1`
	selectRecorded = `select exists (select 1 from history where application_id = $1 and event = $2 and message = $3)`
)

// Last returns when the event last happened to the component of the application, or to any component if that is empty; the
// zero time if not since then.
func Last(
	ctx context.Context, q store.Querier, application uuid.UUID, component, event string, since time.Time,
) (at time.Time, err error) {
	err = q.QueryRow(ctx, last, application, component, event, since).Scan(&at)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, fmt.Errorf("read history: %w", err)
	case !at.After(since):
		return time.Time{}, nil
	}
	return at, nil
}

// Recorded reports whether history has this event of the application with this message.
func Recorded(ctx context.Context, q store.Querier, application uuid.UUID, event, message string) (before bool, err error) {
	if err := q.QueryRow(ctx, selectRecorded, application, event, message).Scan(&before); err != nil {
		return false, fmt.Errorf("read history: %w", err)
	}
	return before, nil
}

func page(
	ctx context.Context, q store.Querier, order string, want *Query, after, upTo int64,
) (entries []Entry, cut bool, err error) {
	sql, args := list, []any{after, upTo, want.Limit}
	if want.Light {
		sql = light
	}
	if want.Application != nil {
		args = append(args, *want.Application)
		sql += fmt.Sprintf(" and application_id = $%d", len(args))
	}
	if len(want.Events) > 0 {
		args = append(args, want.Events)
		sql += fmt.Sprintf(" and event = any($%d)", len(args))
	}
	sql += " " + order + " limit $3"
	return store.Page(ctx, q, "read history", pgx.RowToStructByName[Entry], Entry.Size, sql, args...)
}

// Oldest returns the time of the oldest entry that is not in the archive; zero if there is none.
func Oldest(ctx context.Context, q store.Querier) (at time.Time, err error) {
	err = q.QueryRow(ctx, `select at from history order by id limit 1`).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, nil
	}
	if err != nil {
		return at, fmt.Errorf("read the oldest history: %w", err)
	}
	return at, nil
}

// newest is how many entries Count looks at.
const newest = 2000

// Count returns how often the event happened within the last d, in the newest entries: a look at all of that time would
// take long just when much happens.
func Count(ctx context.Context, q store.Querier, event string, d time.Duration) (n int, err error) {
	err = q.QueryRow(ctx, `select count(*) from (select event, at from history order by id desc limit $3) h
where event = $1 and at > now() - $2::interval`, event, d, newest).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count %s: %w", event, err)
	}
	return n, nil
}
