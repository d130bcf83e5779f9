package store

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Tenant is for whom rows are read or changed. Where functions have roles, Postgres lets those that ask for tenants (shared/roles,
// tenants.sql) see and change no rows of others, whatever the statement says.
type Tenant string

// Everybody is no tenant: all rows are seen.
const Everybody Tenant = "all"

// Application is the tenant that sees itself.
func Application(id string) Tenant { return Tenant("application:" + id) }

// Person is the tenant that sees the applications that he or she handed in.
func Person(subject string) Tenant { return Tenant("person:" + subject) }

// setTenant acts until the transaction ends, so the connection has forgotten it for whom a pooler gives it next.
const setTenant = `select set_config('littoral.tenant', $1, true)`

// As returns the store for statements about rows of the tenant. Each is a transaction of its own, and says for whom it is in the same
// round trip.
func (db *DB) As(t Tenant) Querier { return asking{db, t} }

type asking struct {
	db     *DB
	tenant Tenant
}

// send sends the statement behind the name of the tenant: what is sent together is one transaction.
func (a asking) send(ctx context.Context, sql string, args []any) (pgx.BatchResults, error) {
	var batch pgx.Batch
	batch.Queue(setTenant, string(a.tenant))
	batch.Queue(sql, args...)
	answers := a.db.SendBatch(ctx, &batch)
	_, err := answers.Exec()
	return answers, err
}

// Exec runs a statement without rows.
func (a asking) Exec(ctx context.Context, sql string, args ...any) (tag pgconn.CommandTag, err error) {
	answers, err := a.send(ctx, sql, args)
	if err == nil {
		tag, err = answers.Exec()
	}
	if closed := answers.Close(); err == nil {
		err = closed
	}
	return tag, err
}

// Query runs a statement with rows, which must be read or closed.
func (a asking) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	answers, _ := a.send(ctx, sql, args) // after an error the next answer is the same one
	rows, err := answers.Query()
	found := &found{Rows: rows, answers: answers}
	if err != nil {
		found.Close()
	}
	return found, err
}

// QueryRow runs a statement with one row; Scan returns pgx.ErrNoRows when there is none.
func (a asking) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, err := a.Query(ctx, sql, args...)
	return row{rows, err}
}
