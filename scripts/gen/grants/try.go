package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/littoral-project/littoral/shared/roles"
	"github.com/littoral-project/littoral/shared/store"
)

// granted lists what roles have, as the database has it.
const granted = `
select r.rolname, c.relname, lower(x.privilege_type), a.attname
from pg_class c join pg_attribute a on a.attrelid = c.oid
cross join lateral aclexplode(a.attacl) x join pg_roles r on r.oid = x.grantee
where c.relnamespace = 'public'::regnamespace and r.rolname like 'littoral\_%'
union all
select r.rolname, c.relname, lower(x.privilege_type), ''
from pg_class c cross join lateral aclexplode(c.relacl) x join pg_roles r on r.oid = x.grantee
where c.relnamespace = 'public'::regnamespace and r.rolname like 'littoral\_%'`

// try makes the roles of the file, and runs the check of each statement in the role of its function: with all rights, and without each.
func (db *database) try(ctx context.Context, all map[string]rights) error {
	text, err := os.ReadFile(grantsFile)
	if err != nil {
		return err
	}
	if _, err := db.conn.Exec(ctx, `set client_min_messages = error; set debug_print_rewritten = off`); err != nil {
		return err
	}
	if _, err := db.conn.Exec(ctx, string(text)); err != nil {
		return fmt.Errorf("%s: %w", grantsFile, err)
	}
	rows, _ := db.conn.Query(ctx, granted)
	has := map[string][]right{} // by role
	var role string
	var r right
	if _, err := pgx.ForEachRow(rows, []any{&role, &r.on, &r.verb, &r.column}, func() error {
		has[role] = append(has[role], r)
		return nil
	}); err != nil {
		return err
	}
	var statements, tried, own, missing, surplus int
	for _, name := range slices.Sorted(maps.Keys(all)) {
		role := store.Role(name)
		statements += len(db.of[name])
		for _, s := range db.of[name] {
			no, err := db.refused(ctx, role, "", s)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if no != "" {
				missing++
				fmt.Printf("missing: %s: %s: %s\n", name, no, strings.Join(strings.Fields(s.sql), " "))
			}
		}
		own += len(has[role])
		for _, from := range []string{role, roles.Every} {
			for _, r := range has[from] {
				tried++
				needed, err := db.needed(ctx, role, from, r, db.of[name])
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				if !needed {
					surplus++
					fmt.Printf("too much: %s: %s (%s) on %s\n", name, r.verb, r.column, r.on)
				}
			}
		}
	}
	fmt.Printf("%d roles with %d rights of their own and %d of every function; %d statements, %d of them refused (%d more are not taken by Postgres)\n"+
		"%d times a right was taken away from a function, and %d times nothing was refused\n",
		len(all), own, len(has[roles.Every]), statements, missing, db.unprepared, tried, surplus)
	if missing+surplus > 0 {
		return errors.New("the roles do not fit the statements: make grants")
	}
	return nil
}

// needed reports whether a statement of the function is refused without the right.
func (db *database) needed(ctx context.Context, role, from string, r right, list []*statement) (bool, error) {
	kind, column := "", ""
	if r.verb == "usage" {
		kind = "sequence "
	}
	if r.column != "" {
		column = " (" + r.column + ")"
	}
	without := fmt.Sprintf("revoke %s%s on %s%s from %s;", r.verb, column, kind, r.on, from)
	// Those whose tree names the right first: one of them is nearly always refused.
	exact := slices.Clone(list)
	slices.SortStableFunc(exact, func(a, b *statement) int { return mentions(b, r) - mentions(a, r) })
	for _, s := range exact {
		if no, err := db.refused(ctx, role, without, s); err != nil || no != "" {
			return true, err
		}
	}
	return false, nil
}

func mentions(s *statement, r right) int {
	switch {
	case s.needs[r]:
		return 2
	case s.needs[right{r.on, r.verb, anyColumn}]:
		return 1
	}
	return 0
}

// refused says why Postgres does not let the role run the statement after the change, which is taken back; "" if it does.
func (db *database) refused(ctx context.Context, role, change string, s *statement) (string, error) {
	_, err := db.conn.PgConn().Exec(ctx, "begin; "+change+" set local role "+role+"; "+s.try).ReadAll()
	if _, end := db.conn.PgConn().Exec(ctx, "rollback").ReadAll(); end != nil {
		return "", end
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42501" {
		return pg.Message, nil
	}
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, s.sql)
	}
	return "", nil
}
