// Package store is the access to Postgres: a pool that dials on first use, transactions that announce what they
// changed, the outbox and the inbox.
//
// A function changes rows and emits events through one Tx; the events are published after the commit, while the
// function answers. What a crash or an absent Broker left behind is published by the outbox sweep, by the next process
// that reaches the Broker, and by processes that end. What a newcomer gets wrong: nothing but Tx.Emit may announce a
// change.
package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/problem"
)

// Config is read from the environment by envconfig.
//
// Statements are prepared once per connection. A PgBouncer in transaction mode forgets them if its
// max_prepared_statements is 0 (the default before 1.24, and always so before 1.21). Then the URL must end in
// ?default_query_exec_mode=cache_describe, a setting of pgx.
type Config struct {
	DatabaseURL string `envconfig:"DATABASE_URL"`
	MaxConns    int32  `envconfig:"DATABASE_MAX_CONNS" default:"2"` // per instance: many instances share one Postgres
	EventKey    string `envconfig:"EVENT_KEY"`                      // shared key that signs events; empty = unsigned

	// PublishAtOnce is how many events may be with the Broker at a time; 0 = 1. A Broker may hold each until its
	// consumers have taken it.
	PublishAtOnce int `envconfig:"PUBLISH_AT_ONCE" default:"16"`
}

// Querier runs statements; both a DB and a Tx are one.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// DB is a Postgres that is dialled on first use, and the Broker that its outbox is published to.
type DB struct {
	*pgxpool.Pool
	publisher  events.Publisher
	publishing *publishing
	eventKey   string
	expected   expected
}

// A machine that has died does not refuse a connection, it just does not answer. Without these limits a Postgres that
// has moved would be awaited at its former address, for the minutes that TCP takes, by each of the few connections.
// Settings in the URL (connect_timeout, pool_ping_timeout) override them.
const (
	connectsWithin = 10 * time.Second // as long as a call may take, by default
	answersWithin  = 3 * time.Second  // for the check of a connection that was idle
)

// Open returns a DB that has not dialled yet. The tracer, nil in production, is told of every statement.
func Open(ctx context.Context, c Config, p events.Publisher, tracer pgx.QueryTracer) (*DB, error) {
	pc, err := pgxpool.ParseConfig(c.DatabaseURL)
	if err != nil {
		return nil, fmt.Errorf("DATABASE_URL: %w", err)
	}
	pc.MaxConns, pc.MinConns = max(c.MaxConns, 1), 0
	pc.MaxConnIdleTime = 30 * time.Second
	pc.PingTimeout = cmp.Or(pc.PingTimeout, answersWithin)
	pc.ConnConfig.ConnectTimeout = cmp.Or(pc.ConnConfig.ConnectTimeout, connectsWithin)
	pc.ConnConfig.Tracer = tracer
	pc.ConnConfig.RuntimeParams["application_name"] = "littoral"
	pc.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		registerIDs(conn.TypeMap())
		return nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("open pool: %w", err)
	}
	db := &DB{Pool: pool, publisher: p, eventKey: c.EventKey}
	db.publishing = newPublishing(db, c.PublishAtOnce)
	return db, nil
}

// Close ends the store. Events that are still being published stay in the outbox; call Settle first to get them out.
func (db *DB) Close() {
	db.publishing.stop()
	db.Pool.Close()
}

// Classify makes an error of Postgres Unavailable if a later repeat may succeed, and Invalid if it is about text that
// Postgres cannot store; others stay as they are.
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
		// Classes: 08 connection (from a PgBouncer, also a wrong password), 28 authorization (a password is being
		// changed), 53 resources (too many connections), 57 operator intervention (restart, shutdown, statement
		// timeout). Codes: 25P03 idle-in-transaction timeout, 25006 read-only (a standby), 55P03 lock timeout; and
		// those that Tx repeats itself.
		if slices.Contains([]string{"08", "28", "53", "57"}, pg.Code[:min(len(pg.Code), 2)]) ||
			slices.Contains([]string{"25P03", "25006", "55P03"}, pg.Code) || repeatable(err) {
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
