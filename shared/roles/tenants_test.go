package roles_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/littoral-project/littoral/shared/backup"
	"github.com/littoral-project/littoral/shared/roles"
	"github.com/littoral-project/littoral/shared/store"
)

// whose are the columns that say whose a row is.
var whose = []string{"application", "application_id", "applications", "instance", "owner", "policy_id"}

// otherwise are tables with such a column whose rows are not those of an application or of who handed one in, with what they are.
var otherwise = map[string]string{
	"alto_streams":      "open streams of costs: who has opened one may change it, which is a condition of each statement",
	"controllers":       "other controllers, known to all; the owner is the token that registered one",
	"mec_subscriptions": "who has subscribed may see and end it, which is a condition of each statement",
}

// of is the condition that a row is of the application in $1.
var of = map[string]string{
	"applications": "id::text = $1", "bus_values": "key = $1 || '/state'", "archives": "applications = array[$1::uuid]",
	"policy_events":  "policy_id = (select id from policies where instance = $1)",
	"policy_alerts":  "policy_id = (select id::text from policies where instance = $1)",
	"policy_actions": "instance = $1",
}

// confined returns the tables that have a policy of tenants, with a condition that a row is of the application in $1.
func (w database) confined() map[string]string {
	w.Helper()
	list := map[string]string{}
	rows, _ := w.owner.Query(w.Context(), `select p.polrelid::regclass::text, coalesce((select a.attname::text from pg_attribute a
where a.attrelid = p.polrelid and a.attname = any($1) limit 1), '') from pg_policy p join pg_class c on c.oid = p.polrelid
where c.relnamespace = 'public'::regnamespace and p.polname = 'tenant' and not p.polpermissive and c.relrowsecurity`, whose)
	var table, column string
	_, err := pgx.ForEachRow(rows, []any{&table, &column}, func() error {
		list[table] = column + "::text = $1"
		if is, special := of[table]; special {
			list[table] = is
		}
		return nil
	})
	require.NoError(w, err)
	return list
}

// TestEveryTableWithATenantsRowsHasAPolicy: what a new table needs is a line in tenants.sql.
func TestEveryTableWithATenantsRowsHasAPolicy(t *testing.T) { //nolint:paralleltest // roles are the server's
	w := begin(t)
	require.NoError(t, roles.Grant(t.Context(), w.owner, false))
	rows, _ := w.owner.Query(t.Context(), `select distinct c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid
where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and a.attname = any($1)`, whose)
	want, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	for table := range otherwise {
		require.Contains(t, want, table)
	}
	want = append(slices.DeleteFunc(want, func(table string) bool { return otherwise[table] != "" }), "bus_values")
	have := w.confined()
	for _, table := range want {
		require.Contains(t, have, table, "whose its rows are has to be in tenants.sql")
	}
	require.Len(t, have, len(want))
}

// fill puts a row of the application into the table, as the nth. Columns that need a value and have no default get one of their type.
func (w database) fill(tx pgx.Tx, table, app string, n int) error {
	w.Helper()
	type column struct{ Name, Type, Check string }
	rows, _ := tx.Query(w.Context(), `select a.attname::text, format_type(a.atttypid, null), coalesce((select pg_get_constraintdef(k.oid)
from pg_constraint k where k.conrelid = a.attrelid and k.contype = 'c' and k.conkey = array[a.attnum]), '')
from pg_attribute a where a.attrelid = to_regclass($1) and a.attnum > 0 and not a.attisdropped and a.attidentity = ''
and (a.attnotnull and not a.atthasdef or a.attname = any($2))`, table, whose)
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	require.NoError(w, err)
	names, values := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		value := map[string]string{
			"uuid": "gen_random_uuid()", "timestamp with time zone": "now()", "bytea": "''", "boolean": "false", "json": "'{}'",
			"jsonb": "'{}'", "text[]": "'{}'", "uuid[]": "array['" + app + "'::uuid]",
		}[c.Type]
		_, allowed, listed := strings.Cut(c.Check, "ARRAY['")
		switch {
		case listed:
			value, _, _ = strings.Cut(allowed, "'::text")
			value = "'" + value + "'"
		case table == "applications" && c.Name == "id", c.Name == "application", c.Name == "application_id", c.Name == "instance":
			value = "'" + app + "'"
		case table == "applications" && c.Name == "owner":
			value = "'" + person(n) + "'"
		case c.Name == "policy_id" && table != "policy_actions":
			value = "(select id from policies where instance = '" + app + "')"
		case table == "bus_values" && c.Name == "key":
			value = "'" + app + "/state'"
		case value == "":
			value = "'" + strconv.Itoa(n) + "'" // a number or a text
		}
		names[i], values[i] = pgx.Identifier{c.Name}.Sanitize(), value
	}
	_, err = tx.Exec(w.Context(), "insert into "+table+" ("+strings.Join(names, ", ")+") values ("+strings.Join(values, ", ")+")")
	return err
}

