package store

import (
	"context"
	"fmt"
)

// Lock is something that one transaction does at a time, in all processes; the number is that of an advisory lock.
type Lock int64

// What is done by one at a time.
const (
	LockTopology  Lock = 7461126 // storing what the infrastructure looks like
	LockArchive   Lock = 7461127 // moving a batch into the archive
	LockClocks    Lock = 7461128 // winding the clocks
	LockPlacement Lock = 4208716350
)

// String names the lock; two with one number do not compile here.
func (l Lock) String() string {
	switch l {
	case LockTopology:
		return "topology"
	case LockArchive:
		return "archive"
	case LockClocks:
		return "clocks"
	case LockPlacement:
		return "placement"
	}
	return fmt.Sprintf("lock %d", int64(l))
}

// Lock waits for other transactions that hold the lock, and keeps it until the end of this one.
func (tx *Tx) Lock(ctx context.Context, l Lock) error {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, int64(l)); err != nil {
		return fmt.Errorf("lock %s: %w", l, err)
	}
	return nil
}

// TryLock is Lock for one that does not wait: it says whether it has the lock.
func (tx *Tx) TryLock(ctx context.Context, l Lock) (got bool, err error) {
	if err := tx.QueryRow(ctx, `select pg_try_advisory_xact_lock($1)`, int64(l)).Scan(&got); err != nil {
		return false, fmt.Errorf("lock %s: %w", l, err)
	}
	return got, nil
}
