package store

import (
	"context"
	"fmt"
)

// Lock is the number of an advisory lock, for work that only one transaction in all processes may do at a time.
type Lock int64

// The locks.
const (
	LockTopology  Lock = 7461126 // storing what the infrastructure looks like
	LockArchive   Lock = 7461127 // moving a batch into the archive
	LockPlacement Lock = 4208716350
)

// String names the lock. The switch also makes two locks of the same number a compile error.
func (l Lock) String() string {
	switch l {
	case LockTopology:
		return "topology"
	case LockArchive:
		return "archive"
	case LockPlacement:
		return "placement"
	}
	return fmt.Sprintf("lock %d", int64(l))
}

// Lock waits until no other transaction holds the lock and keeps it until this transaction ends.
func (tx *Tx) Lock(ctx context.Context, l Lock) error {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, int64(l)); err != nil {
		return fmt.Errorf("lock %s: %w", l, err)
	}
	return nil
}

// TryLock is Lock without waiting: got says whether the lock was free.
func (tx *Tx) TryLock(ctx context.Context, l Lock) (got bool, err error) {
	if err := tx.QueryRow(ctx, `select pg_try_advisory_xact_lock($1)`, int64(l)).Scan(&got); err != nil {
		return false, fmt.Errorf("lock %s: %w", l, err)
	}
	return got, nil
}
