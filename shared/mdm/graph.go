package mdm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/littoral-project/littoral/shared/problem"
	"github.com/littoral-project/littoral/shared/store"
)

// Entity is one as it is answered: its attributes, and beside them what the contract defines.
type Entity struct {
	ID         int64
	EDF        uuid.UUID
	Type       string
	Ref        string
	Identifier string
	Connector  uuid.UUID
	Properties json.RawMessage
	At         time.Time
}

// columnsOfEntity are those of Entity, in its order.
const columnsOfEntity = `e.id, e.edf_id, e.type, e.schema_ref, e.identifier, e.connector, e.properties, e.event_at`

// MarshalJSON writes one flat object. An attribute never hides what the contract defines.
func (e Entity) MarshalJSON() ([]byte, error) {
	object := map[string]any{}
	var attributes map[string]json.RawMessage
	if err := json.Unmarshal(e.Properties, &attributes); err != nil {
		return nil, err
	}
	for name, value := range attributes {
		object[name] = value
	}
	maps.Copy(object, map[string]any{
		"_id": e.ID, "edf_id": e.EDF, "entity_type": e.Type, "json_schema_ref": e.Ref, "identifier": e.Identifier,
		"connector_id": e.Connector, "update_time": e.At.UTC().Format(time.RFC3339Nano),
	})
	return json.Marshal(object)
}

func (e Entity) size() int { return len(e.Properties) + len(e.Identifier) + 300 }

const (
	selectTypes = `select type, count(*) from mdm_entities group by type order by type`

	selectAttributes = `select name, array_agg(distinct jsonb_typeof(value) order by jsonb_typeof(value)), count(*)
from (select properties from mdm_entities where type = $1 order by id limit $2) e, jsonb_each(e.properties) as a (name, value)
group by name order by name`
)

// Type is a type of entities, and how many there are.
type Type struct {
	Name  string
	Count int64
}

// Types lists the types that there are entities of, by name.
func Types(ctx context.Context, q store.Querier) ([]Type, error) {
	return store.Collect(ctx, q, "read types of entities", pgx.RowToStructByPos[Type], selectTypes)
}

// Attribute is one that entities of a type have.
type Attribute struct {
	Name  string   `json:"name"`
	Types []string `json:"types"` // of JSON
	Count int64    `json:"count"` // of the entities that were looked at
}

// attributesOf is how many entities Attributes looks at.
const attributesOf = 10_000

// Attributes lists those of a type's entities, by name; it looks at the first ten thousand.
func Attributes(ctx context.Context, q store.Querier, kind string) ([]Attribute, error) {
	return store.Collect(ctx, q, "read attributes", pgx.RowToStructByPos[Attribute], selectAttributes, kind, attributesOf)
}

// Filter says which entities are wanted.
type Filter struct {
	conditions []string
	args       []any
}

// operators of a filter, as conditions on an attribute %s and a value %s, both of jsonb.
var operators = map[string]string{
	"$ne":  `(%[1]s is null or %[1]s <> %[2]s)`,
	"$gt":  `(jsonb_typeof(%[1]s) = jsonb_typeof(%[2]s) and %[1]s > %[2]s)`,
	"$gte": `(jsonb_typeof(%[1]s) = jsonb_typeof(%[2]s) and %[1]s >= %[2]s)`,
	"$lt":  `(jsonb_typeof(%[1]s) = jsonb_typeof(%[2]s) and %[1]s < %[2]s)`,
	"$lte": `(jsonb_typeof(%[1]s) = jsonb_typeof(%[2]s) and %[1]s <= %[2]s)`,
}

// mostConditions bounds a filter.
const mostConditions = 50

// ParseFilter reads an object of attributes: each with the value that it has, or with an object of operators: $eq, $ne, $gt,
// $gte, $lt, $lte, $in (a list) and $exists (true or false). All of them must hold.
func ParseFilter(body []byte) (*Filter, error) {
	if !json.Valid(body) {
		return nil, problem.New(problem.Malformed, "the body is not valid JSON")
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil || members == nil {
		return nil, problem.New(problem.Invalid, "a filter is an object of attributes")
	}
	f := &Filter{}
	var faults problem.Faults
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if strings.ContainsRune(name, 0) || strings.Contains(string(members[name]), `\u0000`) {
			faults.Add(problem.Brief(name, 50), 0, "holds a NUL character")
			continue
		}
		f.add(name, members[name], &faults)
	}
	if len(f.conditions) > mostConditions {
		faults.Add("", 0, "has more than %d conditions", mostConditions)
	}
	return f, faults.Err("the filter is not understood")
}

// bind adds an argument and returns its place in the statement.
func (f *Filter) bind(value any) string {
	f.args = append(f.args, value)
	return "$" + strconv.Itoa(len(f.args))
}

