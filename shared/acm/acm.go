// Package acm keeps CodecoApps under the names that their users know them by, and tells how they fare in CODECO's words
// (shared/docs/codeco.md). What runs a CodecoApp is an application like any other.
package acm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/application"
	"github.com/littoral-project/littoral/shared/appmodel"
	"github.com/littoral-project/littoral/shared/codecoapp"
	"github.com/littoral-project/littoral/shared/etag"
	"github.com/littoral-project/littoral/shared/paging"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Key names a CodecoApp.
type Key struct{ Namespace, Name string }

// DefaultNamespace is that of a document that names none.
const DefaultNamespace = "default"

// String is "namespace/name".
func (k Key) String() string { return k.Namespace + "/" + k.Name }

// Settings are what an application needs that a CodecoApp does not say.
type Settings struct {
	LostAfter time.Duration
	Caller    string
}

// Document is a CodecoApp that was handed in, read before any transaction.
type Document struct {
	Key    Key
	Text   []byte
	Parsed *appmodel.Application
	UID    string // of the object in Kubernetes; empty for one that came over HTTP
}

// entry is a row of codeco_apps.
type entry struct {
	ID  uuid.UUID `db:"application_id"`
	UID string    `db:"uid"`
}

const (
	columns = `select e.application_id, e.uid from codeco_apps e join applications a on a.id = e.application_id`

	selectEntry = columns + ` where e.namespace = $1 and e.name = $2 and a.deleted_at is null`

	// An application that is gone leaves its name to the next.
	insertEntry = `insert into codeco_apps (namespace, name, application_id, uid) values ($1, $2, $3, $4)
on conflict (namespace, name) do update set application_id = excluded.application_id, uid = excluded.uid, status = null, status_at = null`

	selectPage = `select e.namespace, e.name, e.application_id from codeco_apps e join applications a on a.id = e.application_id
where a.deleted_at is null and (a.created_at, a.id) > ($1, $2) and ($3 = '' or e.namespace = $3) and ($4 = '' or e.name = $4)
order by a.created_at, a.id limit $5`
)

func find(ctx context.Context, q store.Querier, k Key) (entry, error) {
	e, err := store.One(ctx, q, "look for the CodecoApp", pgx.RowToStructByName[entry], selectEntry, k.Namespace, k.Name)
	if errors.Is(err, pgx.ErrNoRows) {
		return e, problem.New(problem.NotFound, "there is no CodecoApp %s", k)
	}
	return e, err
}

// Create stores a CodecoApp and the application that runs it. The error is Conflict when the name is taken.
func Create(ctx context.Context, tx *store.Tx, d Document, s Settings) (*App, error) {
	if err := tx.AwaitTurn(ctx, store.TurnApplicationName, d.Key.String()); err != nil {
		return nil, err
	}
	if _, err := find(ctx, tx, d.Key); problem.KindOf(err) != problem.NotFound {
		if err == nil {
			err = problem.New(problem.Conflict, "there is a CodecoApp %s already, or it is being deleted: replace it by PUT", d.Key)
		}
		return nil, err
	}
	a, _, err := application.Submit(ctx, tx, application.Submission{
		Document: d.Text, Parsed: d.Parsed, Caller: s.Caller, LostAfter: s.LostAfter,
	})
	if err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, insertEntry, d.Key.Namespace, d.Key.Name, a.ID, d.UID); err != nil {
		return nil, fmt.Errorf("store the CodecoApp: %w", err)
	}
	return &App{Key: d.Key, Application: a}, nil
}

// Replace gives a CodecoApp another document; nothing happens if it is the same. The error is NotFound, or that of
// application.Update.
func Replace(ctx context.Context, tx *store.Tx, d Document, s Settings) (*App, error) {
	e, err := find(ctx, tx, d.Key)
	if err != nil {
		return nil, err
	}
	change := application.NewChange(e.ID, d.Text, d.Parsed)
	a, err := change.Put(ctx, tx, s.Caller, etag.Match{}, s.LostAfter)
	if err != nil {
		return nil, err
	}
	return &App{Key: d.Key, Application: a}, nil
}

// Apply creates the CodecoApp or replaces it.
func Apply(ctx context.Context, tx *store.Tx, d Document, s Settings) (*App, error) {
	app, err := Replace(ctx, tx, d, s)
	if problem.KindOf(err) == problem.NotFound {
		return Create(ctx, tx, d, s)
	}
	return app, err
}

// Get returns a CodecoApp. The error is NotFound.
func Get(ctx context.Context, q store.Querier, k Key) (*App, error) {
	e, err := find(ctx, q, k)
	if err != nil {
		return nil, err
	}
	a, err := application.Get(ctx, q, e.ID)
	return &App{Key: k, Application: a}, err
}

// List returns a page of CodecoApps, the oldest first, of the namespace and the name that the key has.
func List(ctx context.Context, q store.Querier, of Key, page paging.Page) ([]*App, error) {
	type row struct {
		Namespace, Name string
		ID              uuid.UUID
	}
	rows, err := store.Collect(ctx, q, "list CodecoApps", pgx.RowToStructByPos[row],
		selectPage, page.After.At, page.After.ID, of.Namespace, of.Name, page.Limit)
	if err != nil {
		return nil, err
	}
	ids, keys := make([]uuid.UUID, len(rows)), make(map[uuid.UUID]Key, len(rows))
	for i, r := range rows {
		ids[i], keys[r.ID] = r.ID, Key{r.Namespace, r.Name}
	}
	found, err := application.These(ctx, q, ids) // without what went meanwhile
	if err != nil {
		return nil, err
	}
	apps := make([]*App, len(found))
	for i, a := range found {
		apps[i] = &App{Key: keys[a.ID], Application: a}
	}
	return apps, nil
}

// Delete has everything of a CodecoApp removed, and reports whether it is gone already. The error is NotFound.
func Delete(ctx context.Context, tx *store.Tx, k Key) (app *App, gone bool, err error) {
	e, err := find(ctx, tx, k)
	if err != nil {
		return nil, false, err
	}
	return remove(ctx, tx, k, e)
}

// DeleteObject is Delete for one that is an object of Kubernetes, and gone there; one that came over HTTP stays.
func DeleteObject(ctx context.Context, tx *store.Tx, k Key) (gone bool, err error) {
	e, err := find(ctx, tx, k)
	if problem.KindOf(err) == problem.NotFound || err == nil && e.UID == "" {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	_, gone, err = remove(ctx, tx, k, e)
	return gone, err
}

func remove(ctx context.Context, tx *store.Tx, k Key, e entry) (app *App, gone bool, err error) {
	a, gone, err := application.Delete(ctx, tx, e.ID, true)
	return &App{Key: k, Application: a}, gone, err
}

// App is a CodecoApp with the application that runs it.
type App struct {
	Key         Key
	Application *application.Application
}

// Object returns the CodecoApp as Kubernetes would show it, with its status. id, generation and creationTimestamp are
// those of the application.
func (a *App) Object(s Status) (map[string]any, error) {
	object, err := codecoapp.Object([]byte(a.Application.Descriptor))
	if err != nil {
		return nil, err
	}
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["name"], metadata["namespace"] = a.Key.Name, a.Key.Namespace
	metadata["uid"], metadata["generation"] = a.Application.ID, a.Application.Version
	metadata["creationTimestamp"] = a.Application.CreatedAt.UTC().Format(time.RFC3339)
	object["metadata"], object["status"] = metadata, s
	return object, nil
}
