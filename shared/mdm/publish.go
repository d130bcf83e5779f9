package mdm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/bus/keyexpr"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Outcome says what became of a batch.
type Outcome struct {
	Events    int `json:"events"`
	Applied   int `json:"applied"`
	Unchanged int `json:"unchanged"` // repeats, and events from before what is known
}

// Each statement takes one stretch of a batch: events of one kind about different things. What it returns has changed.
const (
	upsertEntities = `insert into mdm_entities as e (edf_id, type, schema_ref, identifier, connector, properties, event_at)
select g.edf_id, g.type, g.schema_ref, g.identifier, g.connector, g.properties, g.event_at
from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::uuid[], $6::jsonb[], $7::timestamptz[])
	as g (edf_id, type, schema_ref, identifier, connector, properties, event_at)
where not exists (select from mdm_tombstones t where t.edf_id = g.edf_id and t.event_at > g.event_at)
on conflict (edf_id) do update set schema_ref = excluded.schema_ref, identifier = excluded.identifier,
	connector = excluded.connector, properties = excluded.properties, event_at = excluded.event_at
where e.type = excluded.type and (e.event_at < excluded.event_at or e.event_at = excluded.event_at
	and (e.schema_ref, e.identifier, e.connector, e.properties) is distinct from
		(excluded.schema_ref, excluded.identifier, excluded.connector, excluded.properties))
returning e.edf_id`

	selectOtherTypes = `select g.edf_id, e.type
from unnest($1::uuid[], $2::text[]) as g (edf_id, type) join mdm_entities e using (edf_id) where e.type <> g.type`

	upsertRelations = `insert into mdm_relations as r (edf_id, type, schema_ref, source, target, connector, event_at)
select g.edf_id, g.type, g.schema_ref, g.source, g.target, g.connector, g.event_at
from unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::uuid[], $6::uuid[], $7::timestamptz[])
	as g (edf_id, type, schema_ref, source, target, connector, event_at)
where not exists (select from mdm_tombstones t where t.edf_id in (g.edf_id, g.source, g.target) and t.event_at > g.event_at)
on conflict (edf_id) do update set schema_ref = excluded.schema_ref, connector = excluded.connector, event_at = excluded.event_at
where r.event_at < excluded.event_at or r.event_at = excluded.event_at
	and (r.schema_ref, r.connector) is distinct from (excluded.schema_ref, excluded.connector)
returning r.edf_id`

	deleteEntities = `delete from mdm_entities e using unnest($1::uuid[], $2::timestamptz[]) as g (edf_id, event_at)
where e.edf_id = g.edf_id and e.event_at <= g.event_at
returning e.edf_id, e.type`

	// Relations that are newer than the event stay: they wait for the next entity of that id.
	deleteRelationsOf = `with g as (select * from unnest($1::uuid[], $2::timestamptz[]) as given (edf_id, event_at))
delete from mdm_relations where edf_id in (
	select r.edf_id from g join mdm_relations r on r.source = g.edf_id where r.event_at <= g.event_at
	union select r.edf_id from g join mdm_relations r on r.target = g.edf_id where r.event_at <= g.event_at)
returning type, source, target`

	deleteRelations = `delete from mdm_relations r using unnest($1::uuid[], $2::timestamptz[]) as g (edf_id, event_at)
where r.edf_id = g.edf_id and r.event_at <= g.event_at
returning r.edf_id`

	insertTombstones = `insert into mdm_tombstones as t (edf_id, event_at)
select edf_id, event_at from unnest($1::uuid[], $2::timestamptz[]) as g (edf_id, event_at)
on conflict (edf_id) do update set event_at = greatest(t.event_at, excluded.event_at), at = excluded.at`

	forgetTombstones = `delete from mdm_tombstones where at < now() - $1::interval`

	countEvents = `insert into mdm_connectors as c (edf_id, type, events, heard_at) values ($1, $2, $3, now())
on conflict (edf_id) do update set type = excluded.type, events = c.events + excluded.events, heard_at = excluded.heard_at`

	countRefusal = `insert into mdm_connectors as c (edf_id, type, refused, refused_at, refusal) values ($1, $2, 1, now(), $3)
on conflict (edf_id) do update set refused = c.refused + 1, refused_at = excluded.refused_at, refusal = excluded.refusal`
)

// tombstonesFor is how long a deletion is remembered: an event that was under way for longer may bring a thing back.
const tombstonesFor = 24 * time.Hour

