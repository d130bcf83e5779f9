package store

import (
	"cmp"
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
// A round trip costs more than most statements, so statements whose answer nobody needs are sent together with the next
// one that has an answer: "begin" with the first, appended ones with the next, and the last of them with the commit.
// Postgres runs them in the order given and skips all that follow a failed one.
type Tx struct {
	conn    *pgxpool.Conn
	source  string
	emitted []cloudevents.Event
	waiting pgx.Batch // given, not sent yet
	failed  error     // error of a statement sent along with another: the transaction is over
}

// Append queues a statement whose answer does not matter, such as a row of history. It is sent with the next statement
// that has an answer, or with the commit, which then also return its error. What args point to must not change until
// then.
func (tx *Tx) Append(sql string, args ...any) { tx.waiting.Queue(sql, args...) }

// Exec runs a statement without rows.
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

// Query runs a statement with rows, which must be read or closed before the next statement.
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

// QueryRow runs a statement with one row; Scan returns pgx.ErrNoRows when there is none.
func (tx *Tx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, err := tx.Query(ctx, sql, args...)
	return row{rows, err}
}

// send sends the queued statements together with this one and reads all answers before its own; nil when none is
// queued.
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
			break // the reader of the next answer gets the same error
		}
	}
	return answers
}

// open reports whether Postgres has a transaction open.
func (tx *Tx) open() bool { return tx.conn.Conn().PgConn().TxStatus() != 'I' }

// commit ends the transaction. If nothing but its beginning is queued, there is none to end.
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

// found is the rows of the last statement of a batch; closing them also closes the batch.
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

// row is the first of the rows, as QueryRow returns it.
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

// opening is the number of statements that begin queues.
const opening = 2

// Postgres does not notice for hours that a client machine has died, and keeps the locks of its transactions. So each
// transaction lets Postgres end it if it is idle for longer than its call can take.
const (
	endAbandoned   = `select set_config('idle_in_transaction_session_timeout', $1, true)`
	abandonedAfter = 30 * time.Second // after the end of the call
	endless        = 2 * time.Minute  // assumed for a call without deadline
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

// Source returns what WithSource has named; "" if nobody has.
func Source(ctx context.Context) string {
	source, _ := ctx.Value(sourceKey{}).(string)
	return source
}

// attempts bounds how often Tx repeats after a deadlock or serialization failure.
const attempts = 3

// rollbackFor bounds a rollback. Without an answer the connection is closed, and Postgres ends the transaction itself.
const rollbackFor = 5 * time.Second

// repeatAfter is the shortest pause before the first repeat.
const repeatAfter = 10 * time.Millisecond

// Tx runs fn in one transaction and commits. The events that fn emitted are published in the background afterwards: Tx
// does not wait for that, and what fails is left to the sweep. fn may run again after a deadlock, so it must have no
// effects outside the transaction.
func (db *DB) Tx(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	var err error
	for i := range attempts {
		if i > 0 { // an immediate repeat could lock the row before the other side gets it
			select {
			case <-ctx.Done():
				return err
			case <-time.After(time.Duration(i)*repeatAfter + rand.N(repeatAfter)):
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
	defer conn.Release() // closes the connection if a transaction is still open
	tx := &Tx{conn: conn, source: cmp.Or(Source(ctx), "/littoral")}
	tx.begin(ctx)
	defer func() {
		if tx.open() {
			// Roll back even when the caller has given up, but not for long: after a machine was lost, each interrupted
			// call would otherwise keep one of the few connections for as long as TCP takes.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackFor)
			defer cancel()
			_, _ = conn.Exec(ctx, "rollback")
		}
	}()
	if err := fn(context.WithValue(ctx, insideKey{}, true), tx); err != nil {
		return nil, err
	}
	if err := tx.commit(ctx); err != nil {
		return nil, fmt.Errorf("commit: %w", err)
	}
	return tx, nil
}

type insideKey struct{}

// Inside reports whether ctx is that of a transaction, in which nobody may be called.
func Inside(ctx context.Context) bool {
	inside, _ := ctx.Value(insideKey{}).(bool)
	return inside
}

func repeatable(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}
