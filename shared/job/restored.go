package job

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/store"
)

const (
	// Copies in clusters carry the epoch of the decision that made them, and one of a lower epoch never overwrites them.
	raiseEpochs = `update jobs set epoch = epoch + $1`

	giveAgain = `update jobs j set type = 'ReplaceDeployment', sub_type = '', state = 'Created', remediations = '[]', lease_until = null
from (select id, state from jobs where type <> 'DeleteDeployment' and state <> 'Created' and owner_id <> '' and owner_id not like $1
  order by id for update) former
where j.id = former.id returning j.id, j.application_id, j.component, former.state`
)

// Restored prepares jobs that come from a backup: their decisions are newer than any that was made since, by ahead; and
// what agents have taken is given to these agents again, because only they can compare what they run. Our own
// deployment managers, whose owner_id is like managers, compare by themselves.
func Restored(ctx context.Context, tx *store.Tx, ahead int64, managers string) error {
	if _, err := tx.Exec(ctx, raiseEpochs, ahead); err != nil {
		return fmt.Errorf("raise the epochs: %w", err)
	}
	rows, err := tx.Query(ctx, giveAgain, managers)
	if err != nil {
		return fmt.Errorf("give agents their jobs again: %w", err)
	}
	var given []*Job
	before := map[uuid.UUID]State{}
	j, was := Job{State: Created}, State("")
	if _, err := pgx.ForEachRow(rows, []any{&j.ID, &j.ApplicationID, &j.Component, &was}, func() error {
		one := j
		given, before[j.ID] = append(given, &one), was
		return nil
	}); err != nil {
		return fmt.Errorf("give agents their jobs again: %w", err)
	}
	for _, j := range given {
		if err := j.record(ctx, tx, Change, before[j.ID], "the database was restored from a backup: its agent may have carried out something newer"); err != nil {
			return err
		}
	}
	return nil
}
