package mdm

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/store"
)

// Source makes the changes of a connector of ours, as if they had come as events.
type Source struct {
	Connector uuid.UUID
	Type      string
	At        time.Time
}

// ours is the organization of what we publish ourselves.
const ours = "littoral"

func (s Source) change(kind, event string, payload any) (Change, error) {
	text, err := json.Marshal(payload)
	if err != nil {
		return Change{}, fmt.Errorf("encode %s: %w", kind, err)
	}
	at := s.At.UTC().Truncate(time.Microsecond)
	return Change{
		Event:  Event{Connector: s.Connector, ConnectorType: s.Type, Type: event, Timestamp: float64(at.UnixMicro()) / 1e6, Payload: text},
		Ref:    Ref{ours, kind, "1"},
		Delete: event == Delete, At: at,
	}, nil
}

// Entity says what there is.
func (s Source) Entity(kind, identifier string, attributes map[string]any) (Change, error) {
	properties, err := json.Marshal(attributes)
	if err != nil {
		return Change{}, fmt.Errorf("encode %s: %w", kind, err)
	}
	id := EntityID(kind, identifier)
	payload := map[string]any{"json_schema_ref": Ref{ours, kind, "1"}.String(), "edf_id": id, "identifier": identifier}
	for name, value := range attributes {
		payload[name] = value
	}
	c, err := s.change(kind, Upsert, payload)
	c.ID, c.Identifier, c.Properties = id, identifier, properties
	return c, err
}

// Gone says that an entity is no more.
func (s Source) Gone(kind string, id uuid.UUID) (Change, error) {
	c, err := s.change(kind, Delete, map[string]any{"json_schema_ref": Ref{ours, kind, "1"}.String(), "edf_id": id})
	c.ID = id
	return c, err
}

// Relation says that one entity leads to another one.
func (s Source) Relation(kind string, from, to uuid.UUID) (Change, error) {
	return s.relation(kind, Upsert, from, to)
}

// Unrelated says that it does not any more.
func (s Source) Unrelated(kind string, from, to uuid.UUID) (Change, error) {
	return s.relation(kind, Delete, from, to)
}

func (s Source) relation(kind, event string, from, to uuid.UUID) (Change, error) {
	c, err := s.change(kind, event, map[string]any{"json_schema_ref": Ref{ours, kind, "1"}.String(), "from_edf_id": from, "to_edf_id": to})
	c.Relation, c.From, c.To, c.ID = true, from, to, relationID(kind, from, to)
	return c, err
}

const selectKnown = `select g.edf_id from unnest($1::uuid[], $2::jsonb[], $3::uuid[]) as g (edf_id, properties, connector)
join mdm_entities e on e.edf_id = g.edf_id and e.properties = g.properties and e.connector = g.connector
union all select r.edf_id from mdm_relations r where r.edf_id = any($1)`

// News leaves out the upserts that say what is known already.
func News(ctx context.Context, q store.Querier, changes []Change) ([]Change, error) {
	known, err := store.Collect(ctx, q, "read what is known", pgx.RowTo[uuid.UUID], selectKnown, ids(changes), column(changes, func(c Change) string {
		if c.Properties == nil {
			return "null" // of no entity
		}
		return string(c.Properties)
	}), connectors(changes))
	if err != nil {
		return nil, err
	}
	said := make(map[uuid.UUID]bool, len(known))
	for _, id := range known {
		said[id] = true
	}
	var news []Change
	for _, c := range changes {
		if c.Delete || !said[c.ID] {
			news = append(news, c)
		}
	}
	return news, nil
}
