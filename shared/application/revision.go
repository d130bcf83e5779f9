package application

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/etag"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Revision is a descriptor that an application was given. Its number is the version of the application that it made, so
// the newest revision is what the application is now.
type Revision struct {
	Number     int64     `json:"revision"             db:"revision"`
	At         time.Time `json:"at"                   db:"at"`
	Author     string    `json:"author"               db:"author"`     // the caller who handed it in; empty if that is not known any more
	Restores   *int64    `json:"restores,omitempty"   db:"restores"`   // the revision that this one went back to
	Summary    string    `json:"summary,omitempty"    db:"summary"`    // what it changed, for people
	Descriptor string    `json:"descriptor,omitempty" db:"descriptor"` // as handed in; not in a listing

	Dialect appmodel.Dialect        `json:"-" db:"dialect"` // of the application, which keeps it
	Needs   []appmodel.ComposeNeeds `json:"-" db:"compose_needs"`
}

// Parsed returns the descriptor in normal form.
func (r *Revision) Parsed() (*appmodel.Application, error) {
	parsed, err := stored(r.Dialect, r.Descriptor, r.Needs)
	if err != nil {
		return nil, fmt.Errorf("revision %d: %w", r.Number, err)
	}
	return parsed, nil
}

// MostRevisions is how many a listing has at most.
const MostRevisions = 100

const (
	insertRevision = `insert into revisions (application_id, revision, author, restores, summary, descriptor, compose_needs)
values ($1, $2, $3, $4, $5, $6, $7)`
	selectRevisions = `select r.revision, r.at, r.author, r.restores, r.summary, '' as descriptor, a.dialect, null::jsonb as compose_needs
from revisions r join applications a on a.id = r.application_id
where r.application_id = $1 and ($2 = 0 or r.revision < $2) order by r.revision desc limit $3`
	whole = `select r.revision, r.at, r.author, r.restores, r.summary, r.descriptor, a.dialect, r.compose_needs
from revisions r join applications a on a.id = r.application_id where r.application_id = $1 and `
	selectRevision = whole + `r.revision = $2`
	selectBefore   = whole + `r.revision < $2 order by r.revision desc limit 1`
)

// revise keeps the descriptor that the application just got.
func (a *Application) revise(tx *store.Tx, by authorship, summary string) {
	tx.Append(insertRevision, a.ID, a.Version, by.author, by.restores, summary, a.Descriptor, a.Needs)
}

// authorship says where a descriptor comes from.
type authorship struct {
	author   string
	restores *int64
}

// Revisions lists the revisions of the application, newest first, those before a number if that is not 0. The error is
// NotFound.
func Revisions(ctx context.Context, q store.Querier, id uuid.UUID, before int64) ([]Revision, error) {
	if _, err := one(ctx, q, selectOne, id); err != nil {
		return nil, err
	}
	return store.Collect(ctx, q, "read revisions", pgx.RowToStructByName[Revision], selectRevisions, id, before, MostRevisions)
}

// RevisionOf returns one revision with its descriptor; 0 means the newest. The error is NotFound.
func RevisionOf(ctx context.Context, q store.Querier, id uuid.UUID, number int64) (*Revision, error) {
	a, err := one(ctx, q, selectOne, id)
	if err != nil {
		return nil, err
	}
	if number == 0 {
		number = a.Version
	}
	r, err := store.One(ctx, q, "read revision", pgx.RowToAddrOfStructByName[Revision], selectRevision, id, number)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, problem.New(problem.NotFound, "application %s has no revision %d", id, number)
	}
	return r, err
}

// RevisionBefore returns the revision before the one of that number; nil for the first.
func RevisionBefore(ctx context.Context, q store.Querier, id uuid.UUID, number int64) (*Revision, error) {
	r, err := store.One(ctx, q, "read revision", pgx.RowToAddrOfStructByName[Revision], selectBefore, id, number)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return r, err
}

// Prepared is a new descriptor of an application that was made from one of its own, before any transaction.
type Prepared struct {
	id     uuid.UUID
	from   int64 // the version that it was made from; 0 when it does not matter
	change *Change
}

// Parser reads a descriptor as it is handed in.
type Parser func(document []byte) (*appmodel.Application, error)

// ReadRollback prepares to go back to the revision; 0 means the one before the newest. The error is NotFound, Conflict when
// there is none before, or that of parse: what was accepted once may be refused by now.
func ReadRollback(ctx context.Context, q store.Querier, id uuid.UUID, to int64, parse Parser) (*Prepared, error) {
	p := &Prepared{id: id}
	var r *Revision
	var err error
	if to != 0 {
		r, err = RevisionOf(ctx, q, id, to)
	} else {
		r, err = p.previous(ctx, q)
	}
	if err != nil {
		return nil, err
	}
	if err := p.read([]byte(r.Descriptor), parse); err != nil {
		return nil, err
	}
	p.change.restores = &r.Number
	return p, nil
}

// ReadEdit prepares what edit makes of the present descriptor. The error is NotFound, or that of edit or parse.
func ReadEdit(
	ctx context.Context, q store.Querier, id uuid.UUID, parse Parser,
	edit func(document []byte, app *appmodel.Application) ([]byte, error),
) (*Prepared, error) {
	a, err := one(ctx, q, selectOne, id)
	if err != nil {
		return nil, err
	}
	if a.Dialect != appmodel.ICOS { // whose fields the edits know
		return nil, problem.New(problem.Conflict, "application %s is written in %s: change its document and hand that in", id, a.Dialect)
	}
	app, err := a.Parsed()
	if err != nil {
		return nil, err
	}
	document, err := edit([]byte(a.Descriptor), app)
	if err != nil {
		return nil, err
	}
	p := &Prepared{id: id, from: a.Version}
	return p, p.read(document, parse)
}

func (p *Prepared) read(document []byte, parse Parser) error {
	app, err := parse(document)
	p.change = NewChange(p.id, document, app)
	return err
}

func (p *Prepared) previous(ctx context.Context, q store.Querier) (*Revision, error) {
	a, err := one(ctx, q, selectOne, p.id)
	if err != nil {
		return nil, err
	}
	p.from = a.Version
	r, err := RevisionBefore(ctx, q, p.id, a.Version)
	if err == nil && r == nil {
		return nil, problem.New(problem.Conflict, "application %s has no revision before %d", p.id, a.Version)
	}
	return r, err
}

// Put carries it out, as an update by the author. The error is that of Change.Put, or Conflict when the
// application has changed since it was prepared.
func (p *Prepared) Put(
	ctx context.Context, tx *store.Tx, author string, seen etag.Match, lostAfter time.Duration,
) (*Application, error) {
	if p.from != 0 {
		a, err := one(ctx, tx, selectOneForUpdate, p.id)
		if err != nil {
			return nil, err
		}
		if a.Version != p.from {
			return nil, problem.New(problem.Conflict, "application %s was changed at the same time; look, and try again", p.id)
		}
	}
	return p.change.Put(ctx, tx, author, seen, lostAfter)
}
