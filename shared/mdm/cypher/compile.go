package cypher

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/littoral-project/littoral/shared/problem"
)

// Statement is a query as Postgres gets it: one SELECT whose columns are JSON. What the caller wrote is among the arguments.
type Statement struct {
	SQL     string
	Args    []any
	Columns []string
}

// thing is what a variable stands for.
type thing struct {
	kind   thingKind
	alias  string  // of its table; of a path those of its nodes, with spaces between
	places []place // of a path
}

type thingKind int

const (
	aNode thingKind = iota
	aRelation
	relations // of a path with several lengths
	aPath
)

// place is where a part of a path is in the statement.
type place struct {
	alias    string
	many     bool
	reversed bool // its relations come from the right
}

// scope is one FROM with its WHERE.
type scope struct {
	froms []string
	where []string
	steps []place // for that no relation is taken twice in one MATCH
}

// compiler makes a statement of a query.
type compiler struct {
	args       []any
	parameters map[string]json.RawMessage
	things     map[string]thing
	hinted     map[string]bool // variables that a condition leads to at once
	aliases    int
	inside     bool // of an aggregate
}

// MaxRows is how many rows an answer has at most.
const MaxRows = 10_000

// Compile makes a statement of a query. The error is Invalid, with the place in the query.
func Compile(text string, parameters map[string]json.RawMessage) (*Statement, error) {
	q, err := parse(text)
	if err != nil {
		return nil, err
	}
	c := &compiler{parameters: parameters, things: map[string]thing{}, hinted: map[string]bool{}}
	main := &scope{}
	for _, m := range q.matches {
		if at, found := aggregateIn(m.where); found {
			return nil, at.fault("%s is an aggregate, and those are returned: WHERE asks of each row", at)
		}
		c.look(m.where)
	}
	for _, m := range q.matches {
		main.steps = nil
		for _, p := range m.patterns {
			if err := c.pattern(main, p, true); err != nil {
				return nil, err
			}
		}
		if m.where != nil {
			if err := c.filter(main, m.where); err != nil {
				return nil, err
			}
		}
	}
	return c.selection(main, q.returns)
}

// bind adds an argument and returns its place.
func (c *compiler) bind(value any) string {
	c.args = append(c.args, value)
	return "$" + strconv.Itoa(len(c.args))
}

func (c *compiler) json(text string) string { return c.bind(text) + "::jsonb" }
func (c *compiler) text(text string) string { return c.bind(text) + "::text" }

func (c *compiler) alias(prefix string) string {
	c.aliases++
	return prefix + strconv.Itoa(c.aliases)
}

// look notes the variables that a condition compares with something known: a walk begins there.
func (c *compiler) look(e expr) {
	switch e := e.(type) {
	case binary:
		if e.op == "AND" {
			c.look(e.left)
			c.look(e.right)
			return
		}
		if e.op != "=" && e.op != "IN" {
			return
		}
		for _, side := range []expr{e.left, e.right} {
			switch side := side.(type) {
			case access:
				if v, ok := side.of.(variable); ok {
					c.hinted[v.text] = true
				}
			case call:
				if v, ok := first(side.args).(variable); ok && (side.name == "id" || side.name == "elementid") {
					c.hinted[v.text] = true
				}
			}
		}
	}
}

func first(args []expr) expr {
	if len(args) == 0 {
		return nil
	}
	return args[0]
}

// weight says how few entities a node may be.
func (c *compiler) weight(n node) int {
	if n.variable != "" {
		if _, bound := c.things[n.variable]; bound {
			return 4
		}
		if c.hinted[n.variable] {
			return 3
		}
	}
	switch {
	case len(n.props) > 0:
		return 2
	case len(n.labels) > 0:
		return 1
	}
	return 0
}

