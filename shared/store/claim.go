package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/problem"
)

// Claim is the right to do something outside Postgres that only one may do at a time. The work has three steps: claim it,
// in the transaction that decides what to do; do it, with no transaction open; settle it, in the transaction that stores
// the outcome. Whoever dies in between leaves a claim that ends by itself, and the work is done once more. So what is done
// has to have a name of its own that a repeat uses again.
type Claim struct {
	key   string
	token uuid.UUID
	ends  time.Time // by our clock
}

const (
	insertClaim = `insert into claims (key, token, ends_at) values ($1, $2, now() + $3::interval)
on conflict (key) do update set token = excluded.token, ends_at = excluded.ends_at where claims.ends_at < now()`

	deleteClaim = `delete from claims where key = $1 and token = $2`

	forgetClaims = `delete from claims where ends_at < now() - interval '1 day'`
)

// claimMargin is how long before its end a claim is not used any more, since two clocks and a slow answer are involved.
const claimMargin = 5 * time.Second

// ErrClaimed says that somebody else is doing the work. It is Unavailable: an event is delivered again later.
var ErrClaimed = problem.New(problem.Unavailable, "somebody is doing this now; try again")

// Claim claims the work of that key for as long. The error is ErrClaimed while somebody else has it.
func (tx *Tx) Claim(ctx context.Context, key string, lasts time.Duration) (*Claim, error) {
	c := &Claim{key: key, token: uuid.New(), ends: time.Now().Add(lasts)}
	tag, err := tx.Exec(ctx, insertClaim, key, c.token, lasts)
	switch {
	case err != nil:
		return nil, fmt.Errorf("claim %s: %w", key, err)
	case tag.RowsAffected() == 0:
		return nil, ErrClaimed
	}
	return c, nil
}

// Do calls act with a context that ends before the claim does.
func (c *Claim) Do(ctx context.Context, act func(context.Context) error) error {
	ctx, cancel := context.WithDeadline(ctx, c.ends.Add(-claimMargin))
	defer cancel()
	return act(ctx)
}

// Complete ends the claim. held is false if it had ended before: then somebody else may have done the work since, and the
// outcome must not be stored.
func (tx *Tx) Complete(ctx context.Context, c *Claim) (held bool, err error) {
	tag, err := tx.Exec(ctx, deleteClaim, c.key, c.token)
	if err != nil {
		return false, fmt.Errorf("settle %s: %w", c.key, err)
	}
	return tag.RowsAffected() == 1, nil
}

// Release ends the claim when there is no outcome to store with its end, such as after a failure: the next one need not
// wait. It returns cause.
func (db *DB) Release(ctx context.Context, c *Claim, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackFor) // also when the caller has hung up
	defer cancel()
	if _, err := db.Exec(ctx, deleteClaim, c.key, c.token); err != nil {
		return errors.Join(cause, fmt.Errorf("release %s: %w", c.key, err))
	}
	return cause
}

// ForgetClaims deletes claims that ended long ago and were not taken up again.
func (db *DB) ForgetClaims(ctx context.Context) error {
	if _, err := db.Exec(ctx, forgetClaims); err != nil {
		return fmt.Errorf("forget claims: %w", err)
	}
	return nil
}
