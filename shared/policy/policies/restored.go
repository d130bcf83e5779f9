package policies

import (
	"context"
	"fmt"

	"github.com/littoral-project/littoral/shared/store"
)

// Restored makes the rule store follow every policy once more, in a database that comes from a backup: its rules may be
// later ones. Those of policies that were made since are orphans, which Reconcile removes.
func Restored(ctx context.Context, tx *store.Tx) error {
	if _, err := tx.Exec(ctx, `update policies set rule_wanted = rule_wanted + 1`); err != nil {
		return fmt.Errorf("have the rules written again: %w", err)
	}
	return nil
}
