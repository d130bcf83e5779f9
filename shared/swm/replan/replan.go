// Package replan plans applications anew whose channels are out of QoS. Where forecasts are used, it also does so before channels are,
// and before a node is full. It does so once for each trouble: after a pause it may try again, and after some attempts without success
// it leaves the rest to people, so that a link which comes and goes does not drive components to and fro.
package replan

import (
	"context"
	"fmt"
	"maps"
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

// All plans anew the applications that have channels out of QoS or nodes that fill, as far as they have not been lately, each in its own
// transaction.
func All(ctx context.Context, db *store.DB, s Settings) error {
	now, err := read(ctx, db, s)
	if err != nil {
		return err
	}
	troubled := map[uuid.UUID]bool{}
	for _, all := range []qos.Broken{now.broken, now.coming} {
		for c := range all {
			troubled[c.Application] = true
		}
	}
	for i := range now.filling {
		troubled[now.filling[i].Application] = true
	}
	delete(troubled, channels.Reserved) // nobody here can move what is reserved
	ids := slices.Collect(maps.Keys(troubled))
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
	now, err := read(ctx, tx, s)
	if err != nil {
		return err
	}
	why, most := reason(now.broken, id, "is"), s.Most
	if why == "" { // a forecast that cannot be helped must not use up what is for the trouble itself
		why, most = reason(now.coming, id, "will be"), 1
	}
	if why == "" {
		if i := slices.IndexFunc(now.filling, func(f match.Filling) bool { return f.Application == id }); i >= 0 {
			why = now.filling[i].String()
		}
	}
	if why == "" {
		return nil
	}
	mine, err := tx.Exec(ctx, claim, id, s.Pause, most)
	if err != nil {
		return fmt.Errorf("note that an application is planned anew: %w", err)
	}
	if mine.RowsAffected() == 0 {
		return nil
	}
	_, err = match.Replan(ctx, tx, id, s.Settings, why)
	return err
}

// troubles are the channels that are out of QoS, those that will be, and the nodes that will be full.
type troubles struct {
	broken, coming qos.Broken
	filling        []match.Filling
}

func read(ctx context.Context, q store.Querier, s Settings) (now troubles, err error) {
	if now.broken, err = qos.Read(ctx, q); err != nil || !s.UseForecast {
		return now, err
	}
	if now.coming, err = qos.Foreseen(ctx, q, time.Now()); err != nil {
		return now, err
	}
	now.filling, err = match.FindFilling(ctx, q, s.Settings)
	return now, err
}

// reason is the first one for an application; empty if none of its channels is among those.
func reason(all qos.Broken, id uuid.UUID, verb string) (why string) {
	for c, because := range all {
		if text := fmt.Sprintf("channel %s %s out of QoS: %s", c.Name, verb, because); c.Application == id && (why == "" || text < why) {
			why = text
		}
	}
	return why
}
