package application

import (
	"bytes"
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/job"
	"github.com/littoral-project/littoral/shared/store"
)

// Those who look at what waits go through it in the order of ids, so that each comes to its turn however many there are.
const (
	selectWaiting = `select distinct j.application_id from jobs j join applications a on a.id = j.application_id
where j.state = 'Created' and j.type = 'CreateDeployment' and j.cluster = '' and j.cleans is null
and a.desired = 'running' and a.deleted_at is null and j.application_id >= $1 order by 1 limit $2`

	selectStrained = `select distinct j.application_id from jobs j join applications a on a.id = j.application_id
where j.cluster <> '' and j.cleans is null and j.type <> 'DeleteDeployment'
and (j.excluded @> jsonb_build_array(jsonb_build_object('cluster_name', j.cluster, 'node_name', j.node))
  or j.conditions @> '[{"reason": "` + job.ReasonMisfit + `"}]')
and a.desired = 'running' and a.deleted_at is null and j.application_id >= $1 order by 1 limit $2`

	selectOverlooked = `select id from applications where judged < version and desired = 'running' and deleted_at is null
and id >= $1 order by 1 limit $2`
)

// Waiting returns the applications with a component that waits for a place, from that id on and at most limit.
func Waiting(ctx context.Context, q store.Querier, from uuid.UUID, limit int) ([]uuid.UUID, error) {
	return store.Collect(ctx, q, "find what is to be placed", pgx.RowTo[uuid.UUID], selectWaiting, from, limit)
}

// Strained returns the applications with a component that is in the wrong place and fitted nowhere else, from that id on and
// at most limit.
func Strained(ctx context.Context, q store.Querier, from uuid.UUID, limit int) ([]uuid.UUID, error) {
	return store.Collect(ctx, q, "find what is to be placed", pgx.RowTo[uuid.UUID], selectStrained, from, limit)
}

// Overlooked returns the applications with an update that the matchmaker is yet to look at, from that id on and at most
// limit: the news of it may still be on its way, nothing was known of the infrastructure when it came, or nothing of a node
// where a component runs, or it was seen to by a matchmaker that keeps no record.
func Overlooked(ctx context.Context, q store.Querier, from uuid.UUID, limit int) ([]uuid.UUID, error) {
	return store.Collect(ctx, q, "find what is to be placed", pgx.RowTo[uuid.UUID], selectOverlooked, from, limit)
}

// Judged notes that the matchmaker has looked at the application as it is now. The caller has locked it.
func Judged(tx *store.Tx, id uuid.UUID) { tx.Append(updateJudged, id) }

// Remind has the matchmaker look at what waits for a place, or for another, or was overlooked, if anything is. Most of what
// makes room is told by an event of its own; not all that a placement is decided by is worth one, such as a node's load.
func Remind(ctx context.Context, tx *store.Tx) error {
	first := uuid.Max
	for _, list := range []func(context.Context, store.Querier, uuid.UUID, int) ([]uuid.UUID, error){
		Waiting, Strained, Overlooked,
	} {
		found, err := list(ctx, tx, uuid.Nil, 1)
		if err != nil {
			return err
		}
		for _, id := range found {
			if bytes.Compare(id[:], first[:]) < 0 {
				first = id
			}
		}
	}
	if first == uuid.Max {
		return nil
	}
	return tx.Emit(ctx, events.ApplicationWaiting, first.String(), events.Application{ID: first})
}