// pattern adds a pattern to a scope. Only one of MATCH may name something new.
func (c *compiler) pattern(s *scope, p pattern, names bool) error {
	nodes := make([]string, len(p.nodes))
	order := make([]int, 0, len(p.nodes)) // the node that leads to the rest first
	best := 0
	for i, n := range p.nodes {
		if c.weight(n) > c.weight(p.nodes[best]) {
			best = i
		}
	}
	order = append(order, best)
	for i := best + 1; i < len(p.nodes); i++ {
		order = append(order, i)
	}
	for i := best - 1; i >= 0; i-- {
		order = append(order, i)
	}
	places := make([]place, len(p.steps))
	for k, i := range order {
		var err error
		switch {
		case k == 0:
			nodes[i], err = c.node(s, p.nodes[i], names, "")
		case i > best:
			nodes[i], places[i-1], err = c.walk(s, p.steps[i-1], nodes[i-1], p.nodes[i], false, names)
		default:
			nodes[i], places[i], err = c.walk(s, p.steps[i], nodes[i+1], p.nodes[i], true, names)
		}
		if err != nil {
			return err
		}
	}
	if p.path == "" {
		return nil
	}
	if _, there := c.things[p.path]; there {
		return p.at.fault("%s stands for something else already", problem.Brief(p.path, 40))
	}
	t := thing{kind: aPath, places: places}
	for _, n := range nodes {
		t.alias += n + " "
	}
	c.things[p.path] = t
	return nil
}

// node adds a node, unless it is there already, with its conditions. id, if given, is what its edf_id is.
func (c *compiler) node(s *scope, n node, names bool, id string) (alias string, err error) {
	t, there := c.things[n.variable]
	switch {
	case n.variable != "" && there && t.kind != aNode:
		return "", n.at.fault("%s is no node", problem.Brief(n.variable, 40))
	case n.variable != "" && there:
		alias = t.alias
	case n.variable != "" && !names:
		return "", n.at.fault("%s is not known here: a pattern that is asked for names nothing new", problem.Brief(n.variable, 40))
	default:
		alias = c.alias("n")
		s.froms = append(s.froms, "mdm_entities "+alias)
		if n.variable != "" {
			c.things[n.variable] = thing{kind: aNode, alias: alias}
		}
	}
	if id != "" {
		s.where = append(s.where, alias+".edf_id = "+id)
	}
	for _, group := range n.labels {
		s.where = append(s.where, alias+".type = any("+c.bind(group)+"::text[])")
	}
	for _, p := range n.props {
		if err := c.equal(s, thing{kind: aNode, alias: alias}, p); err != nil {
			return "", err
		}
	}
	return alias, nil
}

// equal adds the condition that a property has a value.
func (c *compiler) equal(s *scope, t thing, p property) error {
	value, err := c.value(p.value)
	if err != nil {
		return err
	}
	column := c.property(t, p.key)
	s.where = append(s.where, "("+column+" = "+value+")")
	c.hint(s, t, p.key, p.value)
	return nil
}

// columns of relations as a walk reads them: id, type, edf_id, schema_ref, source, target, connector, event_at, and where it
// comes from (a) and leads to (b).
const (
	forward  = `select r.*, r.source as a, r.target as b from mdm_relations r`
	backward = `select r.*, r.target as a, r.source as b from mdm_relations r`
)

// walk adds a step from a node that is there to another one. left says that the step leads to the left of the pattern.
func (c *compiler) walk(s *scope, st step, from string, to node, left, names bool) (alias string, at place, err error) {
	along, against := st.to, st.from
	if left {
		along, against = against, along
	}
	var arms []string
	if along || !against {
		arms = append(arms, forward)
	}
	if against && !along {
		arms = append(arms, backward)
	}
	if along == against { // either way; one that leads to itself counts once
		arms = []string{forward, backward + ` where r.source <> r.target`}
	}
	at = place{alias: c.alias("r"), many: st.many, reversed: left}
	if st.many {
		alias, err = c.walkMany(s, st, from, to, at, arms, names)
	} else {
		s.froms = append(s.froms, "("+strings.Join(arms, " union all ")+") "+at.alias)
		s.where = append(s.where, at.alias+".a = "+from+".edf_id")
		if len(st.types) > 0 {
			s.where = append(s.where, at.alias+".type = any("+c.bind(st.types)+"::text[])")
		}
		alias, err = c.node(s, to, names, at.alias+".b")
	}
	if err != nil {
		return "", at, err
	}
	return alias, at, c.once(s, st, at, names)
}

