// Package roles gives each function a role of its own in Postgres, which may do what the function's statements need and nothing
// else, and logins that are members of it.
//
// tenants.sql says whose rows functions see that ask for one application or person. grants.sql says what each may do. It is generated
// from the statements of tests and programs (scripts/gen/grants), and what a newcomer may get wrong is to forget that: after a change
// of a statement or a table, "make grants" writes it anew.
package roles

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/littoral-project/littoral/shared/store"
)

//go:embed grants.sql
var grants string

//go:embed tenants.sql
var tenants string

// Every is the role that has what all functions need; that of each function is a member of it.
const Every = "littoral_function"

// Tenant is the role of which those functions are members that see the rows of whom they ask for, and no others.
const Tenant = "littoral_tenant"

// takeBack takes every right away from the roles, those of functions that are no more included.
const takeBack = `
do $$
declare
    all_of_them text;
begin
    select string_agg(quote_ident(rolname), ', ') into all_of_them from pg_roles
    where rolname = '` + Every + `' or oid in (select member from pg_auth_members where roleid = (select oid from pg_roles where rolname = '` + Every + `'));
    if all_of_them is not null then
        execute 'revoke all on all tables in schema public from ' || all_of_them;
        execute 'revoke all on all sequences in schema public from ' || all_of_them;
    end if;
    if exists (select from pg_roles where rolname = '` + Tenant + `') then
        execute 'revoke all on all tables in schema public from ` + Tenant + `';
    end if;
end
$$;
`

// pooler lets PgBouncer ask what it is to check the logins of functions by. Only a superuser can let it.
const pooler = `
do $$
begin
    if not (select rolsuper from pg_roles where rolname = current_user) then
        return;
    end if;
    if not exists (select from pg_roles where rolname = 'littoral_pgbouncer') then
        create role littoral_pgbouncer;
    end if;
    create schema if not exists littoral_pgbouncer;
    grant usage on schema littoral_pgbouncer to littoral_pgbouncer;
    create or replace function littoral_pgbouncer.login(login text) returns table (name text, secret text)
    language sql stable security definer set search_path = pg_catalog, pg_temp as
        'select rolname::text, rolpassword from pg_authid where rolname = login and rolcanlogin and not rolsuper and rolname like ''littoral\_%''';
    revoke all on function littoral_pgbouncer.login from public;
    grant execute on function littoral_pgbouncer.login to littoral_pgbouncer;
end
$$;
`

// turn is the database's advisory lock under which roles are made, since Postgres refuses two changes of one at a time.
const turn = 7205759404

// Grant makes the roles and gives them their rights. What they had before stays, since functions of a former version still run, unless
// exactly. conn is that of the owner of the tables, who may create roles.
func Grant(ctx context.Context, conn *pgx.Conn, exactly bool) error {
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, turn); err != nil {
			return err
		}
		sql := grants
		if exactly {
			sql = takeBack + grants
		}
		_, err := tx.Exec(ctx, sql+tenants+pooler)
		return err
	})
	if err != nil {
		return fmt.Errorf("roles of functions: %w", err)
	}
	return nil
}

// Confine gives tables that have just taken the place of others the policies that these had. Where functions have no roles there are none.
func Confine(ctx context.Context, tx pgx.Tx) error {
	var roles bool
	if err := tx.QueryRow(ctx, `select exists (select from pg_roles where rolname = '`+Tenant+`')`).Scan(&roles); err != nil || !roles {
		return err
	}
	if _, err := tx.Exec(ctx, tenants); err != nil {
		return fmt.Errorf("policies of tenants: %w", err)
	}
	return nil
}

// Logins are the addresses of the store by file name: of each function under its own name, and while it is to get another one, that
// under the name with Next behind.
type Logins map[string]string

// Next ends the name of an address that a function does not use yet.
const Next = ".next"

