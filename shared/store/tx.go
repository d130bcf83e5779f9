package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Tx is a transaction that can announce what it changes. It is a Querier.
//
// A round trip costs more than most statements, so what nobody waits for travels with what follows: what begins it with the
// first statement that has an answer, appended ones with the next, and the last of them with the commit. Postgres works
// them off in the order in which they were given, and skips what follows one that fails.
type Tx struct {
	conn    *pgxpool.Conn
	source  string
	emitted []cloudevents.Event
	waiting pgx.Batch // given, not sent yet
	failed  error     // of a statement that had travelled along: the transaction is over
}

// Append gives a statement whose answer does not matter, such as the row of history that goes with a change. It travels
// with the next statement that has an answer, or with the commit, and so does its error. What args point to must not
// change until then.
func (tx *Tx) Append(sql string, args ...any) { tx.waiting.Queue(sql, args...) }

// Exec runs a statement and says what became of it.
func (tx *Tx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	answers := tx.send(ctx, sql, args)
	if answers == nil {
		return tx.conn.Exec(ctx, sql, args...)
	}
	tag, err := answers.Exec()
	if closed := answers.Close(); err == nil {
		err = closed
	}
	return tag, err
}

// Query runs a statement that answers with rows, which are to be read or closed before anything else.
func (tx *Tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	answers := tx.send(ctx, sql, args)
	if answers == nil {
		return tx.conn.Query(ctx, sql, args...)
	}
	rows, err := answers.Query()
	found := &found{Rows: rows, answers: answers}
	if err != nil {
		found.Close()
	}
	return found, err
}

// QueryRow runs a statement that answers with one row; Scan returns pgx.ErrNoRows when there is none.
func (tx *Tx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, err := tx.Query(ctx, sql, args...)
	return row{rows, err}
}

// send sends what waits together with the statement and reads the answers before its own; nil when nothing waits.
func (tx *Tx) send(ctx context.Context, sql string, args []any) pgx.BatchResults {
	if tx.failed != nil { // it may have been "begin", so nothing more may reach Postgres
		return pgx.FailedBatchResults(&tx.waiting, tx.failed)
	}
	ahead := tx.waiting.Len()
	if ahead == 0 {
		return nil
	}
	batch := tx.waiting
	tx.waiting = pgx.Batch{}
	batch.Queue(sql, args...)
	answers := tx.conn.SendBatch(ctx, &batch)
	for range ahead {
		if _, tx.failed = answers.Exec(); tx.failed != nil {
			break // whoever asks for the next answer gets the same error
		}
	}
	return answers
}

// open reports whether Postgres is within the transaction.
func (tx *Tx) open() bool { return tx.conn.Conn().PgConn().TxStatus() != 'I' }

// commit ends the transaction. One in which nothing was said is none.
func (tx *Tx) commit(ctx context.Context) error {
	if tx.failed == nil && !tx.open() && tx.waiting.Len() == opening {
		return nil
	}
	tag, err := tx.Exec(ctx, "commit")
	if err == nil && tag.String() == "ROLLBACK" { // an earlier statement had failed and its error was kept back
		return pgx.ErrTxCommitRollback
	}
	return err
}

// found are the rows at the end of a batch, which they close with themselves.
type found struct {
	pgx.Rows
	answers pgx.BatchResults
	err     error
}

func (f *found) Next() bool {
	if f.Rows.Next() {
		return true
	}
	f.Close()
	return false
}

func (f *found) Close() {
	f.Rows.Close()
	if err := f.answers.Close(); f.err == nil {
		f.err = err
	}
}

func (f *found) Err() error {
	if err := f.Rows.Err(); err != nil {
		return err
	}
	return f.err
}

// row is the first of some rows.
type row struct {
	rows pgx.Rows
	err  error
}

func (r row) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	r.rows.Close()
	return r.rows.Err()
}

// opening is how many statements begin adds.
const opening = 2

// Postgres does not see that a machine is gone for hours, and keeps what its transactions have locked. It ends one that has
// been given nothing to do for longer than its call can take.
const (
	endAbandoned   = `select set_config('idle_in_transaction_session_timeout', $1, true)`
	abandonedAfter = 30 * time.Second // the end of the call
	endless        = 2 * time.Minute  // what a call may take that has no end
)

func (tx *Tx) begin(ctx context.Context) {
	most := endless
	if end, ok := ctx.Deadline(); ok {
		most = max(time.Until(end), 0)
	}
	tx.Append("begin")
	tx.Append(endAbandoned, strconv.FormatInt((most+abandonedAfter).Milliseconds(), 10))
}

type sourceKey struct{}

// WithSource returns ctx in which emitted events name source as their producer, e.g. "/functions/jobmanager-group-create".
func WithSource(ctx context.Context, source string) context.Context {
	return context.WithValue(ctx, sourceKey{}, source)
}

// attempts bounds how often Tx repeats after a deadlock or serialization failure.
const attempts = 3

// rollbackFor bounds a rollback; without an answer the connection is closed, and Postgres ends the transaction itself.
const rollbackFor = 5 * time.Second

// repeatAfter is the least pause before the first repeat.
const repeatAfter = 10 * time.Millisecond

// Tx runs fn in one transaction and commits. What fn emitted is published from then on, in the background: Tx returns
// before, and a publish that fails is left to the sweep. fn may run again after a deadlock, so it must not touch the
// outside.
func (db *DB) Tx(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	var err error
	for i := range attempts {
		if i > 0 { // at once, the repeat could take the row again that the other side has just been waiting for
			select {
			case <-ctx.Done():
				return err
			case <-time.After(time.Duration(i)*repeatAfter + rand.N(repeatAfter)): //nolint:gosec // no secret
			}
		}
		var tx *Tx
		tx, err = db.once(ctx, fn)
		if err == nil {
			db.publishing.announce(ctx, tx.emitted)
			return nil
		}
		if !repeatable(err) {
			break
		}
	}
	return err
}

func (db *DB) once(ctx context.Context, fn func(context.Context, *Tx) error) (*Tx, error) {
	conn, err := db.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	defer conn.Release() // which closes one that is still within a transaction
	source, ok := ctx.Value(sourceKey{}).(string)
	if !ok {
		source = "/littoral"
	}
	tx := &Tx{conn: conn, source: source}
	tx.begin(ctx)
	defer func() {
		if tx.open() {
			// The rollback must reach Postgres even when the caller has given up; but not for longer than a live one takes, or each
			// call that a lost machine has cut off would keep one of few connections for as long as TCP hopes.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackFor)
			defer cancel()
			_, _ = conn.Exec(ctx, "rollback")
		}
	}()
	if err := fn(ctx, tx); err != nil {
		return nil, err
	}
	if err := tx.commit(ctx); err != nil {
		return nil, fmt.Errorf("commit: %w", err)
	}
	return tx, nil
}

func repeatable(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}
