package cypher

import "strings"

// form is how a function is called.
type form struct {
	least, most int
	aggregate   bool
}

// functions are those that there are, by their names in lower case.
var functions = map[string]form{
	"count": {1, 1, true}, "collect": {1, 1, true}, "sum": {1, 1, true}, "avg": {1, 1, true}, "min": {1, 1, true}, "max": {1, 1, true},
	"id": {1, 1, false}, "elementid": {1, 1, false}, "labels": {1, 1, false}, "type": {1, 1, false}, "keys": {1, 1, false},
	"properties": {1, 1, false}, "startnode": {1, 1, false}, "endnode": {1, 1, false}, "length": {1, 1, false}, "nodes": {1, 1, false},
	"relationships": {1, 1, false}, "size": {1, 1, false}, "head": {1, 1, false}, "last": {1, 1, false}, "coalesce": {1, 10, false},
	"exists": {1, 1, false}, "tolower": {1, 1, false}, "toupper": {1, 1, false}, "trim": {1, 1, false}, "tostring": {1, 1, false},
	"tointeger": {1, 1, false}, "tofloat": {1, 1, false}, "abs": {1, 1, false}, "round": {1, 1, false}, "floor": {1, 1, false}, "ceil": {1, 1, false},
}

func (c *compiler) call(e call) (string, error) {
	if functions[e.name].aggregate {
		return c.aggregate(e)
	}
	if sql, ok, err := c.ofThing(e); ok || err != nil {
		return sql, err
	}
	values := make([]string, len(e.args))
	for i, arg := range e.args {
		var err error
		if values[i], err = c.value(arg); err != nil {
			return "", err
		}
	}
	v := values[0]
	switch e.name {
	case "coalesce":
		return `coalesce(` + strings.Join(values, ", ") + `)`, nil
	case "exists":
		return `to_jsonb((` + v + `) is not null)`, nil
	case "size":
		return `to_jsonb(mdm_size(` + v + `))`, nil
	case "keys":
		return `mdm_keys(` + v + `)`, nil
	case "properties":
		return `mdm_map(` + v + `)`, nil
	case "head":
		return `nullif((` + v + `) -> 0, 'null')`, nil
	case "last":
		return `nullif((` + v + `) -> -1, 'null')`, nil
	}
	return c.scalar(e, v)
}

// scalar is a function of a text or number.
func (c *compiler) scalar(e call, v string) (string, error) {
	switch e.name {
	case "tolower":
		return `to_jsonb(lower(` + textOf(v) + `))`, nil
	case "toupper":
		return `to_jsonb(upper(` + textOf(v) + `))`, nil
	case "trim":
		return `to_jsonb(btrim(` + textOf(v) + `))`, nil
	case "tostring":
		return `to_jsonb(mdm_written(` + v + `))`, nil
	case "tointeger":
		return `to_jsonb(trunc(mdm_parsed(` + v + `)))`, nil
	case "tofloat":
		return `to_jsonb(mdm_parsed(` + v + `))`, nil
	case "abs", "round", "floor", "ceil":
		return `to_jsonb(` + e.name + `(` + numeric(v) + `))`, nil
	}
	return "", e.fault("%s is asked of a node, a relation or a path", e.name)
}

// ofThing is a function of what a variable stands for; ok is false for one of a value.
func (c *compiler) ofThing(e call) (sql string, ok bool, err error) {
	v, isVariable := e.args[0].(variable)
	if !isVariable {
		return "", false, nil
	}
	t, there := c.things[v.text]
	if !there {
		return "", false, v.fault("%s stands for nothing: no pattern names it", v.token)
	}
	switch t.kind {
	case aNode:
		sql = c.ofNode(e.name, t.alias)
	case aRelation:
		sql = ofRelation(e.name, t.alias)
	case relations:
		if e.name == "length" {
			sql = `to_jsonb(cardinality(` + t.alias + `.rels))`
		}
	case aPath:
		sql = c.ofPath(e.name, t)
	}
	return sql, sql != "", nil
}

func (c *compiler) ofNode(name, alias string) string {
	switch name {
	case "id":
		return `to_jsonb(` + alias + `.id)`
	case "elementid":
		return `to_jsonb(` + alias + `.edf_id)`
	case "labels":
		return `jsonb_build_array(` + alias + `.type)`
	case "properties":
		return `((` + nodeJSON(alias) + `) -> 'properties')`
	case "keys":
		return `mdm_keys((` + nodeJSON(alias) + `) -> 'properties')`
	}
	return ""
}

func ofRelation(name, alias string) string {
	switch name {
	case "id":
		return `to_jsonb(` + alias + `.id)`
	case "elementid":
		return `to_jsonb(` + alias + `.edf_id)`
	case "type":
		return `to_jsonb(` + alias + `.type)`
	case "properties":
		return `((` + relationJSON(alias) + `) -> 'properties')`
	case "keys":
		return `mdm_keys((` + relationJSON(alias) + `) -> 'properties')`
	case "startnode":
		return `(select ` + nodeJSON("e") + ` from mdm_entities e where e.edf_id = ` + alias + `.source)`
	case "endnode":
		return `(select ` + nodeJSON("e") + ` from mdm_entities e where e.edf_id = ` + alias + `.target)`
	}
	return ""
}

func (c *compiler) ofPath(name string, t thing) string {
	switch name {
	case "nodes":
		return c.nodesOf(t)
	case "relationships":
		return c.stepsOf(t)
	case "length":
		sum := "0"
		for _, p := range t.places {
			if p.many {
				sum += ` + cardinality(` + p.alias + `.rels)`
			} else {
				sum += ` + 1`
			}
		}
		return `to_jsonb(` + sum + `)`
	}
	return ""
}

func (c *compiler) aggregate(e call) (string, error) {
	if c.inside {
		return "", e.fault("%s stands within another aggregate", e.name)
	}
	if e.star {
		return `to_jsonb(count(*))`, nil
	}
	c.inside = true
	defer func() { c.inside = false }()
	distinct := ""
	if e.distinct {
		distinct = "distinct "
	}
	v, err := c.value(e.args[0])
	if err != nil {
		return "", err
	}
	if named, ok := e.args[0].(variable); ok && e.name == "count" {
		if t := c.things[named.text]; t.kind == aNode || t.kind == aRelation {
			v = t.alias + ".id"
		}
	}
	switch e.name {
	case "count":
		return `to_jsonb(count(` + distinct + v + `))`, nil
	case "collect":
		return `coalesce(jsonb_agg(` + distinct + v + ` order by ` + v + `) filter (where (` + v + `) is not null), '[]')`, nil
	case "sum":
		return `to_jsonb(coalesce(sum(` + distinct + numeric(v) + `), 0))`, nil
	case "avg":
		return `to_jsonb(trim_scale(avg(` + distinct + numeric(v) + `)))`, nil
	case "min":
		return `((array_agg(` + v + ` order by ` + v + `) filter (where (` + v + `) is not null))[1])`, nil
	default: // max
		return `((array_agg(` + v + ` order by ` + v + ` desc) filter (where (` + v + `) is not null))[1])`, nil
	}
}
