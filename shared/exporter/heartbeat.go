package exporter

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/bus/keyexpr"
	"github.com/littoral-project/littoral/shared/store"
)

// atOnce is how many keys are repeated or deleted in one transaction.
const atOnce = 1000

const (
	selectQuiet = `select v.key from exported_components c join bus_values v on v.key = c.instance || '/' || c.component
where c.ended_at is null and not v.deleted and v.at < now() - $1::interval order by v.number limit $2`

	deleteEnded = `delete from exported_components where ctid = any(array(
select ctid from exported_components where ended_at < now() - $1::interval limit $2)) returning instance || '/' || component`
)

// Repeat publishes again what was published longer ago than every, and deletes the keys of components that ended longer ago
// than kept.
func Repeat(ctx context.Context, db *store.DB, every, kept time.Duration) error {
	for more := true; more; {
		err := db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error {
			quiet, err := store.Collect(ctx, tx, "find quiet keys", pgx.RowTo[keyexpr.Expr], selectQuiet, every, atOnce)
			if err != nil {
				return err
			}
			ended, err := store.Collect(ctx, tx, "delete what ended", pgx.RowTo[keyexpr.Expr], deleteEnded, kept, atOnce)
			if err != nil {
				return err
			}
			more = len(quiet) == atOnce || len(ended) == atOnce
			changes := make([]bus.Change, len(ended))
			for i, key := range ended {
				changes[i] = bus.Change{Key: key, Delete: true}
			}
			if err := bus.Publish(ctx, tx, changes...); err != nil {
				return err
			}
			return bus.Repeat(ctx, tx, quiet)
		})
		if err != nil {
			return fmt.Errorf("repeat what was published: %w", err)
		}
	}
	return nil
}
