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
	LockBus       Lock = 7461128 // giving the numbers of what is published
	LockMetadata  Lock = 7461129 // publishing events about the metadata graph
	LockAddresses Lock = 7461130 // giving out addresses
	LockPlacement Lock = 4208716350
)

// String names the lock. The switch also makes two locks of the same number a compile error.
func (l Lock) String() string {
	switch l {
	case LockTopology:
		return "topology"
	case LockArchive:
		return "archive"
	case LockBus:
		return "bus"
	case LockMetadata:
		return "metadata"
	case LockAddresses:
		return "addresses"
	case LockPlacement:
		return "placement"
	}
	return fmt.Sprintf("lock %d", int64(l))
}

// Turn is a kind of advisory lock on a text, for work on one thing that may have no row to lock yet: requests about the same
// text take turns.
type Turn int64

// The kinds of turns.
const (
	TurnIdempotencyKey  Turn = 1 // of a caller and its Idempotency-Key
	TurnPolicy          Turn = 2 // of a policy's id
	TurnActions         Turn = 3 // of an instance whose remediations are weighed
	TurnApplicationName Turn = 4 // of the name of an application
	TurnModel           Turn = 5 // of the name of a model
)

// String names the kind.
func (k Turn) String() string {
	switch k {
	case TurnIdempotencyKey:
		return "idempotency key"
	case TurnPolicy:
		return "policy"
	case TurnActions:
		return "actions"
	case TurnApplicationName:
		return "application name"
	case TurnModel:
		return "model name"
	}
	return fmt.Sprintf("turn %d", int64(k))
}

// AwaitTurn waits until no other transaction has the turn of this kind and text, and keeps it until this transaction ends.
func (tx *Tx) AwaitTurn(ctx context.Context, kind Turn, text string) error {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended($1, $2))`, text, int64(kind)); err != nil {
		return fmt.Errorf("wait for the turn of the %s: %w", kind, err)
	}
	return nil
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