func person(n int) string { return "person " + strconv.Itoa(n) }

// TestATenantHasItsOwnRowsAlone: statements without any condition, by a function that asks for tenants and has all rights to the tables.
// They find, change and delete what is of the tenant, and add nothing that is of another.
func TestATenantHasItsOwnRowsAlone(t *testing.T) { //nolint:paralleltest // roles are the server's
	w := begin(t)
	require.NoError(t, roles.Grant(t.Context(), w.owner, false))
	confined := w.confined()
	require.NotEmpty(t, confined)
	err := pgx.BeginFunc(t.Context(), w.owner, func(tx pgx.Tx) error {
		do := func(sql string, args ...any) (rows int64) {
			t.Helper()
			tag, err := tx.Exec(t.Context(), sql, args...)
			require.NoError(t, err, sql)
			return tag.RowsAffected()
		}
		do("set local session_replication_role = replica") // neither references nor triggers
		do("grant all on all tables in schema public to littoral_tenant; grant all on all sequences in schema public to littoral_tenant")
		apps := []string{uuid.NewString(), uuid.NewString(), uuid.NewString()}
		tables := append([]string{"applications", "policies"}, slices.DeleteFunc(slices.Sorted(maps.Keys(confined)), func(table string) bool {
			return table == "applications" || table == "policies" // others refer to them
		})...)
		column := map[string]string{} // one that may be set
		for _, table := range tables {
			for n, app := range apps {
				require.NoError(t, w.fill(tx, table, app, n), table)
			}
			name, err := tx.Query(t.Context(), `select attname::text from pg_attribute
where attrelid = to_regclass($1) and attnum > 0 and not attisdropped and attidentity = '' limit 1`, table)
			require.NoError(t, err)
			column[table], err = pgx.CollectExactlyOneRow(name, pgx.RowTo[string])
			require.NoError(t, err)
		}
		mine := apps[0]
		for _, table := range tables {
			for tenant, own := range map[store.Tenant]int64{
				store.Application(mine): 1, store.Person(person(0)): 1, store.Everybody: int64(len(apps)),
				"": 0, store.Application(""): 0, store.Application("%"): 0, store.Application(mine[:8]): 0, store.Person(""): 0,
			} {
				switch {
				case tenant == store.Everybody:
				case table == "archives", table == "bus_values" && tenant == store.Person(person(0)):
					own = 0
				}
				about := fmt.Sprintf("%s for %q", table, tenant)
				do("savepoint before")
				do("set local role littoral_tenant")
				if tenant != "" {
					do("select set_config('littoral.tenant', $1, true)", string(tenant))
				}
				require.Equal(t, own, do("select from "+table), about)
				require.Equal(t, min(own, 1), do("select from "+table+" where "+confined[table], mine), about)
				require.Equal(t, own, do("update "+table+" set "+column[table]+" = "+column[table]), about)
				require.Equal(t, own, do("delete from "+table), about)
				if tenant != store.Everybody {
					require.ErrorContains(t, w.fill(tx, table, uuid.NewString(), len(apps)), "row-level security", about)
				}
				do("rollback to before")
			}
		}
		return pgx.ErrTxCommitRollback // undo
	})
	require.ErrorIs(t, err, pgx.ErrTxCommitRollback)
}