// Publish applies the changes in their order, and announces what has changed on the bus. Publishers take turns, so that what is
// said at the same time about one thing has an order. It comes last in its transaction.
func Publish(ctx context.Context, tx *store.Tx, changes []Change) (Outcome, error) {
	if err := tx.Lock(ctx, store.LockMetadata); err != nil {
		return Outcome{}, err
	}
	p := publication{tx: tx, announced: map[keyexpr.Expr]bus.Change{}}
	for rest := changes; len(rest) > 0; {
		n := stretch(rest)
		if err := p.apply(ctx, rest[:n]); err != nil {
			return Outcome{}, err
		}
		rest = rest[n:]
	}
	if err := count(ctx, tx, changes); err != nil {
		return Outcome{}, err
	}
	outcome := Outcome{Events: len(changes), Applied: p.applied, Unchanged: len(changes) - p.applied}
	all := make([]bus.Change, 0, len(p.announced))
	for _, key := range p.order {
		all = append(all, p.announced[key])
	}
	return outcome, bus.Publish(ctx, tx, all...)
}

// stretch is how many changes from the first on are of one kind and about different things.
func stretch(changes []Change) int {
	seen := map[uuid.UUID]bool{}
	for i, c := range changes {
		if c.Relation != changes[0].Relation || c.Delete != changes[0].Delete || seen[c.ID] {
			return i
		}
		seen[c.ID] = true
	}
	return len(changes)
}

// publication is what one call of Publish does.
type publication struct {
	tx        *store.Tx
	applied   int
	announced map[keyexpr.Expr]bus.Change // the last change of each key
	order     []keyexpr.Expr
}

func (p *publication) apply(ctx context.Context, some []Change) error {
	switch c := some[0]; {
	case c.Delete && c.Relation:
		return p.deleteRelations(ctx, some)
	case c.Delete:
		return p.deleteEntities(ctx, some)
	case c.Relation:
		return p.upsertRelations(ctx, some)
	default:
		return p.upsertEntities(ctx, some)
	}
}

func column[T any](some []Change, of func(Change) T) []T {
	list := make([]T, len(some))
	for i, c := range some {
		list[i] = of(c)
	}
	return list
}

func ids(some []Change) []uuid.UUID { return column(some, func(c Change) uuid.UUID { return c.ID }) }

func times(some []Change) []time.Time { return column(some, func(c Change) time.Time { return c.At }) }

func kinds(some []Change) []string { return column(some, func(c Change) string { return c.Ref.Type }) }

func refs(some []Change) []string {
	return column(some, func(c Change) string { return c.Ref.String() })
}

func connectors(some []Change) []uuid.UUID {
	return column(some, func(c Change) uuid.UUID { return c.Event.Connector })
}

func (p *publication) upsertEntities(ctx context.Context, some []Change) error {
	changed, err := store.Collect(ctx, p.tx, "store entities", pgx.RowTo[uuid.UUID], upsertEntities, ids(some), kinds(some), refs(some),
		column(some, func(c Change) string { return c.Identifier }), connectors(some),
		column(some, func(c Change) string { return string(c.Properties) }), times(some))
	if err != nil {
		return err
	}
	if len(changed) < len(some) {
		if err := p.refuseOtherTypes(ctx, some); err != nil {
			return err
		}
	}
	return p.announce(some, changed)
}