func (f *Filter) add(name string, value json.RawMessage, faults *problem.Faults) {
	var asked map[string]json.RawMessage
	if json.Unmarshal(value, &asked) != nil || !slices.ContainsFunc(slices.Collect(maps.Keys(asked)), isOperator) {
		f.equal(name, value)
		return
	}
	for _, operator := range slices.Sorted(maps.Keys(asked)) {
		f.compare(name, operator, asked[operator], faults)
	}
}

func isOperator(name string) bool { return strings.HasPrefix(name, "$") }

// attribute is the value of an attribute, or of what the contract defines.
func (f *Filter) attribute(name string) string {
	switch name {
	case "edf_id":
		return `to_jsonb(e.edf_id)`
	case "identifier":
		return `to_jsonb(e.identifier)`
	case "json_schema_ref":
		return `to_jsonb(e.schema_ref)`
	case "connector_id":
		return `to_jsonb(e.connector)`
	}
	return `e.properties -> ` + f.bind(name) + `::text`
}

// equal asks by containment as well, which has an index.
func (f *Filter) equal(name string, value json.RawMessage) {
	column := f.attribute(name)
	if strings.HasPrefix(column, "e.") {
		f.conditions = append(f.conditions, fmt.Sprintf(`e.properties @> jsonb_build_object(%s::text, %s::jsonb)`, f.bind(name), f.bind(string(value))))
	}
	f.conditions = append(f.conditions, fmt.Sprintf(`%s = %s::jsonb`, column, f.bind(string(value))))
}

func (f *Filter) compare(name, operator string, value json.RawMessage, faults *problem.Faults) {
	path := problem.Brief(name, 50) + "." + problem.Brief(operator, 50)
	switch condition, ok := operators[operator]; {
	case ok:
		f.conditions = append(f.conditions, fmt.Sprintf(condition, f.attribute(name), f.bind(string(value))+`::jsonb`))
	case operator == "$eq":
		f.equal(name, value)
	case operator == "$in":
		if len(value) == 0 || value[0] != '[' {
			faults.Add(path, 0, "must be a list")
			return
		}
		f.conditions = append(f.conditions, fmt.Sprintf(`%s in (select jsonb_array_elements(%s::jsonb))`, f.attribute(name), f.bind(string(value))))
	case operator == "$exists":
		switch string(value) {
		case "true":
			f.conditions = append(f.conditions, f.attribute(name)+` is not null`)
		case "false":
			f.conditions = append(f.conditions, f.attribute(name)+` is null`)
		default:
			faults.Add(path, 0, "must be true or false")
		}
	default:
		faults.Add(path, 0, "is not known; known are $eq, $ne, $gt, $gte, $lt, $lte, $in and $exists")
	}
}

// Find lists entities of a type that the filter wants, in the order of their numbers, those after a number, at most limit; cut
// says that the list was ended by its size.
func Find(ctx context.Context, q store.Querier, kind string, f *Filter, after int64, limit int) (list []Entity, cut bool, err error) {
	own := Filter{slices.Clone(f.conditions), slices.Clone(f.args)}
	own.conditions = append(own.conditions, `e.type = `+own.bind(kind), `e.id > `+own.bind(after))
	sql := `select ` + columnsOfEntity + ` from mdm_entities e where ` + strings.Join(own.conditions, " and ") + ` order by e.id limit ` + own.bind(limit)
	return store.Page(ctx, q, "find entities", pgx.RowToStructByPos[Entity], Entity.size, sql, own.args...)
}

// Bounds of a walk through the graph.
const (
	DefaultHops = 1
	MaxHops     = 8
	MaxNodes    = 2000 // of one answer; those that are fewer hops away come first
)

// Surroundings are the entities around one, and the relations that lead to them.
type Surroundings struct {
	Nodes     []Node     `json:"nodes"`
	Relations []Relation `json:"relations"`
	Truncated bool       `json:"truncated,omitempty"` // there are more entities than an answer takes
}

// Node is an entity within its surroundings.
type Node struct {
	ID     int64  `json:"id"`
	Label  string `json:"label"` // its type
	Object Entity `json:"object"`
	Hops   int    `json:"hops"`
}

// Relation leads from one node to another, by their numbers.
type Relation struct {
	From   int64          `json:"from"`
	To     int64          `json:"to"`
	Label  string         `json:"label"` // its type
	Object RelationObject `json:"object"`
}

// RelationObject is a relation as it was published.
type RelationObject struct {
	EDF       uuid.UUID `json:"edf_id"`
	Ref       string    `json:"json_schema_ref"`
	From      uuid.UUID `json:"from_edf_id"`
	To        uuid.UUID `json:"to_edf_id"`
	Connector uuid.UUID `json:"connector_id"`
	At        time.Time `json:"update_time"`
}

