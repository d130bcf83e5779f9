package cypher

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/littoral-project/littoral/shared/problem"
)

// selection is the statement of a query: the patterns with the columns inside, order and limits outside.
func (c *compiler) selection(s *scope, r returns) (*Statement, error) {
	if len(r.items) == 1 && r.items[0].value == nil {
		items, err := c.everything(r.items[0].at)
		if err != nil {
			return nil, err
		}
		r.items = items
	}
	aggregated := slices.ContainsFunc(r.items, func(i item) bool { return aggregates(i.value) })
	var columns, groups, names []string
	for i, it := range r.items {
		if aggregates(it.value) {
			if err := pure(it.value); err != nil {
				return nil, err
			}
		} else {
			groups = append(groups, strconv.Itoa(i+1))
		}
		value, err := c.value(it.value)
		if err != nil {
			return nil, err
		}
		columns = append(columns, value+` as c`+strconv.Itoa(i))
		names = append(names, it.name)
	}
	var orders []string
	for _, o := range r.order {
		column, hidden, err := c.order(o, r, aggregated)
		if err != nil {
			return nil, err
		}
		if hidden != "" {
			columns = append(columns, hidden+` as c`+strconv.Itoa(len(columns)))
			column = `q.c` + strconv.Itoa(len(columns)-1)
		}
		if o.descending {
			column += " desc"
		}
		orders = append(orders, column)
	}
	begin := "select "
	if r.distinct {
		begin = "select distinct "
	}
	sql := s.from(begin + strings.Join(columns, ",\n\t"))
	if aggregated && len(groups) > 0 {
		sql += "\ngroup by " + strings.Join(groups, ", ")
	}
	return c.outside(sql, names, orders, r)
}

// mostSQL bounds a statement, in bytes.
const mostSQL = 256 << 10

// everything are the columns of RETURN *: the variables, by name.
func (c *compiler) everything(at token) (items []item, err error) {
	for _, name := range slices.Sorted(maps.Keys(c.things)) {
		items = append(items, item{at: at, value: variable{token{kind: quoted, text: name, line: at.line, column: at.column}}, name: name})
	}
	if len(items) == 0 {
		return nil, at.fault("no pattern names anything that * could stand for")
	}
	return items, nil
}

// outside adds order and limits.
func (c *compiler) outside(inner string, names, orders []string, r returns) (*Statement, error) {
	list := make([]string, len(names))
	for i := range names {
		list[i] = `c` + strconv.Itoa(i) + `::text`
	}
	sql := "select " + strings.Join(list, ", ") + "\nfrom (" + inner + ") q"
	if len(orders) > 0 {
		sql += "\norder by " + strings.Join(orders, ", ")
	}
	skip, err := c.whole(r.skip, "SKIP")
	if err != nil {
		return nil, err
	}
	limit, err := c.whole(r.limit, "LIMIT")
	if err != nil {
		return nil, err
	}
	rows := MaxRows + 1 // one more shows that there are more
	if limit >= 0 {
		rows = min(rows, limit)
	}
	sql += "\nlimit " + strconv.Itoa(rows)
	if skip > 0 {
		sql += " offset " + strconv.Itoa(skip)
	}
	if len(sql) > mostSQL {
		return nil, problem.New(problem.Invalid, "the query asks for too much at once: it would become a statement of %d bytes", len(sql))
	}
	return &Statement{SQL: sql, Args: c.args, Columns: names}, nil
}

// whole is the number after SKIP or LIMIT; -1 = none is given.
func (c *compiler) whole(e expr, clause string) (int, error) {
	if e == nil {
		return -1, nil
	}
	known, ok := c.known(e)
	n := 0
	if !ok || json.Unmarshal(known, &n) != nil || n < 0 || n > 1_000_000_000 {
		return 0, e.place().fault("%s is followed by a whole number, 0 or more, or a parameter that is one", clause)
	}
	return n, nil
}

