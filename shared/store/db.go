// Package store is the way to Postgres: a pool that dials on first use, transactions that announce what they changed,
// the outbox, the inbox and the migrations.
//
// A function changes rows and emits events through one Tx; the events are published after the commit, and by the outbox
// sweep for whatever a crash left behind. What a newcomer gets wrong: nothing but Tx.Emit may announce a change.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/problem"
)

// Config is read from the environment by envconfig.
type Config struct {
	DatabaseURL string `envconfig:"DATABASE_URL"`
	MaxConns    int32  `envconfig:"DATABASE_MAX_CONNS" default:"2"` // per instance: many instances share one Postgres
	EventKey    string `envconfig:"EVENT_KEY"`                      // shared key that signs events; empty = unsigned
}

// Querier is what reading needs; a pool and a transaction both have it.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// DB is a lazily dialled Postgres with the Broker that its outbox is published to.
type DB struct {
	*pgxpool.Pool
	publisher events.Publisher
	eventKey  string
}

// Open returns a DB that has not dialled yet. The tracer, nil in production, sees every statement.
func Open(ctx context.Context, c Config, p events.Publisher, tracer pgx.QueryTracer) (*DB, error) {
	pc, err := pgxpool.ParseConfig(c.DatabaseURL)
	if err != nil {
		return nil, fmt.Errorf("DATABASE_URL: %w", err)
	}
	pc.MaxConns, pc.MinConns = max(c.MaxConns, 1), 0
	pc.MaxConnIdleTime = 30 * time.Second
	pc.ConnConfig.Tracer = tracer
	pc.ConnConfig.RuntimeParams["application_name"] = "littoral"
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("open pool: %w", err)
	}
	return &DB{Pool: pool, publisher: p, eventKey: c.EventKey}, nil
}

// Tx is a transaction that can announce what it changes.
type Tx struct {
	Querier
	source  string
	emitted []cloudevents.Event
	last    pgx.Batch
}

// Append adds a row that nothing in this transaction reads, such as one of history. It travels with the commit, in one
// round trip for all of them, and so does its error.
func (tx *Tx) Append(sql string, args ...any) { tx.last.Queue(sql, args...) }

type sourceKey struct{}

// WithSource returns ctx in which emitted events name source as their producer, e.g. "/functions/jobmanager-group-create".
func WithSource(ctx context.Context, source string) context.Context {
	return context.WithValue(ctx, sourceKey{}, source)
}

// attempts bounds how often Tx repeats after a deadlock or serialization failure.
const attempts = 3

// Tx runs fn in one transaction, commits, and then publishes what fn emitted. A publish that fails is left to the
// sweep: the change is committed either way. fn may run again after a deadlock, so it must not touch the outside.
func (db *DB) Tx(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) error {
	var err error
	for range attempts {
		var tx *Tx
		tx, err = db.once(ctx, fn)
		if err == nil {
			db.publish(ctx, tx.emitted)
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
	if _, err := conn.Exec(ctx, "begin"); err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	source, ok := ctx.Value(sourceKey{}).(string)
	if !ok {
		source = "/littoral"
	}
	tx := &Tx{Querier: conn, source: source}
	defer func() {
		if conn.Conn().PgConn().TxStatus() != 'I' {
			// The rollback must reach Postgres even when the caller has given up.
			_, _ = conn.Exec(context.WithoutCancel(ctx), "rollback")
		}
	}()
	if err := fn(ctx, tx); err != nil {
		return nil, err
	}
	if err := tx.commit(ctx, conn); err != nil {
		return nil, fmt.Errorf("commit: %w", err)
	}
	return tx, nil
}

// commit sends what was appended and the commit together. Postgres skips the rest, the commit with it, when a row fails.
func (tx *Tx) commit(ctx context.Context, conn *pgxpool.Conn) error {
	tx.last.Queue("commit").Exec(func(tag pgconn.CommandTag) error {
		if tag.String() == "ROLLBACK" { // an earlier statement had failed and fn kept that to itself
			return pgx.ErrTxCommitRollback
		}
		return nil
	})
	return conn.SendBatch(ctx, &tx.last).Close()
}

func (db *DB) publish(ctx context.Context, emitted []cloudevents.Event) {
	if len(emitted) == 0 {
		return
	}
	// The caller may hang up after the commit; the publish goes on for a while all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if _, err := db.Publish(ctx, emitted); err != nil {
		slog.WarnContext(ctx, "events stay in the outbox for the sweep", "error", err)
	}
}

func repeatable(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}

// Classify gives an error of Postgres that the caller can wait out the kind Unavailable, and one about text that Postgres
// cannot hold the kind Invalid; others pass unchanged.
func Classify(err error) error {
	if err == nil || problem.KindOf(err) != problem.Internal {
		return err
	}
	var pg *pgconn.PgError
	var connect *pgconn.ConnectError
	var network net.Error
	switch {
	case errors.As(err, &pg) && (pg.Code == "22021" || pg.Code == "22P05"):
		return problem.Wrap(problem.Invalid, err, "a text holds a NUL character or is not UTF-8")
	case errors.As(err, &pg):
		// 08 connection, 53 resources (too many connections), 57 operator intervention (restart, shutdown), 40 conflicts.
		if strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "53") || strings.HasPrefix(pg.Code, "57P") || repeatable(err) {
			return problem.Wrap(problem.Unavailable, err, "the store is away; try again")
		}
	case errors.As(err, &connect), errors.As(err, &network), pgconn.Timeout(err), pgconn.SafeToRetry(err),
		strings.Contains(err.Error(), "unexpected EOF"), strings.Contains(err.Error(), "conn closed"):
		return problem.Wrap(problem.Unavailable, err, "the store is away; try again")
	}
	return err
}

// IsUniqueViolation reports whether err is a violation of the named unique constraint or index.
func IsUniqueViolation(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23505" && pg.ConstraintName == constraint
}