// once names the step, and adds that its relations are none of another step of the same MATCH.
func (c *compiler) once(s *scope, st step, at place, names bool) error {
	for _, other := range s.steps {
		switch {
		case at.many && other.many:
			s.where = append(s.where, "not "+at.alias+".rels && "+other.alias+".rels")
		case at.many:
			s.where = append(s.where, other.alias+".id <> all("+at.alias+".rels)")
		case other.many:
			s.where = append(s.where, at.alias+".id <> all("+other.alias+".rels)")
		default:
			s.where = append(s.where, at.alias+".id <> "+other.alias+".id")
		}
	}
	s.steps = append(s.steps, at)
	if st.variable != "" {
		if _, there := c.things[st.variable]; there {
			return st.at.fault("%s stands for something already, and a relation is matched once", problem.Brief(st.variable, 40))
		}
		if !names {
			return st.at.fault("%s is not known here: a pattern that is asked for names nothing new", problem.Brief(st.variable, 40))
		}
		t := thing{kind: aRelation, alias: at.alias}
		if at.many {
			t = thing{kind: relations, alias: at.alias, places: []place{at}}
		}
		c.things[st.variable] = t
	}
	for _, p := range st.props {
		if at.many {
			return st.at.fault("relations of a path have no properties that could be asked for")
		}
		if err := c.equal(s, thing{kind: aRelation, alias: at.alias}, p); err != nil {
			return err
		}
	}
	return nil
}

// walkMany adds a path of several lengths: a recursion from a node on, which takes no relation twice, so that it ends.
func (c *compiler) walkMany(s *scope, st step, from string, to node, at place, arms []string, names bool) (string, error) {
	condition := ""
	if len(st.types) > 0 {
		condition = " and r.type = any(" + c.bind(st.types) + "::text[])"
	}
	var next []string
	for _, arm := range arms {
		where := " where r.source = w.node"
		if strings.HasPrefix(arm, backward) {
			where = " where r.target = w.node"
			if strings.Contains(arm, "<>") {
				where += " and r.source <> r.target"
			}
			next = append(next, "select r.id, r.source as b from mdm_relations r"+where+condition)
			continue
		}
		next = append(next, "select r.id, r.target as b from mdm_relations r"+where+condition)
	}
	s.froms = append(s.froms, fmt.Sprintf(`lateral (with recursive w (node, rels, depth) as (
	select %s.edf_id, '{}'::bigint[], 0
	union all select x.b, w.rels || x.id, w.depth + 1 from w, lateral (%s) x
	where w.depth < %d and x.id <> all(w.rels) and exists (select from mdm_entities e where e.edf_id = x.b)
) select node, rels, depth from w where depth >= %d) %s`, from, strings.Join(next, " union all "), st.max, st.min, at.alias))
	return c.node(s, to, names, at.alias+".node")
}

// filter adds a condition, and what makes Postgres find by an index what it compares.
func (c *compiler) filter(s *scope, e expr) error {
	if b, ok := e.(binary); ok && b.op == "AND" {
		if err := c.filter(s, b.left); err != nil {
			return err
		}
		return c.filter(s, b.right)
	}
	condition, err := c.condition(e)
	if err != nil {
		return err
	}
	s.where = append(s.where, condition)
	if b, ok := e.(binary); ok && b.op == "=" {
		c.hintSide(s, b.left, b.right)
		c.hintSide(s, b.right, b.left)
	} else if ok && b.op == "IN" {
		c.hintIn(s, b)
	}
	return nil
}

