package store

import (
	"context"
	"fmt"
)

// Restored has all events published again that are in the outbox of a database that comes from a backup: whoever has taken
// them since has no longer done so.
func Restored(ctx context.Context, tx *Tx) error {
	if _, err := tx.Exec(ctx, `update outbox set accepted = 0, tried_at = null`); err != nil {
		return fmt.Errorf("have events published again: %w", err)
	}
	return nil
}
