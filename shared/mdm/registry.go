package mdm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/bus"
	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Connector is a publisher.
type Connector struct {
	ID        uuid.UUID  `json:"edf_id"`
	Type      string     `json:"type"`
	Name      string     `json:"name"`
	Interval  int        `json:"interval_seconds"` // between its events, at most
	Events    int64      `json:"events"`
	HeardAt   *time.Time `json:"heard_at,omitempty"`
	Refused   int64      `json:"refused"`
	RefusedAt *time.Time `json:"refused_at,omitempty"`
	Refusal   string     `json:"refusal,omitempty"` // why, of the last one
	Health    string     `json:"health"`
}

// Health of a connector.
const (
	Unheard = "Unheard" // registered, and nothing has come
	Healthy = "Healthy"
	Silent  = "Silent"  // for three times the interval it named
	Failing = "Failing" // what came last was refused, or one of ours could not look
)

const (
	// The order of the cases matters: who is refused is not silent.
	selectConnectors = `select edf_id, type, name, interval_seconds, events, heard_at, refused, refused_at, refusal, case
	when refused_at > coalesce(heard_at, '-infinity') then 'Failing'
	when heard_at is null then 'Unheard'
	when heard_at < now() - 3 * interval_seconds * interval '1 second' then 'Silent'
	else 'Healthy' end
from mdm_connectors where $1::uuid is null or edf_id = $1 order by type, edf_id`

	upsertConnector = `insert into mdm_connectors (edf_id, type, name, interval_seconds) values ($1, $2, $3, $4)
on conflict (edf_id) do update set type = excluded.type, name = excluded.name, interval_seconds = excluded.interval_seconds`

	introduceConnector = `insert into mdm_connectors as c (edf_id, type, name, interval_seconds, heard_at) values ($1, $2, $3, $4, case when $5 then now() end)
on conflict (edf_id) do update set type = excluded.type, name = excluded.name, interval_seconds = excluded.interval_seconds,
	heard_at = coalesce(excluded.heard_at, c.heard_at)`

	deleteConnector = `delete from mdm_connectors where edf_id = $1`
)

// Connectors lists all, by type.
func Connectors(ctx context.Context, q store.Querier) ([]Connector, error) {
	return store.Collect(ctx, q, "read connectors", pgx.RowToStructByPos[Connector], selectConnectors, nil)
}

// Register notes who a connector is, and how often it is to be heard. One that publishes without is registered by that.
func Register(ctx context.Context, tx *store.Tx, c Connector) (*Connector, error) {
	var faults problem.Faults
	if !Name(c.Type) {
		faults.Add("type", 0, "must be a name of letters, digits, hyphens, underscores and dots, 63 at most")
	}
	if len(c.Name) > maxText {
		faults.Add("name", 0, "has more than %d bytes", maxText)
	}
	if c.Interval == 0 {
		c.Interval = 300
	}
	if c.Interval < 1 || c.Interval > 30*24*3600 {
		faults.Add("interval_seconds", 0, "must be from 1 to %d", 30*24*3600)
	}
	if err := faults.Err("the connector is not accepted"); err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, upsertConnector, c.ID, c.Type, c.Name, c.Interval); err != nil {
		return nil, fmt.Errorf("register connector: %w", err)
	}
	stored, err := store.One(ctx, tx, "read connector", pgx.RowToStructByPos[Connector], selectConnectors, c.ID)
	return &stored, err
}

// Introduce notes a connector of ours that publishes only what has changed; heard says that it has looked just now.
func Introduce(ctx context.Context, q store.Querier, c Connector, heard bool) error {
	if _, err := q.Exec(ctx, introduceConnector, c.ID, c.Type, c.Name, c.Interval, heard); err != nil {
		return fmt.Errorf("introduce connector: %w", err)
	}
	return nil
}

// Hindered notes that a connector of ours could not look, and why.
func Hindered(ctx context.Context, q store.Querier, c Connector, why error) error {
	if _, err := q.Exec(ctx, countRefusal, c.ID, c.Type, problem.Brief(why.Error(), maxText)); err != nil {
		return fmt.Errorf("count refusal: %w", err)
	}
	return nil
}

// Unregister forgets a connector; what it has published stays. The error is NotFound.
func Unregister(ctx context.Context, tx *store.Tx, id uuid.UUID) error {
	tag, err := tx.Exec(ctx, deleteConnector, id)
	switch {
	case err != nil:
		return fmt.Errorf("forget connector: %w", err)
	case tag.RowsAffected() == 0:
		return problem.New(problem.NotFound, "there is no connector %s", id)
	}
	return nil
}

