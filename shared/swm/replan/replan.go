// Package replan plans applications anew whose channels are out of QoS. It does so once for each trouble: after a pause it may try
// again, and after some attempts without success it leaves the rest to people, so that a link which comes and goes does not drive
// components to and fro.
package replan

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/match"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/channels"
	"github.com/littoral-project/littoral/shared/swm/qos"
)

// Settings bound how often an application is planned anew.
type Settings struct {
	match.Settings

	Pause time.Duration `envconfig:"REPLAN_PAUSE" default:"5m"`
	Most  int           `envconfig:"REPLAN_MOST"  default:"3"` // times before somebody has to look
}

const (
	// A trouble that is over for an hour is forgotten.
	forget = `delete from channel_replans where last_at < now() - interval '1 hour' and not application_id = any($1)`

	claim = `insert into channel_replans as r (application_id, times, last_at)
select id, 1, now() from applications where id = $1 and desired = 'running' and deleted_at is null
on conflict (application_id) do update set times = r.times + 1, last_at = now()
where r.last_at <= now() - $2::interval and r.times < $3`
)

// All plans anew the applications that have channels out of QoS, as far as they have not been lately, each in its own transaction.
func All(ctx context.Context, db *store.DB, s Settings) error {
	broken, err := qos.Read(ctx, db)
	if err != nil {
		return err
	}
	var ids []uuid.UUID
	for c := range broken {
		if c.Application != channels.Reserved && !slices.Contains(ids, c.Application) { // nobody here can move what is reserved
			ids = append(ids, c.Application)
		}
	}
	if _, err := db.Exec(ctx, forget, append([]uuid.UUID{}, ids...)); err != nil {
		return fmt.Errorf("forget troubles: %w", err)
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	for _, id := range ids {
		if err := db.Tx(ctx, func(ctx context.Context, tx *store.Tx) error { return one(ctx, tx, id, s) }); err != nil {
			return err
		}
	}
	return nil
}

// one plans an application anew, unless what was done for another has helped it meanwhile.
func one(ctx context.Context, tx *store.Tx, id uuid.UUID, s Settings) error {
	if err := match.Lock(ctx, tx); err != nil {
		return err
	}
	broken, err := qos.Read(ctx, tx)
	if err != nil {
		return err
	}
	why := ""
	for c, reason := range broken {
		if text := fmt.Sprintf("channel %s is out of QoS: %s", c.Name, reason); c.Application == id && (why == "" || text < why) {
			why = text
		}
	}
	if why == "" {
		return nil
	}
	mine, err := tx.Exec(ctx, claim, id, s.Pause, s.Most)
	if err != nil {
		return fmt.Errorf("note that an application is planned anew: %w", err)
	}
	if mine.RowsAffected() == 0 {
		return nil
	}
	_, err = match.Replan(ctx, tx, id, s.Settings, why)
	return err
}
