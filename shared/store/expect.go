package store

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// dialling limits how long an expected connection may take. After that, a caller that needs one dials with its own
// deadline.
const dialling = 5 * time.Second

// expected is the connection that Expect is dialling, if any.
type expected struct {
	mu    sync.Mutex
	ready chan struct{} // closed when dialling has succeeded or failed; nil when none is being dialled
}

// Expect says that the store will be asked soon. If there is no connection yet, one is dialled in the background, while
// the caller does something else that takes time, such as checking a token. A failure shows up when the store is asked.
func (db *DB) Expect(ctx context.Context) {
	db.expected.mu.Lock()
	defer db.expected.mu.Unlock()
	if db.expected.ready != nil || db.Stat().TotalConns() > 0 {
		return
	}
	ready := make(chan struct{})
	db.expected.ready = ready
	go func() {
		// Go on even if this caller is refused or hangs up: the next one needs the connection as well.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialling)
		defer cancel()
		if conn, err := db.Pool.Acquire(ctx); err == nil {
			conn.Release()
		}
		db.expected.mu.Lock()
		db.expected.ready = nil
		db.expected.mu.Unlock()
		close(ready)
	}()
}

// await waits for a connection that is being dialled; otherwise the pool would dial another.
func (db *DB) await(ctx context.Context) {
	db.expected.mu.Lock()
	ready := db.expected.ready
	db.expected.mu.Unlock()
	if ready == nil {
		return
	}
	select {
	case <-ready:
	case <-ctx.Done():
	}
}

// Acquire, Query, QueryRow and Exec are those of the pool, but first wait for a connection that is being dialled.

// Acquire returns a connection, which the caller must release.
func (db *DB) Acquire(ctx context.Context) (*pgxpool.Conn, error) {
	db.await(ctx)
	return db.Pool.Acquire(ctx)
}

// Query makes DB a Querier.
func (db *DB) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	db.await(ctx)
	return db.Pool.Query(ctx, sql, args...)
}

// QueryRow makes DB a Querier.
func (db *DB) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	db.await(ctx)
	return db.Pool.QueryRow(ctx, sql, args...)
}

// Exec makes DB a Querier.
func (db *DB) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	db.await(ctx)
	return db.Pool.Exec(ctx, sql, args...)
}
