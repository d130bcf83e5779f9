// Package store is the way to Postgres: a pool that dials on first use, transactions that announce what they changed,
// the outbox, the inbox and the migrations.
//
// A function changes rows and emits events through one Tx; the events are published after the commit, while the function
// answers. What a crash or an absent Broker left behind is published by the outbox sweep, by whoever reaches the Broker
// next, and by processes that end. What a newcomer gets wrong: nothing but Tx.Emit may announce a change.
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
// Statements are prepared once per connection. Behind a PgBouncer in transaction mode they cannot be where its
// max_prepared_statements is 0, as it is by default before 1.24 and always before 1.21; there the URL ends in
// ?default_query_exec_mode=cache_describe, a setting of pgx.
type Config struct {
	DatabaseURL string `envconfig:"DATABASE_URL"`
	MaxConns    int32  `envconfig:"DATABASE_MAX_CONNS" default:"2"` // per instance: many instances share one Postgres
	EventKey    string `envconfig:"EVENT_KEY"`                      // shared key that signs events; empty = unsigned

	// PublishAtOnce is how many events may be with the Broker at a time; 0 = 1. A Broker may hold each until its
	// consumers have taken it.
	PublishAtOnce int `envconfig:"PUBLISH_AT_ONCE" default:"16"`
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
	publisher  events.Publisher
	publishing *publishing
	eventKey   string
	expected   expected
}

// A machine that is gone does not say so: a Postgres that has moved would be waited for at its former place, by each of few
// connections, for the minutes that TCP hopes. Settings of the URL (connect_timeout, pool_ping_timeout) come before these.
const (
	connectsWithin = 10 * time.Second // which nobody waits longer for than a call takes
	answersWithin  = 3 * time.Second  // a connection that was not used for a while
)

// Open returns a DB that has not dialled yet. The tracer, nil in production, sees every statement.
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

// Close ends the store: what is being published is given up and stays in the outbox. Whoever wants it out calls Settle
// before.
func (db *DB) Close() {
	db.publishing.stop()
	db.Pool.Close()
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
		// 08 connection (to a PgBouncer, a wrong password as well), 28 who we are (a password is being changed), 53 resources
		// (too many connections), 57 operator intervention (restart, shutdown, a statement that took longer than is allowed),
		// 40 conflicts, 25P03 a transaction that was left alone, 25006 a standby, or a server that only reads for now, 55P03 a lock
		// that was waited for longer than is allowed.
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
