package cypher

import (
	"fmt"
	"slices"
	"strings"

	"github.com/littoral-project/littoral/shared/problem"
)

// A value is jsonb in SQL, and NULL where Cypher has null: JSON's own null is never left. A condition is a boolean of SQL, whose
// three values are those of Cypher.

// contractual are the properties of nodes that are no attributes.
var contractual = []string{"_id", "_domain", "edf_id", "entity_type", "identifier", "connector_id", "json_schema_ref", "update_time"}

const (
	timeOf   = `to_char(%[1]s.event_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
	domainOf = `split_part(%[1]s.schema_ref, ':', 2)`

	nodeOf = `jsonb_build_object('identity', %[1]s.id, 'labels', jsonb_build_array(%[1]s.type), 'properties', %[1]s.properties || ` +
		`jsonb_build_object('_id', %[1]s.id, '_domain', ` + domainOf + `, 'edf_id', %[1]s.edf_id, 'entity_type', %[1]s.type, ` +
		`'identifier', %[1]s.identifier, 'connector_id', %[1]s.connector, 'json_schema_ref', %[1]s.schema_ref, 'update_time', ` + timeOf + `), ` +
		`'elementId', %[1]s.edf_id)`

	relationOf = `jsonb_build_object('identity', %[1]s.id, 'start', (select e.id from mdm_entities e where e.edf_id = %[1]s.source), ` +
		`'end', (select e.id from mdm_entities e where e.edf_id = %[1]s.target), 'type', %[1]s.type, 'properties', ` +
		`jsonb_build_object('_domain', ` + domainOf + `, 'edf_id', %[1]s.edf_id, 'connector_id', %[1]s.connector, ` +
		`'json_schema_ref', %[1]s.schema_ref, 'update_time', ` + timeOf + `), 'elementId', %[1]s.edf_id, ` +
		`'startNodeElementId', %[1]s.source, 'endNodeElementId', %[1]s.target)`
)

func nodeJSON(alias string) string     { return fmt.Sprintf(nodeOf, alias) }
func relationJSON(alias string) string { return fmt.Sprintf(relationOf, alias) }

// relationsOf is the list of the relations of a path of several lengths, in the order of the pattern.
func relationsOf(p place) string {
	way := ""
	if p.reversed {
		way = " desc"
	}
	return `coalesce((select jsonb_agg(` + relationJSON("m") + ` order by u.at` + way + `) from unnest(` + p.alias + `.rels) with ordinality u (id, at) join mdm_relations m on m.id = u.id), '[]')`
}

// property is that of a node or relation.
func (c *compiler) property(t thing, key string) string {
	a := t.alias
	switch key {
	case "_id":
		return `to_jsonb(` + a + `.id)`
	case "_domain":
		return `to_jsonb(` + fmt.Sprintf(domainOf, a) + `)`
	case "edf_id":
		return `to_jsonb(` + a + `.edf_id)`
	case "connector_id":
		return `to_jsonb(` + a + `.connector)`
	case "json_schema_ref":
		return `to_jsonb(` + a + `.schema_ref)`
	case "update_time":
		return `to_jsonb(` + fmt.Sprintf(timeOf, a) + `)`
	}
	switch {
	case t.kind == aRelation:
		return `null::jsonb` // they have no attributes
	case key == "identifier":
		return `to_jsonb(` + a + `.identifier)`
	case key == "entity_type":
		return `to_jsonb(` + a + `.type)`
	}
	return `nullif(` + a + `.properties -> ` + c.text(key) + `, 'null')`
}

// value is an expression as jsonb.
func (c *compiler) value(e expr) (string, error) {
	switch e := e.(type) {
	case literal:
		if e.json == "null" {
			return `null::jsonb`, nil
		}
		return c.json(e.json), nil
	case param:
		given, ok := c.parameters[e.text]
		if !ok {
			return "", e.fault("the parameter $%s is not given", problem.Brief(e.text, 40))
		}
		return `nullif(` + c.json(string(given)) + `, 'null')`, nil
	case variable:
		return c.variable(e)
	case access:
		return c.access(e)
	case element:
		return c.element(e)
	case list:
		return c.list(e)
	case mapping:
		return c.mapping(e)
	case call:
		return c.call(e)
	case minus:
		of, err := c.value(e.of)
		return `to_jsonb(-` + numeric(of) + `)`, err
	case binary:
		if e.op == "+" || e.op == "-" || e.op == "*" || e.op == "/" || e.op == "%" {
			return c.arithmetic(e)
		}
	}
	condition, err := c.condition(e)
	return `to_jsonb(` + condition + `)`, err
}

func numeric(value string) string { return `mdm_number(` + value + `)` }
func textOf(value string) string  { return `mdm_text(` + value + `)` }

func (c *compiler) variable(v variable) (string, error) {
	t, ok := c.things[v.text]
	if !ok {
		return "", v.fault("%s stands for nothing: no pattern names it", v.token)
	}
	switch t.kind {
	case aNode:
		return nodeJSON(t.alias), nil
	case aRelation:
		return relationJSON(t.alias), nil
	case relations:
		return relationsOf(t.places[0]), nil
	default:
		return `jsonb_build_object('nodes', ` + c.nodesOf(t) + `, 'relationships', ` + c.stepsOf(t) + `)`, nil
	}
}

// nodesOf lists the nodes of a path, also those that it passes between two of the pattern.
func (c *compiler) nodesOf(t thing) string {
	aliases := strings.Fields(t.alias)
	parts := []string{`jsonb_build_array(` + nodeJSON(aliases[0]) + `)`}
	for i, p := range t.places {
		from, to := aliases[i], aliases[i+1]
		if p.many {
			parts = append(parts, passed(p, from, to))
		} else {
			parts = append(parts, `jsonb_build_array(`+nodeJSON(to)+`)`)
		}
	}
	return `(` + strings.Join(parts, " || ") + `)`
}

// passed lists the nodes of a path of several lengths but for the first: one by one, the other end of each relation.
func passed(p place, from, to string) string {
	start, way := from, ""
	if p.reversed {
		start, way = to, " desc"
	}
	list := `(select coalesce(jsonb_agg(` + nodeJSON("e") + ` order by s.at` + way + `), '[]') from (with recursive s (node, at) as (
	select ` + start + `.edf_id, 0
	union all select case when m.source = s.node then m.target else m.source end, s.at + 1
	from s join mdm_relations m on m.id = ` + p.alias + `.rels[s.at + 1]
) select * from s) s join mdm_entities e on e.edf_id = s.node where s.at `
	if p.reversed {
		return list + `< cardinality(` + p.alias + `.rels))`
	}
	return list + `> 0)`
}

func (c *compiler) stepsOf(t thing) string {
	parts := []string{`'[]'::jsonb`}
	for _, p := range t.places {
		if p.many {
			parts = append(parts, relationsOf(p))
		} else {
			parts = append(parts, `jsonb_build_array(`+relationJSON(p.alias)+`)`)
		}
	}
	return `(` + strings.Join(parts, " || ") + `)`
}

func (c *compiler) access(e access) (string, error) {
	if v, ok := e.of.(variable); ok {
		t, there := c.things[v.text]
		switch {
		case !there:
			return "", v.fault("%s stands for nothing: no pattern names it", v.token)
		case t.kind == aNode || t.kind == aRelation:
			return c.property(t, e.key), nil
		default:
			return "", v.fault("%s is a path, which has no properties", v.token)
		}
	}
	of, err := c.value(e.of)
	return `nullif((` + of + `) -> ` + c.text(e.key) + `, 'null')`, err
}

func (c *compiler) element(e element) (string, error) {
	of, err := c.value(e.of)
	if err != nil {
		return "", err
	}
	if v, ok := e.of.(variable); ok && (c.things[v.text].kind == aNode || c.things[v.text].kind == aRelation) {
		of = `((` + of + `) -> 'properties')`
	}
	at, err := c.value(e.at)
	if err != nil {
		return "", err
	}
	return `mdm_at(` + of + `, ` + at + `)`, nil
}

func (c *compiler) list(e list) (string, error) {
	items := make([]string, len(e.items))
	for i, item := range e.items {
		value, err := c.value(item)
		if err != nil {
			return "", err
		}
		items[i] = value
	}
	return `jsonb_build_array(` + strings.Join(items, ", ") + `)`, nil
}

func (c *compiler) mapping(e mapping) (string, error) {
	members := make([]string, len(e.members))
	for i, m := range e.members {
		value, err := c.value(m.value)
		if err != nil {
			return "", err
		}
		members[i] = c.text(m.key) + ", " + value
	}
	return `jsonb_build_object(` + strings.Join(members, ", ") + `)`, nil
}

func (c *compiler) sides(e binary) (left, right string, err error) {
	if left, err = c.value(e.left); err != nil {
		return "", "", err
	}
	right, err = c.value(e.right)
	return left, right, err
}

func (c *compiler) arithmetic(e binary) (string, error) {
	l, r, err := c.sides(e)
	if err != nil {
		return "", err
	}
	a, b := numeric(l), numeric(r)
	switch e.op {
	case "+":
		return `mdm_plus(` + l + `, ` + r + `)`, nil
	case "/": // whole numbers have whole quotients
		return `to_jsonb(mdm_quotient(` + a + `, ` + b + `))`, nil
	default:
		return `to_jsonb(` + a + ` ` + e.op + ` ` + b + `)`, nil
	}
}

// condition is an expression as a boolean.
func (c *compiler) condition(e expr) (string, error) {
	switch e := e.(type) {
	case binary:
		return c.comparison(e)
	case not:
		of, err := c.condition(e.of)
		return `(not ` + of + `)`, err
	case isNull:
		return c.isNull(e)
	case labels:
		return c.labels(e)
	case exists:
		s := &scope{}
		if err := c.pattern(s, e.of, false); err != nil {
			return "", err
		}
		return `exists (` + s.from("select") + `)`, nil
	}
	value, err := c.value(e)
	return `mdm_true(` + value + `)`, err
}

func (c *compiler) isNull(e isNull) (string, error) {
	of, err := c.value(e.of)
	if e.not {
		return `((` + of + `) is not null)`, err
	}
	return `((` + of + `) is null)`, err
}

func (c *compiler) labels(e labels) (string, error) {
	v, ok := e.of.(variable)
	t, there := c.things[v.text]
	if !ok || !there || t.kind != aNode && t.kind != aRelation {
		return "", e.fault("a type is asked of a node or a relation")
	}
	var all []string
	for _, group := range e.labels {
		all = append(all, t.alias+".type = any("+c.bind(group)+"::text[])")
	}
	return `(` + strings.Join(all, " and ") + `)`, nil
}

func (c *compiler) comparison(e binary) (string, error) {
	switch e.op {
	case "AND", "OR", "XOR":
		l, err := c.condition(e.left)
		if err != nil {
			return "", err
		}
		r, err := c.condition(e.right)
		if e.op == "XOR" {
			return `(` + l + ` <> ` + r + `)`, err
		}
		return `(` + l + ` ` + strings.ToLower(e.op) + ` ` + r + `)`, err
	case "+", "-", "*", "/", "%":
		return "", e.fault("%s makes no condition", e.op)
	}
	if same, ok := c.same(e); ok {
		return same, nil
	}
	l, r, err := c.sides(e)
	if err != nil {
		return "", err
	}
	switch e.op {
	case "=", "<>":
		return `((` + l + `) ` + e.op + ` (` + r + `))`, nil
	case "IN":
		return `mdm_in(` + l + `, ` + r + `)`, nil
	case "STARTS WITH":
		return `starts_with(` + textOf(l) + `, ` + textOf(r) + `)`, nil
	case "ENDS WITH":
		return `mdm_ends(` + textOf(l) + `, ` + textOf(r) + `)`, nil
	case "CONTAINS":
		return `(strpos(` + textOf(l) + `, ` + textOf(r) + `) > 0)`, nil
	case "=~":
		return `mdm_matches(` + textOf(l) + `, ` + textOf(r) + `)`, nil
	}
	return `(mdm_compare(` + l + `, ` + r + `) ` + e.op + ` 0)`, nil
}

// same compares two nodes, or two relations, by their numbers.
func (c *compiler) same(e binary) (string, bool) {
	l, isLeft := e.left.(variable)
	r, isRight := e.right.(variable)
	if !isLeft || !isRight || e.op != "=" && e.op != "<>" {
		return "", false
	}
	a, b := c.things[l.text], c.things[r.text]
	if a.alias == "" || b.alias == "" || a.kind != b.kind || a.kind != aNode && a.kind != aRelation {
		return "", false
	}
	return `(` + a.alias + `.id ` + e.op + ` ` + b.alias + `.id)`, true
}

// from is the rest of a statement.
func (s *scope) from(begin string) string {
	if len(s.froms) > 0 {
		begin += "\nfrom " + strings.Join(s.froms, ", ")
	}
	if len(s.where) > 0 {
		begin += "\nwhere " + strings.Join(s.where, "\n\tand ")
	}
	return begin
}

// names lists the functions.
func names() string {
	var list []string
	for name := range functions {
		list = append(list, name)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}