// Schema is a JSON schema that payloads can name.
type Schema struct {
	Organization string          `json:"organization"`
	Type         string          `json:"type"`
	Version      string          `json:"version"`
	Schema       json.RawMessage `json:"schema"`
	CreatedBy    string          `json:"created_by"`
	UpdatedAt    time.Time       `json:"updated_at"`
}

const (
	columnsOfSchema = `organization, type, version, schema, created_by, updated_at`

	selectSchemas = `select ` + columnsOfSchema + ` from mdm_schemas order by organization, type, version`

	selectSchema = `select ` + columnsOfSchema + ` from mdm_schemas where organization = $1 and type = $2 and version = $3`

	selectSchemasOf = `select ` + columnsOfSchema + ` from mdm_schemas
where 'urn:' || organization || ':' || type || ':' || version = any($1)`

	upsertSchema = `insert into mdm_schemas (organization, type, version, schema, created_by) values ($1, $2, $3, $4, $5)
on conflict (organization, type, version) do update set schema = excluded.schema, created_by = excluded.created_by, updated_at = now()`

	deleteSchema = `delete from mdm_schemas where organization = $1 and type = $2 and version = $3`
)

// Ref is the URN by which payloads name the schema.
func (s Schema) Ref() Ref { return Ref{s.Organization, s.Type, s.Version} }

// Schemas lists all, by their URNs.
func Schemas(ctx context.Context, q store.Querier) ([]Schema, error) {
	return store.Collect(ctx, q, "read schemas", pgx.RowToStructByPos[Schema], selectSchemas)
}

// SchemasOf returns those that the changes name.
func SchemasOf(ctx context.Context, q store.Querier, changes []Change) ([]Schema, error) {
	named := map[string]bool{}
	var list []string
	for _, c := range changes {
		if ref := c.Ref.String(); !named[ref] {
			named[ref] = true
			list = append(list, ref)
		}
	}
	return store.Collect(ctx, q, "read schemas", pgx.RowToStructByPos[Schema], selectSchemasOf, list)
}

// GetSchema returns one. The error is NotFound.
func GetSchema(ctx context.Context, q store.Querier, ref Ref) (*Schema, error) {
	s, err := store.One(ctx, q, "read schema", pgx.RowToStructByPos[Schema], selectSchema, ref.Organization, ref.Type, ref.Version)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, problem.New(problem.NotFound, "there is no schema %s", ref)
	}
	return &s, err
}

// PutSchema stores a schema that was checked.
func PutSchema(ctx context.Context, tx *store.Tx, ref Ref, schema []byte, by string) (*Schema, error) {
	if _, err := tx.Exec(ctx, upsertSchema, ref.Organization, ref.Type, ref.Version, string(schema), by); err != nil {
		return nil, fmt.Errorf("store schema: %w", err)
	}
	return GetSchema(ctx, tx, ref)
}

// DeleteSchema forgets a schema; what was published under it stays. The error is NotFound.
func DeleteSchema(ctx context.Context, tx *store.Tx, ref Ref) error {
	tag, err := tx.Exec(ctx, deleteSchema, ref.Organization, ref.Type, ref.Version)
	switch {
	case err != nil:
		return fmt.Errorf("forget schema: %w", err)
	case tag.RowsAffected() == 0:
		return problem.New(problem.NotFound, "there is no schema %s", ref)
	}
	return nil
}

const (
	cleanEntities   = `delete from mdm_entities`
	cleanRelations  = `delete from mdm_relations`
	cleanTombstones = `delete from mdm_tombstones`
)

// Cleaned says what Clean has deleted.
type Cleaned struct {
	Entities  int64 `json:"entities"`
	Relations int64 `json:"relations"`
}

// Clean deletes the graph, and says so to those who follow it. Connectors and schemas stay.
func Clean(ctx context.Context, tx *store.Tx) (Cleaned, error) {
	if err := tx.Lock(ctx, store.LockMetadata); err != nil {
		return Cleaned{}, err
	}
	entities, err := tx.Exec(ctx, cleanEntities)
	if err != nil {
		return Cleaned{}, fmt.Errorf("delete entities: %w", err)
	}
	relations, err := tx.Exec(ctx, cleanRelations)
	if err != nil {
		return Cleaned{}, fmt.Errorf("delete relations: %w", err)
	}
	tx.Append(cleanTombstones)
	return Cleaned{entities.RowsAffected(), relations.RowsAffected()}, bus.Withdraw(ctx, tx, "mdm")
}
