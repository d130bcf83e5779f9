package application

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/store"
)

const selectWaiting = `select distinct j.application_id from jobs j join applications a on a.id = j.application_id
where j.state = 'Created' and j.type = 'CreateDeployment' and j.cluster = '' and j.cleans is null
and a.desired = 'running' and a.deleted_at is null order by 1`

// Waiting returns the applications with a component that waits for a place.
func Waiting(ctx context.Context, q store.Querier) ([]uuid.UUID, error) {
	return store.Collect(ctx, q, "find what is to be placed", pgx.RowTo[uuid.UUID], selectWaiting)
}

const selectStrained = `select distinct j.application_id from jobs j join applications a on a.id = j.application_id
where j.cluster <> '' and j.cleans is null and j.type <> 'DeleteDeployment'
and (j.excluded @> jsonb_build_array(jsonb_build_object('cluster_name', j.cluster, 'node_name', j.node))
  or j.conditions @> '[{"reason": "` + job.ReasonMisfit + `"}]')
and a.desired = 'running' and a.deleted_at is null order by 1`

// Strained returns the applications with a component that is in the wrong place and fitted nowhere else.
func Strained(ctx context.Context, q store.Querier) ([]uuid.UUID, error) {
	return store.Collect(ctx, q, "find what is to be placed", pgx.RowTo[uuid.UUID], selectStrained)
}

const selectOverlooked = `select id from applications where judged < version and desired = 'running' and deleted_at is null
order by 1`

// Overlooked returns the applications with an update that the matchmaker is yet to look at: the news of it may still be on
// its way, nothing was known of the infrastructure when it came, or nothing of a node where a component runs, or it was seen
// to by a matchmaker that keeps no record.
func Overlooked(ctx context.Context, q store.Querier) ([]uuid.UUID, error) {
	return store.Collect(ctx, q, "find what is to be placed", pgx.RowTo[uuid.UUID], selectOverlooked)
}

// Judged notes that the matchmaker has looked at the application as it is now. The caller has locked it.
func Judged(tx *store.Tx, id uuid.UUID) { tx.Append(updateJudged, id) }

// Remind has the matchmaker look at what waits for a place, or for another, or was overlooked, if anything is. Most of what
// makes room is told by an event of its own; not all that a placement is decided by is worth one, such as a node's load.
func Remind(ctx context.Context, tx *store.Tx) error {
	for _, list := range []func(context.Context, store.Querier) ([]uuid.UUID, error){Waiting, Strained, Overlooked} {
		all, err := list(ctx, tx)
		if err != nil {
			return err
		}
		if len(all) > 0 {
			return tx.Emit(ctx, events.ApplicationWaiting, all[0].String(), events.Application{ID: all[0]})
		}
	}
	return nil
}
