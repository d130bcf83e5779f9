package groups

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
	"github.com/littoral-project/littoral/shared/swm/ipam"
)

// Settings are what an application needs that a group does not say, and the ranges that Ipams take addresses from.
type Settings struct {
	LostAfter time.Duration
	Caller    string
	Ranges    ipam.Ranges
}

// Stored is an object as it is stored.
type Stored struct {
	Key
	UID         string
	MemberOf    string
	Application *uuid.UUID // of a group: what runs its members
	Document    json.RawMessage
	UpdatedAt   time.Time
}

// row is a row of swm_objects.
type row struct {
	Kind        Kind            `db:"kind"`
	Namespace   string          `db:"namespace"`
	Name        string          `db:"name"`
	MemberOf    string          `db:"member_of"`
	Document    json.RawMessage `db:"document"`
	UID         string          `db:"uid"`
	Application *uuid.UUID      `db:"application_id"`
	UpdatedAt   time.Time       `db:"updated_at"`
}

func (r row) stored() *Stored {
	return &Stored{Key{r.Kind, r.Namespace, r.Name}, r.UID, r.MemberOf, r.Application, r.Document, r.UpdatedAt}
}

const (
	columns = `select kind, namespace, name, member_of, document, uid, application_id, updated_at from swm_objects`

	selectOne = columns + ` where kind = $1 and namespace = $2 and name = $3`

	selectOneForUpdate = selectOne + ` for update`

	selectKind = columns + ` where kind = $1 and ($2 = '' or namespace = $2) and (namespace, name) > ($3, $4) order by namespace, name limit $5`

	selectMembers = columns + ` where kind = any($1) and namespace = $2 and member_of = $3 order by kind, name`

	selectGroupOf = columns + ` where application_id = $1`

	selectGroups = columns + ` where kind = 'ApplicationGroup' and application_id is not null order by namespace, name`

	upsert = `insert into swm_objects (kind, namespace, name, member_of, document, uid) values ($1, $2, $3, $4, $5, $6)
on conflict (kind, namespace, name) do update set member_of = excluded.member_of, document = excluded.document,
	uid = excluded.uid, updated_at = now()`

	remove = `delete from swm_objects where kind = $1 and namespace = $2 and name = $3`

	setApplication = `update swm_objects set application_id = $3 where kind = 'ApplicationGroup' and namespace = $1 and name = $2`
)

// Get returns an object. The error is NotFound.
func Get(ctx context.Context, q store.Querier, k Key) (*Stored, error) {
	return one(ctx, q, selectOne, k)
}

func one(ctx context.Context, q store.Querier, sql string, k Key) (*Stored, error) {
	r, err := store.One(ctx, q, "read the object", pgx.RowToStructByName[row], sql, k.Kind, k.Namespace, k.Name)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, problem.New(problem.NotFound, "there is no %s", k)
	}
	if err != nil {
		return nil, err
	}
	return r.stored(), nil
}

// MostListed is how many objects a list has at most.
const MostListed = 500

// List returns the objects of a kind after the one that is named, by namespace and name; all namespaces without one. more says
// that there are further ones.
func List(ctx context.Context, q store.Querier, kind Kind, namespace string, after Key) (all []*Stored, more bool, err error) {
	rows, err := store.Collect(ctx, q, "list objects", pgx.RowToStructByName[row], selectKind, kind, namespace, after.Namespace, after.Name, MostListed+1)
	if err != nil {
		return nil, false, err
	}
	if more = len(rows) > MostListed; more {
		rows = rows[:MostListed]
	}
	for _, r := range rows {
		all = append(all, r.stored())
	}
	return all, more, nil
}

// Carried names the objects that came from a cluster.
func Carried(ctx context.Context, q store.Querier) ([]Key, error) {
	return store.Collect(ctx, q, "list objects", pgx.RowToStructByPos[Key],
		`select kind, namespace, name from swm_objects where uid <> '' order by 1, 2, 3`)
}

// Running lists the groups that an application runs.
func Running(ctx context.Context, q store.Querier) ([]*Stored, error) {
	rows, err := store.Collect(ctx, q, "list groups", pgx.RowToStructByName[row], selectGroups)
	if err != nil {
		return nil, err
	}
	all := make([]*Stored, len(rows))
	for i := range rows {
		all[i] = rows[i].stored()
	}
	return all, nil
}