// ReadLogins reads a folder in which a Secret is mounted.
func ReadLogins(dir string) (Logins, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return nil, err
	}
	logins := Logins{}
	for _, file := range files {
		if strings.HasPrefix(filepath.Base(file), ".") {
			continue // of the volume itself
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		logins[filepath.Base(file)] = string(text)
	}
	if len(logins) == 0 {
		return nil, fmt.Errorf("%s: there is no address of a function", dir)
	}
	return logins, nil
}

// login is a role that may log in.
type login struct{ role, user, password string }

func (l Logins) parse() ([]login, error) {
	var all []login
	for name, address := range l {
		config, err := pgx.ParseConfig(address)
		if err != nil {
			return nil, fmt.Errorf("address of %s: it is none", name) // the error could show the password
		}
		role := store.Role(strings.TrimSuffix(name, Next))
		if !strings.HasPrefix(config.User, role+"_") || config.Password == "" {
			return nil, fmt.Errorf("address of %s: its user must be %s_1 or %[2]s_2, with a password", name, role)
		}
		all = append(all, login{role, config.User, config.Password})
	}
	return all, nil
}

// Admit lets functions log in by these addresses and by no others; functions that have none here stay as they are. A password that
// Postgres has already is left as it is, because poolers keep what they derived of it.
func Admit(ctx context.Context, conn *pgx.Conn, addresses Logins) error {
	logins, err := addresses.parse()
	if err != nil {
		return err
	}
	present := map[string]bool{}
	rows, _ := conn.Query(ctx, `select rolname from pg_roles where rolcanlogin and rolname like 'littoral\_%'`)
	var name string
	if _, err := pgx.ForEachRow(rows, []any{&name}, func() error { present[name] = true; return nil }); err != nil {
		return fmt.Errorf("logins of functions: %w", err)
	}
	for _, l := range logins {
		if present[l.user] && admitted(ctx, conn.Config(), l) {
			continue
		}
		if err := admit(ctx, conn, l); err != nil {
			return fmt.Errorf("login of %s: %w", l.role, err)
		}
	}
	return refuse(ctx, conn, logins)
}

// admitted reports whether Postgres takes the password.
func admitted(ctx context.Context, to *pgx.ConnConfig, l login) bool {
	to = to.Copy()
	to.User, to.Password = l.user, l.password
	conn, err := pgx.ConnectConfig(ctx, to)
	if err != nil {
		return false
	}
	_ = conn.Close(ctx)
	return true
}

func admit(ctx context.Context, conn *pgx.Conn, l login) error {
	secret, err := Verifier(l.password)
	if err != nil {
		return err
	}
	user, role := pgx.Identifier{l.user}.Sanitize(), pgx.Identifier{l.role}.Sanitize()
	_, err = conn.Exec(ctx, "create role "+user)
	var pg *pgconn.PgError
	if err != nil && (!errors.As(err, &pg) || pg.Code != "42710") { // it is there
		return err
	}
	for _, sql := range []string{"grant " + role + " to " + user, "alter role " + user + " login password '" + secret + "'"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// refuse lets nobody log in any more as a function that has other logins now.
func refuse(ctx context.Context, conn *pgx.Conn, logins []login) error {
	users, of := make([]string, 0, len(logins)), make([]string, 0, len(logins))
	for _, l := range logins {
		users, of = append(users, l.user), append(of, l.role)
	}
	rows, _ := conn.Query(ctx, `select distinct u.rolname from pg_roles u join pg_auth_members m on m.member = u.oid join pg_roles r on r.oid = m.roleid
where u.rolcanlogin and r.rolname = any($1) and u.rolname <> all($2)`, of, users)
	former, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("logins of functions: %w", err)
	}
	for _, user := range former {
		if _, err := conn.Exec(ctx, "alter role "+pgx.Identifier{user}.Sanitize()+" nologin password null"); err != nil {
			return fmt.Errorf("login %s: %w", user, err)
		}
	}
	return nil
}
