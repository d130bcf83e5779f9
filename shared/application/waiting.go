package application

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/events"
	"github.com/littoral-project/littoral/shared/store"
)

// In the order of ids, so that callers that go through the list in parts reach every application, however many there are.
const (
	selectWaiting = `select distinct j.application_id from jobs j join applications a on a.id = j.application_id
where j.state = 'Created' and j.type = 'CreateDeployment' and j.cluster = '' and j.cleans is null
and a.desired = 'running' and a.deleted_at is null and j.application_id >= $1 order by 1 limit $2`

	// The conditions on jobs repeat those of the partial index, which holds next to no rows.
	selectMisplaced = `select distinct j.application_id from jobs j join applications a on a.id = j.application_id
where j.cluster <> '' and j.cleans is null and j.misplaced <> '{}' and j.type <> 'DeleteDeployment'
and a.desired = 'running' and a.deleted_at is null and j.application_id >= $1 order by 1 limit $2`

	selectIsStuck = `select exists (select from jobs where application_id = $1 and cleans is null and type <> 'DeleteDeployment'
and (cluster = '' and state = 'Created' or cluster <> '' and misplaced <> '{}'))`

	selectUpdatePending = `select id from applications where judged < version and desired = 'running' and deleted_at is null
and id >= $1 order by 1 limit $2`
)

// Waiting returns at most limit applications, from that id on, with a component that waits for a place.
func Waiting(ctx context.Context, q store.Querier, from uuid.UUID, limit int) ([]uuid.UUID, error) {
	return store.Collect(ctx, q, "find what is to be placed", pgx.RowTo[uuid.UUID], selectWaiting, from, limit)
}

// Misplaced returns at most limit applications, from that id on, with a component in the wrong place that fitted nowhere
// else.
func Misplaced(ctx context.Context, q store.Querier, from uuid.UUID, limit int) ([]uuid.UUID, error) {
	return store.Collect(ctx, q, "find what is to be placed", pgx.RowTo[uuid.UUID], selectMisplaced, from, limit)
}

// Stuck returns at most limit applications, from that id on, with a component that fits nowhere, or nowhere better: those of Waiting
// and of Misplaced.
func Stuck(ctx context.Context, q store.Querier, from uuid.UUID, limit int) ([]uuid.UUID, error) {
	waiting, err := Waiting(ctx, q, from, limit)
	if err != nil {
		return nil, err
	}
	misplaced, err := Misplaced(ctx, q, from, limit)
	if err != nil {
		return nil, err
	}
	all := append(waiting, misplaced...)
	slices.SortFunc(all, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	all = slices.Compact(all)
	return all[:min(len(all), limit)], nil
}

// IsStuck reports whether a component of the application fits nowhere, or nowhere better.
func IsStuck(ctx context.Context, q store.Querier, id uuid.UUID) (stuck bool, err error) {
	if err := q.QueryRow(ctx, selectIsStuck, id).Scan(&stuck); err != nil {
		return false, fmt.Errorf("look for what has no place: %w", err)
	}
	return stuck, nil
}

// UpdatePending returns at most limit applications, from that id on, with an update that the matchmaker has not handled:
// its event may be on its way, the infrastructure or a node with a component was unknown when it came, or an older
// matchmaker without this record handled it.
func UpdatePending(ctx context.Context, q store.Querier, from uuid.UUID, limit int) ([]uuid.UUID, error) {
	return store.Collect(ctx, q, "find what is to be placed", pgx.RowTo[uuid.UUID], selectUpdatePending, from, limit)
}

// MarkHandled records that the matchmaker has handled the present version of the application. The caller has locked it.
func MarkHandled(tx *store.Tx, id uuid.UUID) { tx.Append(updateHandled, id) }

// Remind wakes the matchmaker if components wait for a place, or for another place, or were have an update that nobody handled. Most of what
// makes room emits an event of its own, but not everything that decides a placement does, such as the load of a node. because
// says in half a sentence why there may be room now.
func Remind(ctx context.Context, tx *store.Tx, because string) error {
	first := uuid.Max
	for _, list := range []func(context.Context, store.Querier, uuid.UUID, int) ([]uuid.UUID, error){
		Waiting, Misplaced, UpdatePending,
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
	return tx.Emit(ctx, events.ApplicationWaiting, first.String(), events.Application{ID: first, Reason: because})
}