// refuseOtherTypes refuses an entity that is there with another type: subscribers know it by both.
func (p *publication) refuseOtherTypes(ctx context.Context, some []Change) error {
	var faults problem.Faults
	rows, _ := p.tx.Query(ctx, selectOtherTypes, ids(some), kinds(some))
	var id uuid.UUID
	var kind string
	_, err := pgx.ForEachRow(rows, []any{&id, &kind}, func() error {
		faults.Add("payload.edf_id", 0, "%s is the id of a %s already, which cannot become something else: delete it first", id, kind)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read types of entities: %w", err)
	}
	return faults.Err("the events are not accepted")
}

func (p *publication) upsertRelations(ctx context.Context, some []Change) error {
	changed, err := store.Collect(ctx, p.tx, "store relations", pgx.RowTo[uuid.UUID], upsertRelations, ids(some), kinds(some), refs(some),
		column(some, func(c Change) uuid.UUID { return c.From }), column(some, func(c Change) uuid.UUID { return c.To }),
		connectors(some), times(some))
	if err != nil {
		return err
	}
	return p.announce(some, changed)
}

func (p *publication) deleteEntities(ctx context.Context, some []Change) error {
	type gone struct {
		ID   uuid.UUID
		Type string
	}
	entities, err := store.Collect(ctx, p.tx, "delete entities", pgx.RowToStructByPos[gone], deleteEntities, ids(some), times(some))
	if err != nil {
		return err
	}
	type end struct {
		Type     string
		From, To uuid.UUID
	}
	relations, err := store.Collect(ctx, p.tx, "delete relations of entities", pgx.RowToStructByPos[end], deleteRelationsOf, ids(some), times(some))
	if err != nil {
		return err
	}
	for _, r := range relations {
		p.say(bus.Change{Key: relationKey(r.Type, r.From, r.To), Delete: true})
	}
	for _, e := range entities {
		p.applied++
		p.say(bus.Change{Key: entityKey(e.Type, e.ID), Delete: true})
	}
	return p.bury(ctx, some)
}

func (p *publication) deleteRelations(ctx context.Context, some []Change) error {
	changed, err := store.Collect(ctx, p.tx, "delete relations", pgx.RowTo[uuid.UUID], deleteRelations, ids(some), times(some))
	if err != nil {
		return err
	}
	if err := p.announce(some, changed); err != nil {
		return err
	}
	return p.bury(ctx, some)
}

// bury remembers deletions, of what was not there as well: its event may be under way.
func (p *publication) bury(ctx context.Context, some []Change) error {
	if _, err := p.tx.Exec(ctx, insertTombstones, ids(some), times(some)); err != nil {
		return fmt.Errorf("remember deletions: %w", err)
	}
	p.tx.Append(forgetTombstones, tombstonesFor)
	return nil
}

// announce notes those of the changes that were applied.
func (p *publication) announce(some []Change, changed []uuid.UUID) error {
	applied := make(map[uuid.UUID]bool, len(changed))
	for _, id := range changed {
		applied[id] = true
	}
	for _, c := range some {
		if !applied[c.ID] {
			continue
		}
		p.applied++
		change := bus.Change{Key: c.key(), Delete: c.Delete, Encoding: bus.JSON}
		if !c.Delete {
			var err error
			if change.Payload, err = json.Marshal(c.Event); err != nil {
				return fmt.Errorf("encode event: %w", err)
			}
		}
		p.say(change)
	}
	return nil
}

// say notes a change of a key. The bus takes one of each in a transaction: the last.
func (p *publication) say(change bus.Change) {
	if _, again := p.announced[change.Key]; again {
		p.order = slices.DeleteFunc(p.order, func(key keyexpr.Expr) bool { return key == change.Key })
	}
	p.announced[change.Key] = change
	p.order = append(p.order, change.Key)
}

// count notes with each connector that it was heard.
func count(ctx context.Context, tx *store.Tx, changes []Change) error {
	events, types := map[uuid.UUID]int{}, map[uuid.UUID]string{}
	for _, c := range changes {
		events[c.Event.Connector]++
		types[c.Event.Connector] = c.Event.ConnectorType
	}
	sorted := make([]uuid.UUID, 0, len(events))
	for id := range events {
		sorted = append(sorted, id)
	}
	slices.SortFunc(sorted, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	for _, id := range sorted {
		if _, err := tx.Exec(ctx, countEvents, id, types[id], events[id]); err != nil {
			return fmt.Errorf("count events: %w", err)
		}
	}
	return nil
}

// Refused notes with the connector, if the body names one, that its events were not accepted, and why.
func Refused(ctx context.Context, q store.Querier, body []byte, why error) error {
	var refusal *problem.Error
	if !errors.As(why, &refusal) || problem.KindOf(why) != problem.Invalid {
		return nil
	}
	id, kind, ok := sender(body)
	if !ok {
		return nil
	}
	if _, err := q.Exec(ctx, countRefusal, id, kind, problem.Brief(refusal.Error(), maxText)); err != nil {
		return fmt.Errorf("count refusal: %w", err)
	}
	return nil
}

// sender reads who sent the first event of a body that may be wrong otherwise.
func sender(body []byte) (id uuid.UUID, kind string, ok bool) {
	type from struct {
		Connector     uuid.UUID `json:"connector_edf_id"`
		ConnectorType string    `json:"connector_type"`
	}
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var f from
	if json.Unmarshal(body, &f) != nil || f.Connector == uuid.Nil || !Name(f.ConnectorType) {
		return uuid.Nil, "", false
	}
	return f.Connector, f.ConnectorType, true
}

// Keys of the bus: the type stands in them since a deletion has no payload that says it.
func entityKey(kind string, id uuid.UUID) keyexpr.Expr {
	return keyexpr.Expr("mdm/entity/" + kind + "/" + id.String())
}

func relationKey(kind string, from, to uuid.UUID) keyexpr.Expr {
	return keyexpr.Expr("mdm/relation/" + kind + "/" + from.String() + "/" + to.String())
}

func (c Change) key() keyexpr.Expr {
	if c.Relation {
		return relationKey(c.Ref.Type, c.From, c.To)
	}
	return entityKey(c.Ref.Type, c.ID)
}
