package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// right is a right on a table, on a column of one, or on a sequence.
type right struct{ on, verb, column string }

// anyColumn stands for one of the table, whichever: "select count(*)" needs that, and "for update".
const anyColumn = "*"

type rights map[right]bool

// statement is one that Postgres has prepared.
type statement struct {
	sql   string
	try   string // what is refused if the statement would be
	needs rights
}

// table is what Postgres has under a number.
type table struct {
	name     string
	sequence bool
	columns  map[int]string
}

// database is a migrated one, whose Postgres says how it reads statements.
type database struct {
	conn       *pgx.Conn
	tables     map[int]table
	prepared   map[string]*statement
	of         map[string][]*statement // by function
	said       []string                // by Postgres, about the last statement
	unprepared int
}

func open(ctx context.Context, config *pgx.ConnConfig) (*database, error) {
	db := &database{tables: map[int]table{}, prepared: map[string]*statement{}, of: map[string][]*statement{}}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.Message == "rewritten parse tree:" {
			db.said = append(db.said, strings.Join(strings.Fields(n.Detail), " "))
		}
	}
	var err error
	if db.conn, err = pgx.ConnectConfig(ctx, config); err != nil {
		return nil, err
	}
	rows, err := db.conn.Query(ctx, `select c.oid::int, c.relname, c.relkind = 'S', a.attnum::int, a.attname
from pg_class c join pg_attribute a on a.attrelid = c.oid
where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'S') and not a.attisdropped`)
	if err != nil {
		return nil, err
	}
	var oid, number int
	var name, column string
	var sequence bool
	_, err = pgx.ForEachRow(rows, []any{&oid, &name, &sequence, &number, &column}, func() error {
		if db.tables[oid].columns == nil {
			db.tables[oid] = table{name, sequence, map[int]string{}}
		}
		db.tables[oid].columns[number] = column
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := db.harmless(ctx); err != nil {
		return nil, err
	}
	_, err = db.conn.Exec(ctx, `set client_min_messages = log; set debug_print_rewritten = on; set debug_pretty_print = off;
set plan_cache_mode = force_generic_plan`)
	return db, err
}

// harmless fails if a function of the schema could do more than its caller: anybody may call them.
func (db *database) harmless(ctx context.Context) error {
	rows, _ := db.conn.Query(ctx, `select proname from pg_proc
where pronamespace = 'public'::regnamespace and provolatile <> 'i' and prorettype <> 'trigger'::regtype`)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil && len(list) > 0 {
		err = fmt.Errorf("%s: a function of SQL that reads or writes needs a right of its own, which this program does not know of", strings.Join(list, ", "))
	}
	return err
}

var (
	verb    = regexp.MustCompile(`^[\s(]*(?:--[^\n]*\n\s*)*([a-zA-Z]+)`)
	entry   = regexp.MustCompile(`:relid (\d+) [^{}]*?:requiredPerms (\d+) :checkAsUser \d+ :selectedCols \(b([ \d]*)\) :insertedCols \(b([ \d]*)\) :updatedCols \(b([ \d]*)\)`)
	nextval = regexp.MustCompile(`:funcid 1574 [^{}]*:args \(\{CONST :consttype 2205 [^{}]*:constvalue 4 \[ (-?\d+) (-?\d+) (-?\d+) (-?\d+) `)
)

// Of parsenodes.h, and the number that sysattr.h adds to columns.
const (
	aclInsert, aclSelect, aclUpdate, aclDelete = 1, 2, 4, 8

	below = 7
)

// statement returns a statement with what it needs; nil if it needs nothing, or Postgres does not take it anyway.
func (db *database) statement(ctx context.Context, sql string) (*statement, error) {
	if s, known := db.prepared[sql]; known {
		return s, nil
	}
	db.prepared[sql] = nil
	word := verb.FindStringSubmatch(sql)
	if word == nil {
		return nil, nil
	}
	switch strings.ToLower(word[1]) {
	case "begin", "commit", "rollback", "set", "savepoint", "release":
		return nil, nil
	case "select", "insert", "update", "delete", "with", "values":
	default:
		return nil, fmt.Errorf("it is not known what this needs: %s", sql)
	}
	db.said = nil
	name := fmt.Sprintf("s%d", len(db.prepared))
	description, err := db.conn.PgConn().Prepare(ctx, name, sql, nil)
	var pg *pgconn.PgError
	if errors.As(err, &pg) { // a test may ask for what cannot be answered
		fmt.Printf("not counted, since Postgres says %s: %.120s\n", pg.Message, strings.Join(strings.Fields(sql), " "))
		db.unprepared++
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &statement{sql: sql, needs: rights{}, try: "explain (costs off) execute " + name}
	if n := len(description.ParamOIDs); n > 0 {
		s.try += "(" + strings.TrimSuffix(strings.Repeat("null, ", n), ", ") + ")"
	}
	s.try += ";"
	for _, tree := range db.said {
		if err := db.needs(s, tree); err != nil {
			return nil, fmt.Errorf("%w: %s", err, sql)
		}
	}
	db.prepared[sql] = s
	return s, nil
}

func (db *database) needs(s *statement, tree string) error {
	for _, m := range entry.FindAllStringSubmatch(tree, -1) {
		oid, perms := number(m[1]), number(m[2])
		t, ours := db.tables[oid]
		if !ours || perms == 0 {
			continue // everybody may read the catalogue
		}
		if t.sequence {
			return fmt.Errorf("%s is read as a table", t.name)
		}
		for i, v := range []struct {
			acl  int
			verb string
		}{{aclSelect, "select"}, {aclInsert, "insert"}, {aclUpdate, "update"}} {
			if perms&v.acl == 0 {
				continue
			}
			columns := strings.Fields(m[3+i])
			if len(columns) == 0 {
				s.needs[right{t.name, v.verb, anyColumn}] = true
			}
			for _, c := range columns {
				if number(c) == below { // the row as a whole
					for n, name := range t.columns {
						if n > 0 {
							s.needs[right{t.name, v.verb, name}] = true
						}
					}
					continue
				}
				s.needs[right{t.name, v.verb, t.columns[number(c)-below]}] = true
			}
		}
		if perms&aclDelete > 0 {
			s.needs[right{t.name, "delete", ""}] = true
		}
		if perms&^(aclSelect|aclInsert|aclUpdate|aclDelete) > 0 {
			return fmt.Errorf("%s: rights %b are not known", t.name, perms)
		}
	}
	for _, m := range nextval.FindAllStringSubmatch(tree, -1) {
		oid := 0
		for i, b := range m[1:] {
			oid |= number(b) & 0xff << (8 * i) // bytes are written with a sign
		}
		t, ours := db.tables[oid]
		if !ours {
			return errors.New("the sequence is not known")
		}
		s.needs[right{t.name, "usage", ""}] = true
		s.try += fmt.Sprintf(" select nextval('%s');", t.name) // EXPLAIN asks for the rights on tables only
	}
	return nil
}

// choose puts the first column of a table in the place of any, if no other is needed.
func (db *database) choose(all rights) {
	for r := range all {
		if r.column != anyColumn {
			continue
		}
		delete(all, r)
		there := false
		for other := range all {
			there = there || other.on == r.on && other.verb == r.verb && other.column != anyColumn
		}
		if !there {
			all[right{r.on, r.verb, db.first(r.on)}] = true
		}
	}
}

func (db *database) first(name string) string {
	for _, t := range db.tables {
		if t.name != name {
			continue
		}
		var numbers []int
		for n := range t.columns {
			if n > 0 {
				numbers = append(numbers, n)
			}
		}
		return t.columns[slices.Min(numbers)]
	}
	return ""
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err) // it was matched by \d+
	}
	return n
}