const (
	// Both directions are arms of one lateral subquery, since a recursive query may name itself once only. UNION drops what
	// was reached over two ways of the same length, so that circles end with the depth.
	selectAround = `with recursive walk (edf_id, hops) as (
	select edf_id, 0 from mdm_entities where edf_id = $1
	union
	select e.edf_id, w.hops + 1 from walk w, lateral (
		select r.target as next from mdm_relations r where r.source = w.edf_id
		union all select r.source from mdm_relations r where r.target = w.edf_id) n
	join mdm_entities e on e.edf_id = n.next
	where w.hops < $2
), reached as (select edf_id, min(hops) as hops from walk group by edf_id order by min(hops), edf_id limit $3)
select ` + columnsOfEntity + `, reached.hops from reached join mdm_entities e using (edf_id) order by reached.hops, e.id`

	// Between two that are as far away as the walk went, it took no step.
	selectBetween = `with g as (select * from unnest($1::uuid[], $2::bigint[], $3::int[]) as given (edf_id, id, hops))
select a.id, b.id, r.type, r.edf_id, r.schema_ref, r.source, r.target, r.connector, r.event_at
from g a join mdm_relations r on r.source = a.edf_id join g b on b.edf_id = r.target
where least(a.hops, b.hops) < $4 order by r.id`
)

// Around returns what is at most that many hops away from an entity, whichever way relations lead. The error is NotFound.
func Around(ctx context.Context, q store.Querier, id uuid.UUID, hops int) (*Surroundings, error) {
	s := &Surroundings{Relations: []Relation{}}
	nodes, cut, err := store.Page(ctx, q, "walk the graph", scanNode, func(n Node) int { return n.Object.size() }, selectAround, id, hops, MaxNodes+1)
	switch {
	case err != nil:
		return nil, err
	case len(nodes) == 0:
		return nil, problem.New(problem.NotFound, "there is no entity %s", id)
	}
	if s.Truncated = cut || len(nodes) > MaxNodes; len(nodes) > MaxNodes {
		nodes = nodes[:MaxNodes]
	}
	s.Nodes = nodes
	known, numbers, away := make([]uuid.UUID, len(nodes)), make([]int64, len(nodes)), make([]int, len(nodes))
	for i, n := range nodes {
		known[i], numbers[i], away[i] = n.Object.EDF, n.ID, n.Hops
	}
	relations, cut, err := store.Page(ctx, q, "read relations", scanRelation, func(Relation) int { return relationSize }, selectBetween, known, numbers, away, hops)
	if err != nil {
		return nil, err
	}
	s.Truncated = s.Truncated || cut
	s.Relations = relations
	return s, nil
}

// relationSize is about what one is in an answer, in bytes.
const relationSize = 350

func scanNode(row pgx.CollectableRow) (n Node, err error) {
	e := &n.Object
	err = row.Scan(&e.ID, &e.EDF, &e.Type, &e.Ref, &e.Identifier, &e.Connector, &e.Properties, &e.At, &n.Hops)
	n.ID, n.Label = e.ID, e.Type
	return n, err
}

func scanRelation(row pgx.CollectableRow) (r Relation, err error) {
	o := &r.Object
	return r, row.Scan(&r.From, &r.To, &r.Label, &o.EDF, &o.Ref, &o.From, &o.To, &o.Connector, &o.At)
}

// State says how large the graph is.
type State struct {
	Entities   int64            `json:"entities"`
	Relations  int64            `json:"relations"`
	Waiting    int64            `json:"waiting"` // relations of which an end is not there
	Types      map[string]int64 `json:"types"`
	Connectors map[string]int64 `json:"connectors"` // by their health
	Schemas    int64            `json:"schemas"`
}

const selectState = `select (select count(*) from mdm_entities), (select count(*) from mdm_relations),
	(select count(*) from mdm_relations r where not exists (select from mdm_entities e where e.edf_id = r.source)
		or not exists (select from mdm_entities e where e.edf_id = r.target)),
	(select count(*) from mdm_schemas)`

// Measure returns the state.
func Measure(ctx context.Context, q store.Querier) (*State, error) {
	s := &State{Types: map[string]int64{}, Connectors: map[string]int64{}}
	if err := q.QueryRow(ctx, selectState).Scan(&s.Entities, &s.Relations, &s.Waiting, &s.Schemas); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("measure the graph: %w", err)
	}
	types, err := Types(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, t := range types {
		s.Types[t.Name] = t.Count
	}
	connectors, err := Connectors(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, c := range connectors {
		s.Connectors[c.Health]++
	}
	return s, nil
}