// RunBy returns the group that the application runs; nil without one.
func RunBy(ctx context.Context, q store.Querier, application uuid.UUID) (*Stored, error) {
	r, err := store.One(ctx, q, "look for the group", pgx.RowToStructByName[row], selectGroupOf, application)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // none is an answer
	}
	if err != nil {
		return nil, err
	}
	return r.stored(), nil
}

// Members returns the applications of a group, by name.
func Members(ctx context.Context, q store.Querier, group Key) ([]*Object, error) {
	return parts(ctx, q, group.Namespace, group.Name, Application)
}

// parts reads the objects of kinds that belong to a group or a network.
func parts(ctx context.Context, q store.Querier, namespace, of string, kinds ...Kind) ([]*Object, error) {
	rows, err := store.Collect(ctx, q, "read members", pgx.RowToStructByName[row], selectMembers, kinds, namespace, of)
	if err != nil {
		return nil, err
	}
	all := make([]*Object, len(rows))
	for i, r := range rows {
		if all[i], err = r.stored().object(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// object reads the document of an object that was checked when it was stored.
func (s *Stored) object() (*Object, error) {
	o := &Object{Key: s.Key, UID: s.UID, MemberOf: s.MemberOf, Spec: specs[s.Kind]()}
	if err := json.Unmarshal(s.Document, &o.document); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Key, err)
	}
	spec, err := json.Marshal(o.document.Spec)
	if err != nil {
		return nil, err
	}
	return o, json.Unmarshal(spec, o.Spec)
}

// Put stores an object in place of an earlier one, and lets what it belongs to follow. The error is Conflict when a network that it
// is a part of is described by somebody else, or Invalid when what it belongs to can no longer be understood with it.
func Put(ctx context.Context, tx *store.Tx, o *Object, s Settings) error {
	if err := tx.AwaitTurn(ctx, store.TurnApplicationName, Group+"/"+o.Namespace); err != nil {
		return err
	}
	before, err := one(ctx, tx, selectOneForUpdate, o.Key)
	if err != nil && problem.KindOf(err) != problem.NotFound {
		return err
	}
	known := before != nil && before.UID == o.UID && before.same(o)
	if !known {
		text, err := json.Marshal(o.document)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, upsert, o.Kind, o.Namespace, o.Name, o.MemberOf, text, o.UID); err != nil {
			return fmt.Errorf("store the object: %w", err)
		}
	}
	if wanted, is := o.Spec.(*IpamSpec); is { // a known one may wait for ranges that were set since
		return ipam.Reserve(ctx, tx, s.Ranges, o.Namespace, o.Name, wanted.NumberOfAddresses)
	}
	if known {
		return nil
	}
	if before != nil && before.MemberOf != o.MemberOf {
		if err := follow(ctx, tx, before.Key, before.MemberOf, s); err != nil {
			return err
		}
	}
	return follow(ctx, tx, o.Key, o.MemberOf, s)
}

func (s *Stored) same(o *Object) bool {
	before, err := s.object()
	return err == nil && reflect.DeepEqual(before.document, o.document)
}

// Delete forgets an object, and lets what it belonged to follow: the applications of a group that is gone are removed. The error
// is NotFound.
func Delete(ctx context.Context, tx *store.Tx, k Key, s Settings) error {
	if err := tx.AwaitTurn(ctx, store.TurnApplicationName, Group+"/"+k.Namespace); err != nil {
		return err
	}
	before, err := one(ctx, tx, selectOneForUpdate, k)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, remove, k.Kind, k.Namespace, k.Name); err != nil {
		return fmt.Errorf("delete the object: %w", err)
	}
	switch {
	case k.Kind == ApplicationGroup && before.Application != nil:
		return end(ctx, tx, *before.Application)
	case k.Kind == Ipam:
		return ipam.Release(ctx, tx, s.Ranges, k.Namespace, k.Name)
	}
	return follow(ctx, tx, k, before.MemberOf, s)
}

// follow brings up to date what an object belongs to.
func follow(ctx context.Context, tx *store.Tx, k Key, of string, s Settings) error {
	switch k.Kind {
	case ApplicationGroup:
		return run(ctx, tx, k, s)
	case Application:
		return run(ctx, tx, Key{ApplicationGroup, k.Namespace, of}, s)
	case NetworkLink, NetworkPath:
		return describe(ctx, tx, k.Namespace, of)
	}
	return nil
}
