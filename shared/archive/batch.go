package archive

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/history"
	"github.com/littoral-project/littoral/shared/store"
)

const (
	// All entries before the first one that stays, so that objects do not interleave. Only as many rows as fit into one
	// object are searched for it, not all old ones.
	oldHistory = `select id, at, application_id, coalesce((select name from applications a where a.id = application_id), '') as application,
	job_id, component, event, from_state, to_state, message, cause, trace_id, data from history
where id < coalesce((select min(id) from (select id, at from history order by id limit $2) oldest where at >= $1),
	9223372036854775807) order by id limit $2`
	deleteHistory = `delete from history where id = any($1)`

	// Applications without jobs that run or are being removed (job.Gone).
	oldApplications = `select a.id from applications a where a.deleted_at < $1 and not exists (select 1 from jobs j
where j.application_id = a.id and not (j.state = 'Finished' and (j.type = 'DeleteDeployment' or j.owner_id = '')))
order by a.deleted_at, a.id limit $2 for update of a skip locked`
	lockJobs = `select id from jobs where application_id = any($1) for update`

	applicationLines = `select a.id, a.deleted_at, jsonb_build_object('application', to_jsonb(a),
	'jobs', coalesce((select jsonb_agg(to_jsonb(j) order by j.id) from jobs j where j.application_id = a.id), '[]'),
	'actions', coalesce((select jsonb_agg(to_jsonb(p) order by p.id) from policy_actions p
		where p.instance = a.id::text), '[]'))
from applications a where a.id = any($1) order by a.deleted_at, a.id`

	deleteActions      = `delete from policy_actions where instance = any($1::text[])`
	deleteJobs         = `delete from jobs where application_id = any($1)`
	deleteApplications = `delete from applications where id = any($1)`

	// UUIDv7 is ordered by time.
	oldSnapshots = `select s.id, s.at, to_jsonb(s) from topology_snapshots s
where not exists (select 1 from topology t where t.snapshot = s.id)
and (s.at < $1 or s.id <= (select id from topology_snapshots order by id desc offset $3 limit 1))
order by s.id limit $2`
	deleteSnapshots = `delete from topology_snapshots where id = any($1)`
)

func (b *batch) read(ctx context.Context, tx *store.Tx, before time.Time, keep int) error {
	switch b.kind {
	case History:
		return b.readHistory(ctx, tx, before)
	case Applications:
		return b.readApplications(ctx, tx, before)
	case Topology:
		return b.readRows(ctx, tx, oldSnapshots, before, snapshotsAtOnce, keep)
	}
	return fmt.Errorf("there is no kind %q", b.kind)
}

func (b *batch) readHistory(ctx context.Context, tx *store.Tx, before time.Time) error {
	rows, err := tx.Query(ctx, oldHistory, before, maxLines)
	if err != nil {
		return fmt.Errorf("read history: %w", err)
	}
	defer rows.Close()
	for !b.full() && rows.Next() {
		e, err := pgx.RowToStructByName[history.Entry](rows)
		if err != nil {
			return fmt.Errorf("read history: %w", err)
		}
		line, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("encode history: %w", err)
		}
		b.entries = append(b.entries, e.ID)
		b.events[e.Event] = true
		id := fmt.Sprintf("%020d", e.ID)
		if e.ApplicationID == nil {
			b.add(id, e.At, line)
			continue
		}
		b.add(id, e.At, line, *e.ApplicationID)
	}
	rows.Close()
	return rows.Err()
}

// snapshotsAtOnce limits how many Postgres sends, since only some may fit into the batch: one with a thousand nodes has
// several mebibytes.
const snapshotsAtOnce = 16

// applicationsAtOnce limits how many are locked; an application may have a mebibyte.
const applicationsAtOnce = 50

func (b *batch) readApplications(ctx context.Context, tx *store.Tx, before time.Time) error {
	ids, err := store.Collect(ctx, tx, "read applications", pgx.RowTo[uuid.UUID], oldApplications, before, applicationsAtOnce)
	if err != nil || len(ids) == 0 {
		return err
	}
	if _, err := tx.Exec(ctx, lockJobs, ids); err != nil {
		return fmt.Errorf("lock jobs: %w", err)
	}
	return b.readRows(ctx, tx, applicationLines, ids)
}

// readRows reads rows of id, time and line.
func (b *batch) readRows(ctx context.Context, tx *store.Tx, sql string, args ...any) error {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return fmt.Errorf("read %s: %w", b.kind, err)
	}
	defer rows.Close()
	for !b.full() && rows.Next() {
		var id uuid.UUID
		var at time.Time
		var line []byte
		if err := rows.Scan(&id, &at, &line); err != nil {
			return fmt.Errorf("read %s: %w", b.kind, err)
		}
		if b.kind == Applications {
			b.add(id.String(), at, line, id)
		} else {
			b.add(id.String(), at, line)
		}
	}
	rows.Close()
	return rows.Err()
}

// remove deletes the batch's rows in Postgres.
func (b *batch) remove(ctx context.Context, tx *store.Tx) error {
	switch b.kind {
	case History:
		return b.delete(ctx, tx, deleteHistory, b.entries)
	case Topology:
		return b.delete(ctx, tx, deleteSnapshots, b.ids)
	case Applications:
		for _, sql := range []string{deleteActions, deleteJobs} {
			if _, err := tx.Exec(ctx, sql, b.ids); err != nil {
				return fmt.Errorf("delete what belongs to applications: %w", err)
			}
		}
		return b.delete(ctx, tx, deleteApplications, b.ids)
	}
	return nil
}

func (b *batch) delete(ctx context.Context, tx *store.Tx, sql string, ids any) error {
	tag, err := tx.Exec(ctx, sql, ids)
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	if n := int(tag.RowsAffected()); n != len(b.ids) {
		return fmt.Errorf("delete: %d of %d lines were there", n, len(b.ids)) // rolled back: another run has moved the rest
	}
	return nil
}