// TestARestoredDatabaseIsConfined as the one was whose place it takes, by the same policies.
func TestARestoredDatabaseIsConfined(t *testing.T) { //nolint:paralleltest // roles are the server's
	w := begin(t)
	require.NoError(t, roles.Grant(t.Context(), w.owner, false))
	const policies = `select format('%s %s %s %s %s %s', c.oid::regclass, c.relrowsecurity, p.polname, p.polpermissive,
pg_get_expr(p.polqual, p.polrelid), obj_description(p.oid, 'pg_policy')) from pg_policy p join pg_class c on c.oid = p.polrelid
where c.relnamespace = 'public'::regnamespace order by 1`
	read := func(sql string) []string {
		t.Helper()
		rows, _ := w.owner.Query(t.Context(), sql)
		list, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return list
	}
	app := uuid.NewString()
	require.NoError(t, pgx.BeginFunc(t.Context(), w.owner, func(tx pgx.Tx) error { return w.fill(tx, "applications", app, 0) }))
	before := read(policies)
	require.NotEmpty(t, before)
	var file bytes.Buffer
	_, err := backup.Write(t.Context(), w.owner, nil, &file)
	require.NoError(t, err)
	_, err = backup.Restore(t.Context(), bytes.NewReader(file.Bytes()), int64(file.Len()), backup.Options{DatabaseURL: w.url, Patience: time.Minute})
	require.NoError(t, err)
	require.Equal(t, before, read(policies))
	require.Equal(t, []string{app}, read("select id::text from applications"))
	_, err = w.owner.Exec(t.Context(), "set role littoral_telemetry_series")
	require.NoError(t, err)
	require.Empty(t, read("select id::text from applications"))
}

// TestPoliciesLeaveStatementsTheirIndexes: who asks for no tenant has the plans of the owner, and who does still finds rows by an index.
func TestPoliciesLeaveStatementsTheirIndexes(t *testing.T) { //nolint:paralleltest // roles are the server's
	w := begin(t)
	require.NoError(t, roles.Grant(t.Context(), w.owner, false))
	tx, err := w.owner.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	const other = "littoral_mdm_stream"
	_, err = tx.Exec(t.Context(), "set local enable_seqscan = off; set local enable_bitmapscan = off; set local enable_sort = off; grant select on all tables in schema public to littoral_tenant, "+other)
	require.NoError(t, err)
	plan := func(role, sql string) string {
		t.Helper()
		_, err := tx.Exec(t.Context(), "set local role "+role)
		require.NoError(t, err)
		rows, _ := tx.Query(t.Context(), "explain (costs off) "+sql)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return strings.Join(lines, "\n")
	}
	for sql, by := range map[string]string{
		`select id, owner from applications where id = '00000000-0000-0000-0000-000000000000'`: "Index Cond: (id =",
		`select id from applications where owner = 'a person'`:                                 "Index Cond: (owner =",
		`select * from jobs where application_id = '00000000-0000-0000-0000-000000000000'`:     "Index Cond: (application_id =",
		`select id from history where application_id = '00000000-0000-0000-0000-000000000000' and id < 7
order by id desc limit 500`: "AND (id < 7))",
		`select payload from bus_values where key > 'a/' and not deleted order by key limit 200`: "Index Scan using bus_values_pkey",
		`select payload from bus_values where number > 7 order by number limit 500`:              "Index Scan using bus_values_number",
		`select max(number) from bus_values`:                                                     "using bus_values_number",
	} {
		require.Equal(t, plan("none", sql), plan(other, sql))
		confined := plan("littoral_tenant", sql)
		require.Contains(t, confined, by)
		require.Contains(t, confined, "littoral.tenant")
		require.NotContains(t, confined, "Seq Scan")
	}
}