// order is a column that is returned, or one that is not.
func (c *compiler) order(o order, r returns, aggregated bool) (column, hidden string, err error) {
	value := o.value
	for i, it := range r.items {
		if v, ok := value.(variable); ok && v.text == it.name || alike(value, it.value) {
			return `q.c` + strconv.Itoa(i), "", nil // the column, not its text
		}
	}
	if aggregated || r.distinct {
		return "", "", o.at.fault("after DISTINCT or an aggregate, ORDER BY names what is returned")
	}
	if aggregates(value) {
		return "", "", o.at.fault("an aggregate in ORDER BY is returned as well")
	}
	hidden, err = c.value(named(value, r.items))
	return "", hidden, err
}

// named puts the values of columns in place of their names.
func named(e expr, items []item) expr {
	switch e := e.(type) {
	case variable:
		for _, it := range items {
			if it.name == e.text {
				return it.value
			}
		}
	case access:
		e.of = named(e.of, items)
		return e
	case binary:
		e.left, e.right = named(e.left, items), named(e.right, items)
		return e
	case minus:
		e.of = named(e.of, items)
		return e
	case call:
		args := make([]expr, len(e.args))
		for i, arg := range e.args {
			args[i] = named(arg, items)
		}
		e.args = args
		return e
	}
	return e
}

// alike reports whether two expressions are the same but for their places.
func alike(a, b expr) bool { return reflect.DeepEqual(placeless(a), placeless(b)) }

// placeless is an expression as plain values, without its places.
func placeless(e expr) any {
	switch e := e.(type) {
	case literal:
		return []any{"literal", e.json}
	case param:
		return []any{"param", e.text}
	case variable:
		return []any{"variable", e.text}
	case access:
		return []any{"access", placeless(e.of), e.key}
	case element:
		return []any{"element", placeless(e.of), placeless(e.at)}
	case call:
		return append([]any{"call", e.name, e.distinct, e.star}, all(e.args)...)
	case binary:
		return []any{"binary", e.op, placeless(e.left), placeless(e.right)}
	case not:
		return []any{"not", placeless(e.of)}
	case minus:
		return []any{"minus", placeless(e.of)}
	case isNull:
		return []any{"null", e.not, placeless(e.of)}
	case list:
		return append([]any{"list"}, all(e.items)...)
	case labels:
		return []any{"labels", placeless(e.of), e.labels}
	}
	return e // a map or a pattern: it is like itself only
}

func all(list []expr) []any {
	values := make([]any, len(list))
	for i, e := range list {
		values[i] = placeless(e)
	}
	return values
}

// parts are what an expression is made of.
func parts(e expr) []expr {
	switch e := e.(type) {
	case access:
		return []expr{e.of}
	case element:
		return []expr{e.of, e.at}
	case call:
		return e.args
	case binary:
		return []expr{e.left, e.right}
	case not:
		return []expr{e.of}
	case minus:
		return []expr{e.of}
	case isNull:
		return []expr{e.of}
	case labels:
		return []expr{e.of}
	case list:
		return e.items
	case mapping:
		values := make([]expr, len(e.members))
		for i, m := range e.members {
			values[i] = m.value
		}
		return values
	}
	return nil
}

// aggregates reports whether there is an aggregate in the expression.
func aggregates(e expr) bool {
	_, found := aggregateIn(e)
	return found
}

// aggregateIn finds an aggregate in the expression.
func aggregateIn(e expr) (token, bool) {
	if c, ok := e.(call); ok && functions[c.name].aggregate {
		return c.token, true
	}
	for _, part := range parts(e) {
		if at, found := aggregateIn(part); found {
			return at, true
		}
	}
	return token{}, false
}

// pure refuses a value beside an aggregate: there is one of it for each row, not for each group.
func pure(e expr) error {
	switch e := e.(type) {
	case call:
		if functions[e.name].aggregate {
			return nil
		}
	case variable:
		return e.fault("%s stands beside an aggregate: return it as a column of its own", problem.Brief(e.text, 40))
	case exists:
		return e.fault("a pattern stands beside an aggregate")
	}
	for _, part := range parts(e) {
		if err := pure(part); err != nil {
			return err
		}
	}
	return nil
}
