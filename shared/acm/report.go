package acm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Pause is the shortest time between two writes of one object's status.
const Pause = 10 * time.Second

// reported is what an object was told last.
type reported struct {
	Namespace string     `db:"namespace"`
	Name      string     `db:"name"`
	Status    []byte     `db:"status"`
	StatusAt  *time.Time `db:"status_at"`
}

const (
	selectReported = `select namespace, name, status, status_at from codeco_apps where application_id = $1 and uid <> ''`

	selectObjects = `select e.application_id from codeco_apps e join applications a on a.id = e.application_id
where e.uid <> '' and (a.deleted_at is null or a.deleted_at > now() - interval '1 hour') order by 1`

	// Whoever gets the row writes; of several at a time one does.
	claimReport = `update codeco_apps set status_at = now() where application_id = $1
and (status_at is null or status_at <= now() - make_interval(secs => $2))`

	storeReport = `update codeco_apps set status = $2 where application_id = $1`
)

// Objects is where CodecoApps are objects of Kubernetes.
type Objects interface {
	SetStatus(ctx context.Context, k Key, s Status) error
	// Release lets the deletion of an object end.
	Release(ctx context.Context, k Key) error
}

// WithObjects lists the applications of all CodecoApps that are objects of Kubernetes.
func WithObjects(ctx context.Context, q store.Querier) ([]uuid.UUID, error) {
	return store.Collect(ctx, q, "list CodecoApps", pgx.RowTo[uuid.UUID], selectObjects)
}

// Carried names the CodecoApps that came as objects of Kubernetes and are still there, for all that is known here.
func Carried(ctx context.Context, q store.Querier) ([]Key, error) {
	return store.Collect(ctx, q, "list CodecoApps", pgx.RowToStructByPos[Key], `select e.namespace, e.name from codeco_apps e
join applications a on a.id = e.application_id where e.uid <> '' and a.deleted_at is null order by 1, 2`)
}

// ObjectOf names the CodecoApp that the application runs; uid is empty if it is no object of Kubernetes, or there is none.
func ObjectOf(ctx context.Context, q store.Querier, id uuid.UUID) (k Key, uid string, err error) {
	row := q.QueryRow(ctx, `select namespace, name, uid from codeco_apps where application_id = $1`, id)
	if err := row.Scan(&k.Namespace, &k.Name, &uid); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return k, "", fmt.Errorf("look for the CodecoApp: %w", err)
	}
	return k, uid, nil
}

// Report writes the status of the application to its object, if it has one and the status differs from what was written
// last: at most once in Pause, so it may wait for as long. That of one that is gone is released.
func Report(ctx context.Context, db *store.DB, id uuid.UUID, objects Objects) error {
	for {
		last, err := store.One(ctx, db, "read the last report", pgx.RowToStructByName[reported], selectReported, id)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // no CodecoApp, or none of Kubernetes
		}
		if err != nil {
			return err
		}
		key := Key{last.Namespace, last.Name}
		a, err := application.Get(ctx, db, id)
		if problem.KindOf(err) == problem.NotFound {
			return objects.Release(ctx, key)
		}
		if err != nil {
			return err
		}
		now, err := StatusOf(ctx, db, a)
		if err != nil {
			return err
		}
		var before Status
		if json.Unmarshal(last.Status, &before) == nil && reflect.DeepEqual(before, now) {
			return nil
		}
		mine, err := db.Exec(ctx, claimReport, id, Pause.Seconds())
		if err != nil {
			return fmt.Errorf("claim the report: %w", err)
		}
		if mine.RowsAffected() == 1 {
			return write(ctx, db, id, key, now, objects)
		}
		if err := wait(ctx, last.StatusAt); err != nil {
			return err
		}
	}
}

// write stores what was written after it was: one that broke off in between is written again.
func write(ctx context.Context, db *store.DB, id uuid.UUID, key Key, s Status, objects Objects) error {
	if err := objects.SetStatus(ctx, key, s); err != nil {
		return problem.Wrap(problem.Unavailable, err, "the status of %s could not be written: %v", key, err)
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if _, err := db.Exec(ctx, storeReport, id, text); err != nil {
		return fmt.Errorf("store the report: %w", err)
	}
	return nil
}

// wait waits until the pause after the last write is over.
func wait(ctx context.Context, last *time.Time) error {
	pause := Pause
	if last != nil {
		pause = min(max(time.Until(last.Add(Pause)), 100*time.Millisecond), Pause)
	}
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return problem.Wrap(problem.Unavailable, ctx.Err(), "the status waits for its turn")
	}
}