// indexed are the columns behind properties that are sought by lists.
var indexed = map[string]string{"identifier": ".identifier = any(%s::text[])", "edf_id": ".edf_id = any(%s::uuid[])", "entity_type": ".type = any(%s::text[])"}

// hintIn adds what an index serves of a list of texts that is known.
func (c *compiler) hintIn(s *scope, b binary) {
	e, isAccess := b.left.(access)
	v, isVariable := e.of.(variable)
	t, there := c.things[v.text]
	column, ok := indexed[e.key]
	items, known := c.texts(b.right)
	if !isAccess || !isVariable || !there || t.kind != aNode || !ok || !known {
		return
	}
	if e.key == "edf_id" {
		items = slices.DeleteFunc(items, func(text string) bool { return uuid.Validate(text) != nil || len(text) != 36 })
	}
	s.where = append(s.where, t.alias+fmt.Sprintf(column, c.bind(items)))
}

// texts are those of a list that is known. What is no text equals none of these properties.
func (c *compiler) texts(e expr) (items []string, ok bool) {
	var values []json.RawMessage
	if l, isList := e.(list); isList {
		for _, item := range l.items {
			value, known := c.known(item)
			if !known {
				return nil, false
			}
			values = append(values, value)
		}
	} else if given, known := c.known(e); !known || json.Unmarshal(given, &values) != nil {
		return nil, false
	}
	items = []string{}
	for _, value := range values {
		var text string
		if json.Unmarshal(value, &text) == nil && len(value) > 0 && value[0] == '"' {
			items = append(items, text)
		}
	}
	return items, true
}

func (c *compiler) hintSide(s *scope, e, value expr) {
	switch e := e.(type) {
	case access:
		if v, ok := e.of.(variable); ok {
			if t, there := c.things[v.text]; there {
				c.hint(s, t, e.key, value)
			}
		}
	case call:
		v, ok := first(e.args).(variable)
		t, there := c.things[v.text]
		switch {
		case !ok || !there:
		case e.name == "id" && (t.kind == aNode || t.kind == aRelation):
			c.hint(s, t, "_id", value)
		case e.name == "elementid" && t.kind == aNode:
			c.hint(s, t, "edf_id", value)
		case e.name == "type" && t.kind == aRelation:
			c.hint(s, t, "type", value)
		}
	}
}

// hint adds what an index serves. The condition itself stands beside it, so a hint may say less, never more.
func (c *compiler) hint(s *scope, t thing, key string, value expr) {
	known, ok := c.known(value)
	if !ok || t.kind != aNode && t.kind != aRelation {
		return
	}
	var text string
	isText := json.Unmarshal(known, &text) == nil && known[0] == '"'
	switch {
	case key == "edf_id" && isText:
		if id, err := uuid.Parse(text); err == nil {
			s.where = append(s.where, t.alias+".edf_id = "+c.bind(id.String())+"::uuid")
		}
	case key == "_id":
		if n, err := strconv.ParseInt(string(known), 10, 64); err == nil {
			s.where = append(s.where, t.alias+".id = "+c.bind(strconv.FormatInt(n, 10))+"::bigint")
		}
	case t.kind == aRelation:
		if key == "type" && isText {
			s.where = append(s.where, t.alias+".type = "+c.text(text))
		}
	case key == "identifier" && isText:
		s.where = append(s.where, t.alias+".identifier = "+c.text(text))
	case key == "entity_type" && isText:
		s.where = append(s.where, t.alias+".type = "+c.text(text))
	case !slices.Contains(contractual, key) && strings.IndexByte(`{[n`, known[0]) < 0: // containment means equality of single values
		s.where = append(s.where, t.alias+".properties @> jsonb_build_object("+c.text(key)+", "+c.json(string(known))+")")
	}
}

// known is the JSON of a literal or a parameter.
func (c *compiler) known(e expr) (json.RawMessage, bool) {
	switch e := e.(type) {
	case literal:
		return json.RawMessage(e.json), true
	case param:
		value, ok := c.parameters[e.text]
		return value, ok && len(value) > 0
	}
	return nil, false
}
