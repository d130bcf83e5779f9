package store

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// dialling bounds how long an expected connection may take. Whoever needs it then dials with his own deadline.
const dialling = 5 * time.Second

// expected is the connection that Expect dials, if it does.
type expected struct {
	mu    sync.Mutex
	ready chan struct{} // closed when it is there or cannot be had; nil when none is on its way
}

// Expect says that the store is about to be asked. Without a connection it dials one, while its caller does something
// else that takes its time, such as finding out who is calling. What goes wrong is told to whoever asks the store.
func (db *DB) Expect(ctx context.Context) {
	db.expected.mu.Lock()
	defer db.expected.mu.Unlock()
	if db.expected.ready != nil || db.Stat().TotalConns() > 0 {
		return
	}
	ready := make(chan struct{})
	db.expected.ready = ready
	go func() {
		// The caller may be refused or hang up meanwhile; the next one needs the connection as well.
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

// await waits for a connection that is on its way: the pool would dial another.
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

// Acquire, Query, QueryRow and Exec are those of the pool, after any connection that is expected.

// Acquire returns a connection, which the caller releases.
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
